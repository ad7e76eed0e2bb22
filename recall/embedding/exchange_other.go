//go:build !linux

package embedding

import "errors"

func exchange(string, string) error { return errors.ErrUnsupported }

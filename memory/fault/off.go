//go:build !faults

package fault

import "time"

// Reach does nothing.
func Reach(Point) {}

// Clock is nil: the store takes the system's.
func Clock() func() time.Time { return nil }

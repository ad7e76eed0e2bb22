//go:build !linux

package chaos

import "testing"

// smallDisk has no way to mount a disk here.
func smallDisk(t testing.TB, _ string, _ int) (seal func(sealed bool)) {
	t.Helper()
	t.Skip("a disk is mounted on Linux only; TestStore_full of memory meets a full file without one")
	return nil
}

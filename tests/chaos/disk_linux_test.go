package chaos

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

// smallDisk mounts a disk of its own on a folder, where the system lets us. It
// returns what makes the disk read-only, or writable again.
func smallDisk(t testing.TB, dir string, megabytes int) (seal func(sealed bool)) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	size := fmt.Sprintf("size=%dm", megabytes)
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, size)
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("a disk cannot be mounted here: %v; TestStore_full of memory meets a full file without one", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return func(sealed bool) {
		t.Helper()
		flags := uintptr(syscall.MS_REMOUNT)
		if sealed {
			flags |= syscall.MS_RDONLY
		}
		if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, size); err != nil {
			t.Fatal(err)
		}
	}
}

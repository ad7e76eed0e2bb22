//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime is what the process has used of the processors: unlike the time that
// passed, it does not depend on what else the machine does.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

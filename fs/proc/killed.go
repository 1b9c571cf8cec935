package proc

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// UntilKilled waits until done is closed, or until a thread is being killed whose request the
// kernel has interrupted, and reports whether it is. The kernel interrupts a request once, for
// any signal: later signals are polled for.
func UntilKilled(tid uint32, interrupted, done <-chan struct{}) bool {
	select {
	case <-interrupted:
	case <-done:
		return false
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !isKilled(tid) {
		select {
		case <-tick.C:
		case <-done:
			return false
		}
	}
	return true
}

// isKilled reports whether a thread has a SIGKILL pending, which the kernel also
// gives it for every other signal that ends it, or is gone.
func isKilled(tid uint32) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(int(tid)) + "/status")
	if err != nil {
		return true
	}
	for _, field := range []string{"\nSigPnd:\t", "\nShdPnd:\t"} {
		_, rest, _ := bytes.Cut(status, []byte(field))
		hex, _, _ := bytes.Cut(rest, []byte("\n"))
		if set, err := strconv.ParseUint(string(hex), 16, 64); err == nil && set&(1<<(syscall.SIGKILL-1)) != 0 {
			return true
		}
	}
	return false
}

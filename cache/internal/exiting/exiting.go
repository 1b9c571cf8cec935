// Package exiting tells a close(2) that a program makes from one that the kernel makes for a
// program that ends.
//
// The kernel closes the files of a program that ends, one after another, and asks as for any
// close(2). No caller receives the answer, and no signal ends the waiting for it: a SIGKILL to
// a program that is ending is dropped. So the answer is delayed for a moment only, in which the
// bytes may reach the remote before the next command runs, as after a shell's redirection. They
// are sent all the same, and the answer is an error, as for a killed caller: no caller was told
// that the remote has them.
//
//	var t exiting.Threads
//	if t.Wait(ctx, tid) { ... } // answer now
package exiting

import (
	"context"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/wsmount/wsmount/fs/proc"
)

const (
	exitLook  = 100 * time.Millisecond // how often a close checks its thread
	exitGrace = 500 * time.Millisecond // how long all closes of a program that ends wait, together
)

// Threads are threads that were found to be ending, with the time until which their closes may
// wait. The zero value knows none.
type Threads struct {
	mu    sync.Mutex
	until map[uint32]time.Time // guarded by mu
}

// maxLeaving is the number of entries above which expired ones are forgotten.
const maxLeaving = 256

// Wait returns true when the thread of a close has been ending for so long that the close is to
// be answered now, and false when ctx ends. Where the thread cannot be known, as one of another
// process namespace, only ctx ends it.
func (l *Threads) Wait(ctx context.Context, tid uint32) bool {
	for look := l.firstLook(tid); ; look = exitLook {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(look):
		}
		if l.over(tid, isEnding(tid), time.Now()) {
			return true
		}
	}
}

// firstLook is the delay before the first check: at once, if another close of the thread has
// found that it ends.
func (l *Threads) firstLook(tid uint32) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.until[tid]; known {
		return 0
	}
	return exitLook
}

// over reports whether a thread is ending and has waited for long enough.
func (l *Threads) over(tid uint32, ending bool, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !ending {
		delete(l.until, tid) // a new thread has its number
		return false
	}
	until, known := l.until[tid]
	if !known {
		until = now.Add(exitGrace - exitLook)
		l.add(tid, until, now)
	}
	return !now.Before(until)
}

// add enters a thread.
func (l *Threads) add(tid uint32, until, now time.Time) {
	if l.until == nil {
		l.until = map[uint32]time.Time{}
	}
	if len(l.until) >= maxLeaving {
		for other, end := range l.until {
			if now.Sub(end) > time.Minute {
				delete(l.until, other)
			}
		}
	}
	l.until[tid] = until
}

// isEnding reports whether a thread is seen to be ending.
func isEnding(tid uint32) bool {
	if !ownProc() {
		return false
	}
	s, err := proc.Read("/proc/" + strconv.Itoa(int(tid)))
	return err == nil && s.Exiting()
}

// ownProc reports whether /proc has the same process ids as the kernel's requests: it may be
// that of another process namespace.
var ownProc = sync.OnceValue(func() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
})

package cache

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/fs"
)

// The kernel closes the files of a program that ends, one after another, and
// asks as for any close(2). Nobody hears the answer, and no signal ends the
// waiting for it: a SIGKILL to a program that is ending is dropped. So the
// answer waits a moment only, for what follows the program to find at the
// backend what it has written, as a shell does that redirects. The bytes are
// sent all the same, and the answer is an error, as to whoever is killed: nobody
// was told that they are there.

const (
	exitLook  = 100 * time.Millisecond // how often a close that waits looks who waits for it
	exitGrace = 500 * time.Millisecond // how long all closes of a program that ends wait, together
)

// pfExiting is the bit of the flags in /proc/PID/stat that says that a thread
// ends (include/linux/sched.h).
const pfExiting = 0x4

// leaving are the threads that were found to be ending, with the end of what
// their closes may wait.
type leaving struct {
	mu    sync.Mutex
	until map[uint32]time.Time // guarded by mu
}

// maxLeaving is how many are known before those whose time is over are
// forgotten.
const maxLeaving = 256

// watchExit ends the waiting of a close when its caller ends. Where the caller
// cannot be known, as in another process namespace, the close waits.
func (v *Volume) watchExit(op *fs.Op, w *waiting) {
	for look := v.leaving.firstLook(op.PID); sleep(w, look) == nil; look = exitLook {
		if v.leaving.over(op.PID, taskFlags(op.PID), time.Now()) {
			w.end(syscall.EINTR)
			return
		}
	}
}

// firstLook is when to look for the first time: at once, if another close of
// the thread has found that it ends.
func (l *leaving) firstLook(tid uint32) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.until[tid]; known {
		return 0
	}
	return exitLook
}

// over reports whether a thread with such flags is ending and has waited for
// long enough.
func (l *leaving) over(tid uint32, flags uint64, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if flags&pfExiting == 0 {
		delete(l.until, tid) // another has its number
		return false
	}
	until, known := l.until[tid]
	if !known {
		until = now.Add(exitGrace - exitLook)
		l.add(tid, until, now)
	}
	return !now.Before(until)
}

// add enters a thread. mu is held.
func (l *leaving) add(tid uint32, until, now time.Time) {
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

// taskFlags are the kernel's flags of a thread, 0 when they cannot be read.
func taskFlags(tid uint32) uint64 {
	if !ownProc() {
		return 0
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(int(tid)) + "/stat")
	if err != nil {
		return 0
	}
	// The name of the program, in parentheses, may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 7 {
		return 0
	}
	flags, _ := strconv.ParseUint(string(fields[6]), 10, 64)
	return flags
}

// ownProc reports whether /proc numbers processes as the kernel does in what it
// asks us: it may be that of another process namespace.
var ownProc = sync.OnceValue(func() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
})

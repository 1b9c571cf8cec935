package mountpoint

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/fs/proc"
)

// EndingLimit is how long UntilFree waits for programs that are ending, where the
// caller has no limit of its own.
const EndingLimit = 5 * time.Second

const (
	// livingLimit is how long a mount is asked for again that living programs use: one
	// may be just about to end.
	livingLimit = time.Second
	askAgain    = 20 * time.Millisecond
	// longestTurn bounds the time that a turn counts: in one that takes longer the machine stood
	// still, and a program that is about to end did not run either.
	longestTurn = 10 * askAgain
)

// IsBusy reports whether an unmount failed because the mount is in use.
func IsBusy(err error) bool { return errors.Is(err, ErrBusy) || errors.Is(err, syscall.EBUSY) }

// UntilFree calls unmount again while the mount is in use by programs that are
// ending, or were forked and have executed nothing yet, up to limit (0: EndingLimit). While
// none is seen, the kernel may be closing files of one that has ended: that is waited for
// up to EndingLimit. Holders that live on are refused after a second. look lists the holders.
// waited are the ending programs that were seen to use the mount; the error is the last
// one of unmount.
func UntilFree(limit time.Duration, unmount func() error, look func() []Holder) (waited []Holder, err error) {
	if limit <= 0 {
		limit = EndingLimit
	}
	spent := time.Duration(0)
	for turn := time.Now(); ; time.Sleep(askAgain) {
		if err = unmount(); !IsBusy(err) {
			return waited, err
		}
		spent += min(time.Since(turn), longestTurn)
		turn = time.Now()
		holders := look()
		bound := max(livingLimit, limit)
		switch {
		case len(holders) == 0:
			bound = EndingLimit
		case slices.ContainsFunc(holders, func(h Holder) bool { return !h.Exiting && !h.forked }):
			bound = livingLimit
		}
		for _, h := range holders {
			if h.Exiting && !slices.ContainsFunc(waited, func(w Holder) bool { return w.PID == h.PID }) {
				waited = append(waited, h)
			}
		}
		if spent >= bound {
			return waited, err
		}
	}
}

// forked reports whether a process has executed no program since it was forked: it has its
// parent's files open until it does, and on a busy disk that takes a while.
func forked(dir string) bool {
	s, err := proc.Read(dir)
	return err == nil && s.Forked()
}

// exiting reports whether a process is gone, or every thread of it is ending or was
// killed. dir is its directory in /proc.
func exiting(dir string) bool {
	tasks, err := os.ReadDir(dir + "/task")
	if err != nil {
		return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH)
	}
	return !slices.ContainsFunc(tasks, func(e os.DirEntry) bool {
		s, err := proc.Read(dir + "/task/" + e.Name())
		return err == nil && !s.Dead() && !s.Exiting() && !s.Killed()
	})
}

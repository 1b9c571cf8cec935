package lock

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers/internal/localdir"
)

// Held is the mutex while it is held.
type Held struct {
	lock *Lock
	dir  *os.File
	stop context.CancelFunc
	done chan struct{} // closed when the goroutine that sets the mtime has ended
}

// hold begins to show that the holder lives.
func (l *Lock) hold(ctx context.Context, dir *os.File) *Held {
	// It goes on until Release, also after the caller's ctx has ended.
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	h := &Held{lock: l, dir: dir, stop: stop, done: make(chan struct{})}
	h.show()
	go func() {
		defer close(h.done)
		for l.opts.Sleep(ctx, l.opts.Stale/2) == nil {
			h.show()
		}
	}()
	return h
}

// show sets the mtime of the directory that this process made, not of one that has its name by
// now. When that fails, Check tells sooner or later.
func (h *Held) show() {
	now := unix.NsecToTimespec(h.lock.opts.Now().UnixNano())
	_ = unix.UtimesNanoAt(int(h.dir.Fd()), "", []unix.Timespec{now, now}, unix.AT_EMPTY_PATH)
}

// Check is ErrLost when another process has taken over, or may be about to.
func (h *Held) Check() error {
	fi, err := h.named()
	if err == nil && (fi == nil || h.lock.age(fi) > h.lock.opts.Stale) {
		err = ErrLost
	}
	return err
}

// named describes the directory that this process made, nil if it is not the lock any more.
func (h *Held) named() (fs.FileInfo, error) {
	ours, err := h.dir.Stat()
	if err != nil {
		return nil, err
	}
	fi, err := os.Lstat(h.lock.place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !os.SameFile(ours, fi):
		return nil, nil
	}
	return fi, nil
}

// Release gives the mutex back. The directory of another stays.
func (h *Held) Release() error {
	h.stop()
	<-h.done
	fi, err := h.named()
	if err == nil && fi != nil {
		err = os.Remove(h.lock.place)
	}
	err = errors.Join(err, h.dir.Close(), localdir.Unlock(h.lock.vault))
	<-h.lock.turn
	return err
}

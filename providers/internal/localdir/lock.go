package localdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
)

// Lock takes the lock (flock(2)) of an open directory, and waits up to limit for another
// holder, in this process or another; after that the error is a *TimeoutError. Other errors are
// those of TryLock, and of ctx.
func Lock(ctx context.Context, dir int, limit time.Duration) error {
	for w := NewWait(limit); ; {
		locked, err := TryLock(dir)
		if err == nil && !locked {
			err = w.Once(ctx, &TimeoutError{time.Since(w.began)})
			if err == nil {
				continue
			}
		}
		return err
	}
}

// TryLock takes the lock of an open directory, and reports whether it could: false while
// another holder has it. It is one lock under all names of the directory, for every user that
// may read it; it leaves nothing in the directory, and the kernel releases it when its holder
// ends. providers.ErrUnsupported where the file system has none.
func TryLock(dir int) (bool, error) {
	for {
		switch err := unix.Flock(dir, unix.LOCK_EX|unix.LOCK_NB); err {
		case nil:
			return true, nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return false, nil
		case unix.EBADF, unix.ENOLCK, unix.ENOSYS, unix.EOPNOTSUPP:
			return false, fmt.Errorf("the file system has no locks (%v), so that nothing keeps writers apart: %w", err, providers.ErrUnsupported)
		default:
			return false, &fs.PathError{Op: "flock", Path: "directory", Err: err}
		}
	}
}

// Unlock releases it, also while a child process that is being started has the descriptor too.
func Unlock(dir int) error { return unix.Flock(dir, unix.LOCK_UN) }

// TimeoutError is the error that another process has held the directory's lock for too long. It
// is providers.ErrUnavailable; nothing changed.
type TimeoutError struct{ Waited time.Duration }

// Error tells a person how to find the lock holder.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("another process has held the lock of the directory (flock) for %v: lslocks(8) and fuser(1) say which", e.Waited.Round(time.Second))
}

// Unwrap is providers.ErrUnavailable.
func (e *TimeoutError) Unwrap() error { return providers.ErrUnavailable }

// The pauses between attempts double, from the first to the last: flock(2) itself waits for
// no context.
const (
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// Wait paces the attempts while waiting for another process, up to a limit.
type Wait struct {
	began        time.Time
	limit, pause time.Duration
}

// NewWait begins a wait.
func NewWait(limit time.Duration) *Wait { return &Wait{time.Now(), limit, firstPause} }

// Once waits for the next attempt, or returns the end of ctx, or last if there is none.
func (w *Wait) Once(ctx context.Context, last error) error {
	if time.Since(w.began) >= w.limit {
		return last
	}
	pause := w.pause
	w.pause = min(2*w.pause, lastPause)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

// IsSame reports whether two descriptors are of one directory.
func IsSame(a, b int) (bool, error) {
	var x, y unix.Stat_t
	err := errors.Join(unix.Fstat(a, &x), unix.Fstat(b, &y))
	return x.Dev == y.Dev && x.Ino == y.Ino, err
}

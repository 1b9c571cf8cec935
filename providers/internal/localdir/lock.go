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

// Lock takes the lock (flock(2)) of an open directory, and waits for another holder, in this
// process or another, until limit has passed: then the error is a *TimeoutError. Other errors
// are those of TryLock, and of ctx.
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

// TryLock takes the lock of an open directory, and says whether it could: false
// while another has it. It is one lock under whatever name the directory is reached, for
// every user who may read it; it leaves nothing in the directory, and the kernel gives it
// back when its holder ends. providers.ErrUnsupported where the file system has none.
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

// Unlock gives it back, also where a child that is being started has the descriptor too.
func Unlock(dir int) error { return unix.Flock(dir, unix.LOCK_UN) }

// TimeoutError says that another process has kept the directory's lock for too long. It is
// providers.ErrUnavailable; nothing changed.
type TimeoutError struct{ Waited time.Duration }

// Error says how a person finds out who has it.
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

// Wait is the waiting for something that another process does, up to a limit.
type Wait struct {
	began        time.Time
	limit, pause time.Duration
}

// NewWait begins to wait.
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

// Package lock is the mutex that guards a vault among all programs of a user, as
// agentm has it: a directory that whoever holds the mutex has made.
//
//	l, err := lock.New(place, lock.Options{})
//	held, err := l.Acquire(ctx) // a *TimeoutError when others hold it too long
//	...
//	err = held.Check()          // right before what counts: is it still ours?
//	...
//	err = held.Release()
//
// mkdir(2) decides who holds it. The holder sets the directory's mtime every half of
// Options.Stale. A holder that was killed cannot, and whoever finds the mtime older than
// Options.Stale removes the directory and makes its own. The directory says nothing of
// who holds it. It lies outside of the vault, where nothing replicates it.
//
// Two things are weak in that: a holder that stood still (a machine that slept) may go
// on when another has taken over, and two who find the directory old at the same time
// may both remove it, the second what the first has made. Programs that use this package
// do neither to each other, since they also take an flock(2) on a file beside the
// directory, which the kernel releases when a process ends and never before: one that
// stands still keeps it, and the others time out. Against other programs, old is what
// was old a moment ago too, and Check tells a holder that its directory is gone.
package lock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// What agentm has. The pauses between attempts double, from the first to the last.
const (
	defaultTimeout = 10 * time.Second
	defaultStale   = 10 * time.Second
	firstPause     = 10 * time.Millisecond
	lastPause      = 200 * time.Millisecond
)

// Options: the zero value is what agentm has.
type Options struct {
	Timeout time.Duration // how long Acquire waits for other processes; 0: 10 s
	Stale   time.Duration // how old the mtime of a holder that lives may become; 0: 10 s
	Now     func() time.Time
	Sleep   func(ctx context.Context, d time.Duration) error // until d has passed, or with the error of ctx
}

// Root is where agentm keeps the locks of this user: $XDG_CACHE_HOME/agentm/locks, or
// below ~/.cache.
func Root() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "agentm", "locks"), nil
}

// Place is where below root the lock of a vault is. The vault's name is its real one, so
// that all names of it lead to one lock.
func Place(root, vault string) string {
	sum := sha256.Sum256([]byte(vault))
	return filepath.Join(root, hex.EncodeToString(sum[:]), "lock")
}

// Lock is one user of a mutex, for any number of goroutines. They wait for each other
// as long as their contexts let them; the time-out is for other processes.
type Lock struct {
	place string
	opts  Options
	turn  chan struct{} // has one element while a goroutine has the turn
}

// New is a user of the mutex at a place.
func New(place string, o Options) *Lock {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Stale <= 0 {
		o.Stale = defaultStale
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	return &Lock{place: place, opts: o, turn: make(chan struct{}, 1)}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// TimeoutError says that another process holds the mutex, and lives.
type TimeoutError struct {
	Waited time.Duration
	Age    time.Duration // since the holder last showed that it lives
	place  string
}

// Error names the lock, so that a person can look who has it.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("another process has held the vault's lock %s for %v, and showed %v ago that it lives",
		e.place, e.Waited.Round(time.Millisecond), e.Age.Round(time.Millisecond))
}

// ErrLost is the error of Check.
var ErrLost = errors.New("another process has taken over the vault's lock, because this one stood still")

// Acquire takes the mutex. The error is a *TimeoutError, that of ctx, or of the file
// system.
func (l *Lock) Acquire(ctx context.Context) (*Held, error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	h, err := l.acquire(ctx)
	if err != nil {
		<-l.turn
		return nil, err
	}
	return h, nil
}

// acquire is Acquire for the goroutine that has the turn.
func (l *Lock) acquire(ctx context.Context) (_ *Held, err error) {
	if err := os.MkdirAll(filepath.Dir(l.place), 0o700); err != nil {
		return nil, err
	}
	gate, err := os.OpenFile(filepath.Join(filepath.Dir(l.place), "wsmount.flock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, gate.Close())
		}
	}()
	wait := patience{lock: l, ctx: ctx, began: l.opts.Now(), pause: firstPause}
	for {
		err := unix.Flock(int(gate.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			return nil, &fs.PathError{Op: "flock", Path: gate.Name(), Err: err}
		}
		if err := wait.once(); err != nil {
			return nil, err
		}
	}
	for {
		dir, err := l.make()
		if err == nil {
			return l.hold(ctx, gate, dir), nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		removed, err := l.takeOver(ctx)
		if err == nil && !removed {
			err = wait.once()
		}
		if err != nil {
			return nil, err
		}
	}
}

// make makes the directory, and opens it: what is open keeps its number, by which it
// is known again.
func (l *Lock) make() (*os.File, error) {
	if err := os.Mkdir(l.place, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.Open(l.place)
	if err != nil {
		return nil, errors.Join(err, os.Remove(l.place))
	}
	return dir, nil
}

// takeOver removes the directory of a holder that lives no more, and says whether the
// way is free. It looks twice: a machine that slept makes the lock of each holder look
// old, and in the pause one that woke up ends what it was about to do.
func (l *Lock) takeOver(ctx context.Context) (bool, error) {
	before, err := os.Lstat(l.place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	case l.age(before) <= l.opts.Stale:
		return false, nil
	}
	if err := l.opts.Sleep(ctx, lastPause); err != nil {
		return false, err
	}
	now, err := os.Lstat(l.place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	case !os.SameFile(before, now) || l.age(now) <= l.opts.Stale:
		return false, nil
	}
	if err := os.Remove(l.place); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, nil
}

// age is how long ago a holder showed that it lives.
func (l *Lock) age(fi fs.FileInfo) time.Duration { return max(0, l.opts.Now().Sub(fi.ModTime())) }

// patience is the waiting of one Acquire.
type patience struct {
	lock  *Lock
	ctx   context.Context
	began time.Time
	pause time.Duration
}

// once waits for the next attempt. Pauses get longer.
func (w *patience) once() error {
	waited := w.lock.opts.Now().Sub(w.began)
	rest := w.lock.opts.Timeout - waited
	if rest <= 0 {
		e := &TimeoutError{Waited: waited, place: w.lock.place}
		if fi, err := os.Lstat(w.lock.place); err == nil {
			e.Age = w.lock.age(fi)
		}
		return e
	}
	pause := min(w.pause, rest)
	w.pause = min(2*w.pause, lastPause)
	return w.lock.opts.Sleep(w.ctx, pause)
}

// Package lock is the mutex that guards a vault among all programs that write it. It is
// two locks, which are taken one after the other:
//
//	l, err := lock.New(vault, place, lock.Options{})
//	held, err := l.Acquire(ctx) // a *TimeoutError when another process holds it too long
//	...
//	err = held.Check()          // right before the change: is it still ours?
//	...
//	err = held.Release()
//
// The first is the flock(2) of the vault's own directory, which all programs that use this
// package take, of whatever user, with whatever environment, and under whatever name they have
// the vault. It leaves nothing in the vault, and the kernel gives it back when a process ends and
// never before: a process that stands still keeps it, and the others time out. On a network file
// system it is one machine's.
//
// The second is agentm's, for its programs, which take no other: a directory that the holder of
// the mutex has made, below the user's cache directory, where nothing replicates it. mkdir(2)
// decides who holds it. The holder sets the directory's mtime every half of Options.Stale. A
// holder that was killed cannot, and a process that finds the mtime older than Options.Stale
// removes the directory and makes its own. The directory does not name its holder.
//
// Three things are weak in the second. A holder that stood still (a machine that slept) may go on
// when another has taken over; two processes that find the directory old at the same time may
// both remove it, the second the new one that the first has made; and two with different cache
// directories, or with two names of the vault that are no links, do not see each other's lock.
// Users of this package do none of that to each other, because of the first. Against other
// programs, the directory counts as old only if it was old a moment ago too, and Check tells a
// holder that its directory is gone; a common cache directory is up to the person who starts
// them.
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

	"github.com/wsmount/wsmount/providers/internal/localdir"
)

// agentm's values. The pauses between attempts double, from the first to the last.
const (
	defaultTimeout = 10 * time.Second
	defaultStale   = 10 * time.Second
	firstPause     = 10 * time.Millisecond
	lastPause      = 200 * time.Millisecond
)

// Options: the zero value has agentm's values.
type Options struct {
	Timeout time.Duration // the time that Acquire waits for other processes; 0: 10 s
	Stale   time.Duration // the most that the mtime of a living holder may be old; 0: 10 s
	Now     func() time.Time
	Sleep   func(ctx context.Context, d time.Duration) error // until d has passed, or with the error of ctx
}

// Root is agentm's directory for the locks of this user: $XDG_CACHE_HOME/agentm/locks, or below
// ~/.cache.
func Root() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "agentm", "locks"), nil
}

// Place is the path below root of a vault's lock. The vault's name is its real one, so that all
// names of it lead to one lock.
func Place(root, vault string) string {
	sum := sha256.Sum256([]byte(vault))
	return filepath.Join(root, hex.EncodeToString(sum[:]), "lock")
}

// Lock is one user of a mutex, for any number of goroutines. They wait for each other
// as long as their contexts let them; the time-out is for other processes.
type Lock struct {
	vault int    // descriptor of the directory
	place string // of agentm's lock
	opts  Options
	turn  chan struct{} // has one element while a goroutine has the turn
}

// New is a user of the mutex of a vault, by a descriptor that no other code locks and that stays
// open as long as the mutex is used, with agentm's lock at a place. It makes no file.
func New(vault int, place string, o Options) *Lock {
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
	return &Lock{vault: vault, place: place, opts: o, turn: make(chan struct{}, 1)}
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
	place  string        // of agentm's lock; "": no such lock is seen
}

// Error names the lock, so that a person can look for its holder.
func (e *TimeoutError) Error() string {
	if e.place == "" {
		return fmt.Sprintf("another process of wsmount has held the lock of the vault's directory (flock) for %v", e.Waited.Round(time.Millisecond))
	}
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
func (l *Lock) acquire(ctx context.Context) (*Held, error) {
	wait := &patience{lock: l, ctx: ctx, began: l.opts.Now(), pause: firstPause}
	for {
		locked, err := localdir.TryLock(l.vault)
		if err == nil && locked {
			break
		}
		if err == nil {
			err = wait.once()
		}
		if err != nil {
			return nil, err
		}
	}
	dir, err := l.makeOwn(ctx, wait)
	if err != nil {
		return nil, errors.Join(err, localdir.Unlock(l.vault))
	}
	return l.hold(ctx, dir), nil
}

// makeOwn makes the directory when no other process has it.
func (l *Lock) makeOwn(ctx context.Context, wait *patience) (*os.File, error) {
	for {
		dir, err := l.make()
		if !errors.Is(err, fs.ErrExist) {
			return dir, err
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

// make makes the directory, and opens it: an open directory keeps its inode number, by which it
// is recognized.
func (l *Lock) make() (*os.File, error) {
	err := os.Mkdir(l.place, 0o700)
	if errors.Is(err, fs.ErrNotExist) { // the first of this user, or a cache that was cleared
		if err := os.MkdirAll(filepath.Dir(l.place), 0o700); err != nil {
			return nil, err
		}
		err = os.Mkdir(l.place, 0o700)
	}
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(l.place)
	if err != nil {
		return nil, errors.Join(err, os.Remove(l.place))
	}
	return dir, nil
}

// takeOver removes the directory of a holder that is dead, and reports whether the way is free.
// It looks twice: a machine that slept makes the lock of each holder look old, and in the pause a
// holder that woke up finishes its change.
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

// age is the time since a holder showed that it lives.
func (l *Lock) age(fi fs.FileInfo) time.Duration { return max(0, l.opts.Now().Sub(fi.ModTime())) }

// look is the present directory, nil if none can be seen.
func (l *Lock) look() fs.FileInfo {
	fi, err := os.Lstat(l.place)
	if err != nil {
		return nil
	}
	return fi
}

// isSame reports whether the holder showed nothing between two looks.
func isSame(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime())
}

// patience is the waiting of one Acquire. It ends at the time-out with a holder that has shown
// since that it lives: one that was killed just before is waited for until it is stale. While a
// dead one is in the way the time-out does not begin, so that the processes that wait behind the
// one that takes over do not all fail.
type patience struct {
	lock  *Lock
	ctx   context.Context
	began time.Time
	pause time.Duration
	seen  fs.FileInfo // the directory at the last look
	late  fs.FileInfo // and at the time-out
	isOut bool        // the time-out is over
}

// once waits for the next attempt. Pauses get longer.
func (w *patience) once() error {
	l := w.lock
	now, holder := l.opts.Now(), l.look()
	if w.seen != nil && !isSame(w.seen, holder) && now.Sub(w.seen.ModTime()) > l.opts.Stale {
		w.began, w.isOut = now, false
	}
	w.seen = holder
	rest := l.opts.Timeout - now.Sub(w.began)
	if rest <= 0 {
		if !w.isOut {
			w.isOut, w.late = true, holder
		}
		if w.mayBeDead(now, holder) {
			rest = lastPause
		} else {
			e := &TimeoutError{Waited: now.Sub(w.began)}
			if holder != nil {
				e.place, e.Age = l.place, l.age(holder)
			}
			return e
		}
	}
	pause := min(w.pause, rest)
	w.pause = min(2*w.pause, lastPause)
	return l.opts.Sleep(w.ctx, pause)
}

// mayBeDead reports whether the holder showed nothing since the time-out, and cannot be called
// dead yet. One that is taken for dead is taken over within two pauses, or stands still behind
// the lock of the directory.
func (w *patience) mayBeDead(now time.Time, holder fs.FileInfo) bool {
	if holder == nil || !isSame(w.late, holder) {
		return false
	}
	age := now.Sub(holder.ModTime()) // negative, of a clock that was put back: it never gets stale
	return age >= 0 && age <= w.lock.opts.Stale+3*lastPause
}

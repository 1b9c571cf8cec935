// Package flock locks data that programs of this machine share, by flock(2) of a file in it: one
// alone may change it, or several may read it at once.
//
//	l, err := flock.Exclusive(filepath.Join(dir, "lock"))
//	defer l.Close()
//
// It promises that a reader keeps no writer waiting for long, and no other reader:
// Exclusive waits for readers, which are quick. No call waits for an exclusive holder.
package flock

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked says that another has the lock, alone if it was to be shared.
var ErrLocked = errors.New("it is locked")

// Lock is held until Close, or the end of the process.
type Lock struct{ f *os.File }

// Exclusive takes the lock of a file alone. A missing file is made.
func Exclusive(path string) (*Lock, error) {
	end := time.Now().Add(patience)
	return exclusive(path, func() bool {
		time.Sleep(pause)
		return time.Now().Before(end)
	})
}

// How long Exclusive waits for readers, and how often it looks for them.
const (
	patience = 5 * time.Second
	pause    = 10 * time.Millisecond
)

// exclusive is Exclusive that asks wait, while there are readers, whether to try again.
func exclusive(path string, wait func() bool) (*Lock, error) {
	for {
		l, err := take(path, unix.LOCK_EX)
		if !errors.Is(err, ErrLocked) {
			return l, err
		}
		reader, rerr := Shared(path)
		if rerr != nil { // it is not readers that have it
			return nil, err
		}
		if rerr = reader.Close(); rerr != nil || !wait() {
			return nil, errors.Join(err, rerr)
		}
	}
}

// Shared takes the lock of a file together with others that do so.
func Shared(path string) (*Lock, error) { return take(path, unix.LOCK_SH) }

func take(path string, how int) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	}
	if err == nil {
		return &Lock{f}, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// Close lets go of the lock, also of a descriptor of it that a child of another goroutine's has
// until it executes its program.
func (l *Lock) Close() error {
	if l == nil {
		return nil
	}
	return errors.Join(unix.Flock(int(l.f.Fd()), unix.LOCK_UN), l.f.Close())
}

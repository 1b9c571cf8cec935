package fetch

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
)

// scratch makes a directory in dir that is gone after release, and takes away those of runs
// that were killed: each is locked for as long as a run needs it.
func scratch(dir string) (path string, release func(), err error) {
	if err := errors.Join(os.MkdirAll(dir, 0o700), state.CheckPrivate(dir)); err != nil {
		return "", nil, err
	}
	unlock, err := hostfile.Lock(filepath.Join(dir, "fetch.lock"), hostfile.Options{})
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	left, err := filepath.Glob(filepath.Join(dir, "fetch-*"))
	if err != nil {
		return "", nil, err
	}
	for _, name := range left {
		if lock := locked(name); lock != nil {
			err = errors.Join(err, os.RemoveAll(name), lock.Close())
		}
	}
	if err != nil {
		return "", nil, err
	}
	if path, err = os.MkdirTemp(dir, "fetch-"); err != nil {
		return "", nil, err
	}
	lock := locked(path)
	return path, func() {
		_ = os.RemoveAll(path) // the next one does otherwise
		if lock != nil {
			lock.Close()
		}
	}, nil
}

// locked is a directory, locked. nil: another process has it, or it is none.
func locked(name string) *os.File {
	d, err := os.Open(name)
	if err != nil {
		return nil
	}
	if unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		d.Close()
		return nil
	}
	return d
}

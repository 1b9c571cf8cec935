package mountpoint

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// What fusermount3 writes is part of the error, not a line of its own before it.
func TestWithStderr(t *testing.T) {
	old := os.Stderr
	said, err := WithStderr(func() error {
		p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "echo not allowed >&2; exit 1"},
			&os.ProcAttr{Files: []*os.File{nil, nil, os.Stderr}})
		if err != nil {
			return err
		}
		_, err = p.Wait()
		return errors.Join(err, syscall.EPERM)
	})
	if said != "not allowed" || !errors.Is(err, syscall.EPERM) || os.Stderr != old {
		t.Errorf("got %q, %v, and standard error is back: %v", said, err, os.Stderr == old)
	}
}

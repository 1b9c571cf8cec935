package cache

import (
	"syscall"
	"testing"
)

// A state directory is free once it is closed, also while a child that is being
// started still has a copy of its descriptors.
func TestFreeOnceClosed(t *testing.T) {
	s := &stateDir{dir: t.TempDir()}
	if err := s.take(); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(s.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	next := &stateDir{dir: s.dir}
	if err := next.take(); err != nil {
		t.Fatal(err)
	}
	if err := next.close(); err != nil {
		t.Error(err)
	}
}

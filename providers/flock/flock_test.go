package flock

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// Readers share a lock, and who wants it alone waits for them; who has it alone is waited for by
// nobody.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	one, other := assert.Of(Shared(path)).OK(t), assert.Of(Shared(path)).OK(t)
	readers := []*Lock{one, other}
	alone := assert.Of(exclusive(path, func() bool {
		assert.OK(t, readers[0].Close())
		readers = readers[1:]
		return true
	})).OK(t)
	assert.Equal(t, len(readers), 0, "readers when one has it alone")
	never := func() bool {
		t.Error("a writer is waited for")
		return false
	}
	assert.Is(t, assert.ErrOf(exclusive(path, never)), ErrLocked, "beside one that has it alone")
	assert.Is(t, assert.ErrOf(Shared(path)), ErrLocked, "a reader beside it")
	assert.OK(t, alone.Close())

	one = assert.Of(Shared(path)).OK(t)
	assert.Is(t, assert.ErrOf(exclusive(path, func() bool { return false })), ErrLocked, "when readers stay")
	assert.OK(t, one.Close())
}

// A lock is free once it is closed, also while a child that is being started still has a copy of
// its descriptor.
func TestFreeOnceClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l := assert.Of(Exclusive(path)).OK(t)
	fd := assert.Of(unix.Dup(int(l.f.Fd()))).OK(t)
	defer unix.Close(fd)
	assert.OK(t, l.Close())
	l = assert.Of(Exclusive(path)).OK(t)
	assert.OK(t, l.Close())
}

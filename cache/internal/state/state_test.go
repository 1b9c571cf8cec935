package state

import (
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// A state directory is free once it is closed, also while a child that is being
// started still has a copy of its descriptors.
func TestFreeOnceClosed(t *testing.T) {
	dir := t.TempDir()
	d, err := Lock(dir)
	assert.OK(t, err)
	assert.Is(t, assert.ErrOf(Lock(dir)), ErrInUse)
	fd, err := syscall.Dup(int(d.lock.Fd()))
	assert.OK(t, err)
	defer syscall.Close(fd)
	assert.OK(t, d.Close())
	next, err := Lock(dir)
	assert.OK(t, err)
	assert.Is(t, next.Close(), nil)
}

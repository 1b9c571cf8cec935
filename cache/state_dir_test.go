package cache

import (
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// A state directory is free once it is closed, also while a child that is being
// started still has a copy of its descriptors.
func TestFreeOnceClosed(t *testing.T) {
	s := &stateDir{dir: t.TempDir()}
	assert.OK(t, s.take())
	fd, err := syscall.Dup(int(s.lock.Fd()))
	assert.OK(t, err)
	defer syscall.Close(fd)
	assert.OK(t, s.close())
	next := &stateDir{dir: s.dir}
	assert.OK(t, next.take())
	assert.Is(t, next.close(), nil)
}

package fs

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// No program that this process starts gets the connection to the kernel: one that lives on would
// keep the mount of a process that was killed.
func TestConnectionIsNotInherited(t *testing.T) {
	tier.RequireFUSE(t)
	s := assert.Of(Serve(t.TempDir(), []Part{{Volume: newFake()}}, Options{})).OK(t)
	fds := connections()
	assert.Equal(t, len(fds), 1, "connections")
	for _, fd := range fds {
		assert.Of(unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)).Equal(t, unix.FD_CLOEXEC, "flags of", fd)
	}
	assert.OK(t, s.Unmount())
	assert.OK(t, s.Wait())
}

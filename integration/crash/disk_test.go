package crash

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
)

// A disk is one whose power can be cut, of a machine of its own.
type disk struct {
	*testrun.Disk
	t     *testing.T
	boots int
}

// newDisk makes a disk at dir. It needs the mounts to itself.
func newDisk(t *testing.T, dir string, size int64) *disk {
	t.Helper()
	d := &disk{Disk: testrun.NewDisk(t, dir, size), t: t}
	t.Cleanup(func() { _ = unix.Unmount(bootID, unix.MNT_DETACH) })
	d.boot()
	return d
}

// bootID is where the kernel tells one boot from another.
const bootID = "/proc/sys/kernel/random/boot_id"

// boot has programs see another boot of the machine.
func (d *disk) boot() {
	d.t.Helper()
	d.boots++
	id := fmt.Sprintf("%s.boot%d", d.Image, d.boots)
	assert.OK(d.t, os.WriteFile(id, fmt.Appendf(nil, "00000000-0000-4000-8000-%012d\n", d.boots), 0o444))
	_ = unix.Unmount(bootID, 0)
	assert.OK(d.t, unix.Mount(id, bootID, "", unix.MS_BIND, ""))
}

// On boots again.
func (d *disk) On() {
	d.t.Helper()
	d.Disk.On()
	d.boot()
}

// fill takes room from the disk until so many bytes are left.
func (d *disk) fill(left int64) {
	d.t.Helper()
	var s unix.Statfs_t
	assert.OK(d.t, unix.Statfs(d.Dir, &s))
	f := assert.Of(os.CreateTemp(d.Dir, "filler-")).OK(d.t)
	defer f.Close()
	for more := int64(s.Bavail)*s.Bsize - left; more > 0; more -= s.Bsize { // the file system takes some itself
		err := unix.Fallocate(int(f.Fd()), 0, 0, more)
		if err == nil {
			return
		}
		assert.Must(d.t, errors.Is(err, unix.ENOSPC), err)
	}
}

// free gives it back.
func (d *disk) free() {
	d.t.Helper()
	fillers := assert.Of(filepath.Glob(filepath.Join(d.Dir, "filler-*"))).OK(d.t)
	for _, f := range fillers {
		assert.OK(d.t, os.Remove(f))
	}
}

package crash

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// A disk is an ext4 of its own, whose power can be cut. Its image is in memory: what is
// lost is what the ext4 has not written to it.
type disk struct {
	t          *testing.T
	image, dir string
	boots      int
}

// newDisk makes a disk at dir. It needs the mounts to itself.
func newDisk(t *testing.T, dir string, size int64) *disk {
	t.Helper()
	tier.RequireTools(t, "mkfs.ext4", "mount", "umount")
	d := &disk{t: t, image: filepath.Join(testrun.InMemory(t), "image"), dir: dir}
	f, err := os.Create(d.image)
	if err == nil {
		err = f.Truncate(size)
	}
	assert.OK(t, err)
	f.Close()
	d.run("mkfs.ext4", "-q", "-m", "0", d.image)
	t.Cleanup(func() {
		_ = unix.Unmount(d.dir, unix.MNT_DETACH)
		_ = unix.Unmount(bootID, unix.MNT_DETACH)
	})
	d.boot()
	return d
}

func (d *disk) run(name string, args ...string) {
	d.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		d.t.Fatalf("%s %s: %v %s", name, strings.Join(args, " "), err, out)
	}
}

// bootID is where the kernel tells one boot from another.
const bootID = "/proc/sys/kernel/random/boot_id"

// boot mounts the disk, and has programs see another boot of the machine.
func (d *disk) boot() {
	d.t.Helper()
	d.run("mount", "-o", "loop", d.image, d.dir)
	d.boots++
	id := fmt.Sprintf("%s.boot%d", d.image, d.boots)
	assert.OK(d.t, os.WriteFile(id, fmt.Appendf(nil, "00000000-0000-4000-8000-%012d\n", d.boots), 0o444))
	_ = unix.Unmount(bootID, 0)
	assert.OK(d.t, unix.Mount(id, bootID, "", unix.MS_BIND, ""))
}

// off takes the power: from here on nothing gets to the disk, and what was not
// there is lost.
func (d *disk) off() {
	d.t.Helper()
	const shutdown, noLogFlush = 0x8004587d, uint32(2)
	dir, err := os.Open(d.dir)
	assert.OK(d.t, err)
	defer dir.Close()
	flags := noLogFlush
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), shutdown, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		d.t.Fatal(errno)
	}
}

// on boots again. Nothing may use the disk any more, but for what is just going.
func (d *disk) on() {
	d.t.Helper()
	harness.Eventually(d.t, "the disk is free", func() bool { return unix.Unmount(d.dir, 0) == nil })
	d.boot()
}

// fill takes room from the disk until so many bytes are left.
func (d *disk) fill(left int64) {
	d.t.Helper()
	var s unix.Statfs_t
	assert.OK(d.t, unix.Statfs(d.dir, &s))
	f, err := os.CreateTemp(d.dir, "filler-")
	assert.OK(d.t, err)
	defer f.Close()
	for more := int64(s.Bavail)*s.Bsize - left; more > 0; more -= s.Bsize { // the file system takes some itself
		err := unix.Fallocate(int(f.Fd()), 0, 0, more)
		if err == nil {
			return
		}
		if !errors.Is(err, unix.ENOSPC) {
			d.t.Fatal(err)
		}
	}
}

// free gives it back.
func (d *disk) free() {
	d.t.Helper()
	fillers, err := filepath.Glob(filepath.Join(d.dir, "filler-*"))
	assert.OK(d.t, err)
	for _, f := range fillers {
		assert.OK(d.t, os.Remove(f))
	}
}

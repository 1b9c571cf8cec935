package testrun

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// A Disk is an ext4 of its own, whose power can be cut. Its image is in memory: what is
// lost is what the ext4 has not written to it.
type Disk struct {
	Dir   string // where it is mounted
	Image string
	t     testing.TB
}

// NewDisk makes a disk at a directory, for a test that has the mounts to itself: in another
// copy of these the disk would live on.
func NewDisk(t testing.TB, dir string, size int64) *Disk {
	t.Helper()
	tier.RequireTools(t, "mkfs.ext4", "mount", "umount")
	d := &Disk{Dir: dir, Image: filepath.Join(InMemory(t), "image"), t: t}
	assert.OK(t, os.WriteFile(d.Image, nil, 0o600))
	assert.OK(t, os.Truncate(d.Image, size))
	d.run("mkfs.ext4", "-q", "-m", "0", d.Image)
	t.Cleanup(func() { _ = unix.Unmount(d.Dir, unix.MNT_DETACH) })
	d.mount()
	return d
}

func (d *Disk) run(name string, args ...string) {
	d.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	assert.OK(d.t, err, name, strings.Join(args, " "), string(out))
}

func (d *Disk) mount() {
	d.t.Helper()
	d.run("mount", "-o", "loop", d.Image, d.Dir)
}

// Off takes the power: from here on nothing gets to the disk, and what was not
// there is lost.
func (d *Disk) Off() {
	d.t.Helper()
	const shutdown, noLogFlush = 0x8004587d, uint32(2)
	dir, err := os.Open(d.Dir)
	assert.OK(d.t, err)
	defer dir.Close()
	flags := noLogFlush
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), shutdown, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		d.t.Fatal(errno)
	}
}

// On gives the power back. Nothing may use the disk any more, but for what is just going.
func (d *Disk) On() {
	d.t.Helper()
	assert.Eventually(d.t, "the disk is free", func() bool { return unix.Unmount(d.Dir, 0) == nil })
	d.mount()
}

// Files is what lies on the disk, as "d/ d/f=content".
func (d *Disk) Files() string {
	d.t.Helper()
	var files []string
	assert.OK(d.t, filepath.WalkDir(d.Dir, func(path string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, d.Dir+"/")
		switch {
		case err != nil || path == d.Dir:
			return err
		case name == "lost+found":
			return fs.SkipDir
		case e.IsDir():
			files = append(files, name+"/")
			return nil
		}
		content, err := os.ReadFile(path)
		files = append(files, name+"="+string(content))
		return err
	}))
	return strings.Join(files, " ")
}

package testrun

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	memoryBase = "/dev/shm"
	// leastMemory is what must be free there: tests beside each other fill disks in it.
	leastMemory = 2 << 30
)

// InMemory is a new directory, in memory if there is some for programs and files, for a
// test that asks nothing of the disk: no sync of others is waited for there. Its path is
// short, and every user may pass it. What a killed test leaves the next run sweeps.
func InMemory(t interface {
	Helper()
	TempDir() string
	Cleanup(func())
}) string {
	t.Helper()
	base, prefix := memoryBase, prefix
	var s unix.Statfs_t
	err := unix.Statfs(base, &s)
	if err != nil || s.Type != unix.TMPFS_MAGIC || s.Flags&unix.ST_NOEXEC != 0 || s.Bavail*uint64(s.Bsize) < leastMemory {
		base, prefix = "", "t"
	}
	dir, err := os.MkdirTemp(base, prefix)
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	lock, err := claim(dir)
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { lock.Close() })
	in := filepath.Join(dir, "in")
	if err := errors.Join(os.Mkdir(in, 0o755), os.Chmod(dir, 0o755)); err != nil {
		return t.TempDir()
	}
	return in
}

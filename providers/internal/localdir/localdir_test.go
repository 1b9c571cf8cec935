package localdir

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// The lock is of the directory, under whatever name it is opened, and leaves nothing in it.
func TestLock(t *testing.T) {
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	assert.OK(t, os.Symlink(dir, link))
	var opened []int
	for _, name := range []string{dir, link} {
		fd := assert.Of(unix.Open(name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)).OK(t)
		defer unix.Close(fd)
		opened = append(opened, fd)
	}
	try := func(fd int, want bool) {
		t.Helper()
		assert.Of(TryLock(fd)).Equal(t, want, "locked")
	}
	try(opened[0], true)
	try(opened[1], false)
	assert.OK(t, Unlock(opened[0]))
	try(opened[1], true)
	assert.Equal(t, len(assert.Of(os.ReadDir(dir)).OK(t)), 0, "entries")
	noFile := assert.Of(unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)).OK(t)
	defer unix.Close(noFile)
	assert.Is(t, assert.ErrOf(TryLock(noFile)), providers.ErrUnsupported)
}

// What is made is on the disk, each name in its directory, before anything lies below it.
func TestMkdirAll(t *testing.T) {
	dir := t.TempDir()
	want := filepath.Join(dir, "a", "b", "c")
	var synced []string
	sync := func(parent string) error { synced = append(synced, parent); return nil }
	for range 2 {
		assert.OK(t, mkdirAll(want, sync))
	}
	assert.Slice(t, synced, []string{dir, filepath.Join(dir, "a"), filepath.Join(dir, "a", "b")})
	assert.Equal(t, assert.Of(os.Stat(want)).OK(t).Mode(), os.ModeDir|0o700)
	assert.Is(t, mkdirAll(filepath.Join(dir, "d"), func(string) error { return unix.EIO }), unix.EIO)
	assert.OK(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for _, name := range []string{"file", "file/below"} {
		assert.Is(t, MkdirAll(filepath.Join(dir, name)), unix.ENOTDIR, name)
	}
}

// What is not there yet is told of by what is.
func TestNotThereYet(t *testing.T) {
	dir := t.TempDir()
	assert.OK(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	assert.OK(t, os.Symlink("real", filepath.Join(dir, "link")))
	assert.OK(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
	got := assert.Of(Real(filepath.Join(dir, "link", "a", "b"))).OK(t)
	assert.Equal(t, got, filepath.Join(dir, "real", "a", "b"))
	assert.OK(t, CheckWritable(got))
	for _, name := range []string{"file", "file/below"} {
		assert.Is(t, CheckWritable(filepath.Join(dir, name)), unix.ENOTDIR, name)
	}
	assert.Equal(t, len(assert.Of(os.ReadDir(filepath.Join(dir, "real"))).OK(t)), 0, "entries that looking made")
}

package integration

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// A directory that was removed while a program is in it, and comes back because
// others have put something into it, is a directory like any other; the program
// stays in the one that was removed, as on a local disk.
func TestCopyDirectoryComesBack(t *testing.T) {
	t.Parallel()
	c := copyFlavour{name: "store", sync: "mode: pull-push, pull: {on: turn-start}, commit: {on: per-turn}"}.mount(t)
	mkdirAll(t, c.Dir+"/a/b")
	for _, path := range []string{"/kept", "/a/f", "/a/b/f"} {
		write(t, c.Dir+path, "ours")
	}
	c.must(c.event("turn-end"))
	held := []*os.File{openDir(t, c.Dir+"/a"), openDir(t, c.Dir+"/a/b")}
	c.must(os.RemoveAll(c.Dir + "/a"))
	c.tamper("a/b/theirs", []byte("theirs"))
	c.must(c.event("turn-end")) // what it deletes is refused
	for _, dir := range held {
		isRemoved(t, dir)
	}
	if got, err := os.ReadFile(c.Dir + "/a/b/theirs"); err != nil || string(got) != "theirs" {
		t.Errorf("got %q, %v", got, err)
	}
	write(t, c.Dir+"/a/b/f", "new")
	c.must(os.Mkdir(c.Dir+"/a/c", 0o755))
	for _, dir := range []string{"/a", "/a/b"} {
		if got, err := os.ReadDir(c.Dir + dir); err != nil || len(got) != 2 {
			t.Errorf("%s has %v, %v", dir, got, err)
		}
	}
	for _, dir := range held {
		isRemoved(t, dir)
	}
	c.must(c.event("turn-end"))
	if left, err := c.unsaved(); left != "" || err != nil {
		t.Errorf("unsaved: %s, %v", left, err)
	}
}

func openDir(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	assert.OK(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// isRemoved checks that an open directory is one that was removed.
func isRemoved(t *testing.T, dir *os.File) {
	t.Helper()
	for _, name := range []string{"b", "f", "theirs"} {
		var st unix.Stat_t
		if err := unix.Fstatat(int(dir.Fd()), name, &st, 0); !errors.Is(err, unix.ENOENT) {
			t.Errorf("%s in the removed %s: %v", name, dir.Name(), err)
		}
	}
	if err := unix.Mkdirat(int(dir.Fd()), "new", 0o755); !errors.Is(err, unix.ENOENT) {
		t.Errorf("mkdir in the removed %s: %v", dir.Name(), err)
	}
	if names, err := dir.Readdirnames(-1); len(names) > 0 || err != nil && !errors.Is(err, unix.ENOENT) {
		t.Errorf("the removed %s lists %q, %v", dir.Name(), names, err)
	}
}

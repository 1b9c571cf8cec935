package hostfile

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// tree makes a directory that only the user can write and returns it.
func tree(t *testing.T) string {
	t.Helper()
	d := assert.Of(filepath.EvalSymlinks(t.TempDir())).OK(t)
	assert.OK(t, os.Chmod(d, 0o700))
	return d
}

func put(t *testing.T, path string, mode fs.FileMode) string {
	t.Helper()
	assert.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
	assert.OK(t, os.WriteFile(path, []byte("x: 1\n"), 0o600))
	assert.OK(t, os.Chmod(path, mode))
	return path
}

// Each row names who could have written what is read.
func TestRead(t *testing.T) {
	const other = 12345 // another user
	for _, c := range []struct {
		name    string
		path    string // below the directory; empty: c
		mode    fs.FileMode
		link    string // it is a symbolic link to this
		modes   map[string]fs.FileMode
		foreign string // what another user owns
		private bool
		want    error // nil: read
	}{
		{name: "own file", mode: 0o644},
		{name: "own private file", private: true},
		{name: "link of ours in a directory of ours", link: "real"},
		{name: "group can write the file", mode: 0o664, want: ErrUntrusted},
		{name: "everybody can write the file", mode: 0o646, want: ErrUntrusted},
		{name: "others can replace the file", path: "open/c", modes: map[string]fs.FileMode{"open": 0o777}, want: ErrUntrusted},
		{name: "others can replace its directory", path: "open/sub/c", modes: map[string]fs.FileMode{"open": 0o777}, want: ErrUntrusted},
		{name: "file of another user", foreign: "c", want: ErrUntrusted},
		{name: "planted by another user in a sticky directory", path: "tmp/dir/c", modes: map[string]fs.FileMode{"tmp": 0o777 | fs.ModeSticky}, foreign: "tmp/dir", want: ErrUntrusted},
		{name: "link planted by another user", path: "tmp/c", link: "../real", modes: map[string]fs.FileMode{"tmp": 0o777 | fs.ModeSticky}, foreign: "tmp/c", want: ErrUntrusted},
		{name: "link of another user in a directory of ours", link: "real", foreign: "c", want: ErrUntrusted},
		{name: "ours in a sticky directory", path: "tmp/c", modes: map[string]fs.FileMode{"tmp": 0o777 | fs.ModeSticky}},
		{name: "secret that others can read", mode: 0o644, private: true, want: ErrUntrusted},
		{name: "secret that the group can read", mode: 0o640, private: true, want: ErrUntrusted},
		{name: "link to itself", link: "c", want: unix.ELOOP},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := tree(t)
			name := d + "/" + cmp.Or(c.path, "c")
			if c.link == "" {
				put(t, name, cmp.Or(c.mode, 0o600))
			} else {
				put(t, d+"/real", 0o600)
				assert.OK(t, os.MkdirAll(filepath.Dir(name), 0o700))
				assert.OK(t, os.Symlink(c.link, name))
			}
			for dir, mode := range c.modes {
				assert.OK(t, os.Chmod(d+"/"+dir, mode))
			}
			if c.foreign != "" {
				tier.RequireRoot(t)
				assert.OK(t, os.Lchown(d+"/"+c.foreign, other, other))
			}
			checkRead(t, c.name, name, c.private, c.want)
		})
	}
	d := tree(t)
	assert.OK(t, unix.Mkfifo(d+"/pipe", 0o600))
	checkRead(t, "pipe", d+"/pipe", false, ErrUntrusted)
	checkRead(t, "directory", d, false, ErrUntrusted)
	checkRead(t, "absent", d+"/none", false, fs.ErrNotExist)
	checkRead(t, "file as a directory", put(t, d+"/c", 0o600)+"/x", false, unix.ENOTDIR)
}

func checkRead(t *testing.T, what, path string, private bool, want error) {
	t.Helper()
	f, err := Read(path, Options{Private: private})
	assert.Is(t, err, want, what)
	assert.Equal(t, f != nil && string(f.Data) == "x: 1\n", want == nil, what, "is read")
	var e *Error
	assert.False(t, errors.As(err, &e) && e.Hint == "", what, "says nothing of what to do", err)
}

func TestReadIsBounded(t *testing.T) {
	p := put(t, tree(t)+"/c", 0o600)
	assert.Is(t, assert.ErrOf(Read(p, Options{MaxBytes: 4})), ErrUntrusted, "5 bytes with a bound of 4")
	assert.Is(t, assert.ErrOf(Read(p, Options{MaxBytes: 5})), nil, "5 bytes with a bound of 5")
}

func TestResolveReturnsTheRealPath(t *testing.T) {
	d := tree(t)
	put(t, d+"/a/b/c", 0o600)
	assert.OK(t, os.Symlink(d+"/a/b", d+"/l"))
	got, err := Resolve(d+"/l/../b/./c", Options{})
	want := d + "/a/b/c"
	assert.True(t, err == nil && got == want, got, want, err)
	assert.True(t, assert.ErrOf(Resolve("relative", Options{})) != nil, "a relative path was resolved")
}

func TestCheckDir(t *testing.T) {
	d := tree(t)
	assert.OK(t, os.Mkdir(d+"/sticky", 0o700))
	assert.OK(t, os.Chmod(d+"/sticky", 0o777|fs.ModeSticky))
	assert.Is(t, assert.ErrOf(CheckDir(d+"/sticky", Options{})), ErrUntrusted, "a directory where others can create names")
	assert.Of(CheckDir(d, Options{})).Equal(t, d)
}

func TestCheckProgram(t *testing.T) {
	d := tree(t)
	assert.Is(t, assert.ErrOf(CheckProgram(put(t, d+"/ok", 0o755), Options{})), nil)
	assert.Is(t, assert.ErrOf(CheckProgram(put(t, d+"/open", 0o777), Options{})), ErrUntrusted, "a program that others can change")
	assert.Is(t, assert.ErrOf(CheckProgram(put(t, d+"/plain", 0o644), Options{})), ErrUntrusted, "a file that is no program")
}

func TestExpand(t *testing.T) {
	for _, c := range []struct{ name, path, home, want string }{
		{"home", "~/a/../b", "/home/u", "/home/u/b"},
		{"home itself", "~", "/home/u", "/home/u"},
		{"relative", "a", "/home/u", "/base/a"},
		{"absolute", "/x//y", "/home/u", "/x/y"},
		{"another home", "~root/x", "/home/u", ""},
		{"empty", "", "/home/u", ""},
		{"no home", "~/x", "", ""},
	} {
		got, err := Expand(c.path, c.home, "/base")
		assert.True(t, got == c.want && (err == nil) == (c.want != ""), c.name, got, c.want, err)
	}
}

func TestWriteAtomic(t *testing.T) {
	d := tree(t)
	p := put(t, d+"/r", 0o644)
	old := assert.Of(os.Open(p)).OK(t)
	defer old.Close()
	assert.OK(t, WriteAtomic(p, []byte("new"), Options{}))
	st := assert.Of(os.Stat(p)).OK(t)
	before := assert.Of(old.Stat()).OK(t)
	if st.Mode().Perm() != 0o600 || os.SameFile(st, before) {
		t.Errorf("mode %v, same file %v", st.Mode(), os.SameFile(st, before))
	}
	names, _ := os.ReadDir(d)
	assert.True(t, len(names) == 1, "left behind", names)
	another := filepath.Join(d, "another")
	assert.OK(t, WriteAtomic(another, []byte("new"), Options{}))
	tier.OnDisk(t, another)
	assert.OK(t, os.Chmod(d, 0o777))
	assert.Is(t, WriteAtomic(p, nil, Options{}), ErrUntrusted, "into a directory of others")
}

// A file that is replaced keeps its mode, and one that has changed is not replaced.
func TestReplace(t *testing.T) {
	d := tree(t)
	p := put(t, d+"/r", 0o644)
	f := assert.Of(Read(p, Options{})).OK(t)
	assert.OK(t, f.Replace([]byte("new"), Options{}))
	assert.Is(t, f.Replace([]byte("newer"), Options{}), ErrChanged)
	got := assert.Of(Read(p, Options{})).OK(t)
	assert.Equal(t, string(got.Data), "new")
	assert.Equal(t, got.Stat.Mode&0o777, 0o644)
	names, _ := os.ReadDir(d)
	assert.True(t, len(names) == 1, "left behind", names)
	assert.OK(t, os.Remove(p))
	assert.Is(t, got.Replace(nil, Options{}), fs.ErrNotExist)
}

func TestLockExcludes(t *testing.T) {
	p := tree(t) + "/lock"
	unlock := assert.Of(Lock(p, Options{})).OK(t)
	got := make(chan func())
	go func() {
		second, err := Lock(p, Options{})
		assert.Is(t, err, nil)
		got <- second
	}()
	fd := assert.Of(unix.Open(p, unix.O_RDWR, 0)).OK(t)
	defer unix.Close(fd)
	assert.Is(t, unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK, "the lock is not held")
	unlock()
	(<-got)()
}

package hostfile

import (
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
	d, err := filepath.EvalSymlinks(t.TempDir())
	assert.OK(t, err)
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

// root requires root, to give files away.
func root(t *testing.T) { tier.RequireRoot(t) }

// Each row names who could have written what is read.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, d string) string
		private bool
		want    error // nil: read
	}{
		{name: "own file", prepare: func(t *testing.T, d string) string { return put(t, d+"/c", 0o644) }},
		{name: "own private file", private: true, prepare: func(t *testing.T, d string) string { return put(t, d+"/c", 0o600) }},
		{name: "link of ours in a directory of ours", prepare: func(t *testing.T, d string) string {
			put(t, d+"/real/c", 0o644)
			assert.OK(t, os.Symlink("real", d+"/link"))
			return d + "/link/c"
		}},
		{name: "group can write the file", want: ErrUntrusted, prepare: func(t *testing.T, d string) string { return put(t, d+"/c", 0o664) }},
		{name: "everybody can write the file", want: ErrUntrusted, prepare: func(t *testing.T, d string) string { return put(t, d+"/c", 0o646) }},
		{name: "others can replace the file", want: ErrUntrusted, prepare: func(t *testing.T, d string) string {
			p := put(t, d+"/open/c", 0o600)
			assert.OK(t, os.Chmod(d+"/open", 0o777))
			return p
		}},
		{name: "others can replace its directory", want: ErrUntrusted, prepare: func(t *testing.T, d string) string {
			p := put(t, d+"/open/sub/c", 0o600)
			assert.OK(t, os.Chmod(d+"/open", 0o777))
			return p
		}},
		{name: "file of another user", want: ErrUntrusted, prepare: func(t *testing.T, d string) string {
			root(t)
			p := put(t, d+"/c", 0o600)
			assert.OK(t, os.Chown(p, 12345, 12345))
			return p
		}},
		{name: "planted by another user in a sticky directory", want: ErrUntrusted, prepare: func(t *testing.T, d string) string {
			root(t)
			p := put(t, d+"/tmp/dir/c", 0o644)
			assert.OK(t, os.Chmod(d+"/tmp", 0o777|fs.ModeSticky))
			assert.OK(t, os.Chown(d+"/tmp/dir", 12345, 12345))
			return p
		}},
		{name: "link planted by another user", want: ErrUntrusted, prepare: func(t *testing.T, d string) string {
			root(t)
			put(t, d+"/real", 0o600)
			assert.OK(t, os.Mkdir(d+"/tmp", 0o700))
			assert.OK(t, os.Symlink(d+"/real", d+"/tmp/c"))
			assert.OK(t, os.Lchown(d+"/tmp/c", 12345, 12345))
			assert.OK(t, os.Chmod(d+"/tmp", 0o777|fs.ModeSticky))
			return d + "/tmp/c"
		}},
		{name: "link of another user in a directory of ours", want: ErrUntrusted, prepare: func(t *testing.T, d string) string {
			root(t)
			put(t, d+"/real", 0o600)
			assert.OK(t, os.Symlink("real", d+"/c"))
			assert.OK(t, os.Lchown(d+"/c", 12345, 12345))
			return d + "/c"
		}},
		{name: "ours in a sticky directory", prepare: func(t *testing.T, d string) string {
			p := put(t, d+"/tmp/c", 0o600)
			assert.OK(t, os.Chmod(d+"/tmp", 0o777|fs.ModeSticky))
			return p
		}},
		{name: "secret that others can read", private: true, want: ErrUntrusted, prepare: func(t *testing.T, d string) string { return put(t, d+"/c", 0o644) }},
		{name: "secret that the group can read", private: true, want: ErrUntrusted, prepare: func(t *testing.T, d string) string { return put(t, d+"/c", 0o640) }},
		{name: "pipe", want: ErrUntrusted, prepare: func(t *testing.T, d string) string {
			assert.OK(t, unix.Mkfifo(d+"/c", 0o600))
			return d + "/c"
		}},
		{name: "directory", want: ErrUntrusted, prepare: func(t *testing.T, d string) string { return d }},
		{name: "absent", want: fs.ErrNotExist, prepare: func(t *testing.T, d string) string { return d + "/none" }},
		{name: "link to itself", want: unix.ELOOP, prepare: func(t *testing.T, d string) string {
			assert.OK(t, os.Symlink("c", d+"/c"))
			return d + "/c"
		}},
		{name: "file as a directory", want: unix.ENOTDIR, prepare: func(t *testing.T, d string) string { return put(t, d+"/c", 0o600) + "/x" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := c.prepare(t, tree(t))
			f, err := Read(path, Options{Private: c.private})
			if c.want == nil && (err != nil || string(f.Data) != "x: 1\n") {
				t.Fatalf("Read = %v, want its contents", err)
			}
			if c.want != nil && !errors.Is(err, c.want) {
				t.Fatalf("Read = %v, want %v", err, c.want)
			}
			var e *Error
			if errors.As(err, &e) && e.Hint == "" {
				t.Errorf("%v says nothing of what to do", err)
			}
		})
	}
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
	if want := d + "/a/b/c"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := Resolve("relative", Options{}); err == nil {
		t.Error("a relative path was resolved")
	}
}

func TestCheckDir(t *testing.T) {
	d := tree(t)
	assert.OK(t, os.Mkdir(d+"/sticky", 0o700))
	assert.OK(t, os.Chmod(d+"/sticky", 0o777|fs.ModeSticky))
	if _, err := CheckDir(d+"/sticky", Options{}); !errors.Is(err, ErrUntrusted) {
		t.Errorf("a directory where others can create names: %v", err)
	}
	if got, err := CheckDir(d, Options{}); err != nil || got != d {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestCheckProgram(t *testing.T) {
	d := tree(t)
	assert.Is(t, assert.ErrOf(CheckProgram(put(t, d+"/ok", 0o755), Options{})), nil)
	if _, err := CheckProgram(put(t, d+"/open", 0o777), Options{}); !errors.Is(err, ErrUntrusted) {
		t.Errorf("a program that others can change: %v", err)
	}
	if _, err := CheckProgram(put(t, d+"/plain", 0o644), Options{}); !errors.Is(err, ErrUntrusted) {
		t.Errorf("a file that is no program: %v", err)
	}
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
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

func TestWriteAtomic(t *testing.T) {
	d := tree(t)
	p := put(t, d+"/r", 0o644)
	old, err := os.Open(p)
	assert.OK(t, err)
	defer old.Close()
	assert.OK(t, WriteAtomic(p, []byte("new"), Options{}))
	st, err := os.Stat(p)
	assert.OK(t, err)
	before, err := old.Stat()
	assert.OK(t, err)
	if st.Mode().Perm() != 0o600 || os.SameFile(st, before) {
		t.Errorf("mode %v, same file %v", st.Mode(), os.SameFile(st, before))
	}
	if names, _ := os.ReadDir(d); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
	assert.OK(t, os.Chmod(d, 0o777))
	assert.Is(t, WriteAtomic(p, nil, Options{}), ErrUntrusted, "into a directory of others")
}

func TestLockExcludes(t *testing.T) {
	p := tree(t) + "/lock"
	unlock, err := Lock(p, Options{})
	assert.OK(t, err)
	got := make(chan func())
	go func() {
		second, err := Lock(p, Options{})
		assert.Is(t, err, nil)
		got <- second
	}()
	fd, err := unix.Open(p, unix.O_RDWR, 0)
	assert.OK(t, err)
	defer unix.Close(fd)
	assert.Is(t, unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK, "the lock is not held")
	unlock()
	(<-got)()
}

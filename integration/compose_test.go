package integration

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// family registers workspaces @acme/<name>, each with a file "from" that holds
// its name, and returns their directories.
func family(t *testing.T, w *harness.World, names ...string) map[string]string {
	t.Helper()
	dirs := map[string]string{}
	for _, name := range names {
		dirs[name] = w.Workspace("@acme/"+name, "watch")
		w.MustRun("registry", "add", dirs[name])
		write(t, dirs[name]+"/from", name)
	}
	return dirs
}

func write(t *testing.T, path, text string) {
	t.Helper()
	assert.OK(t, os.WriteFile(path, []byte(text), 0o644))
}

func mkdirAll(t *testing.T, path string) {
	t.Helper()
	assert.OK(t, os.MkdirAll(path, 0o755))
}

func checkContent(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s: got %q, %v; want %q", filepath.Base(path), got, err, want)
	}
}

// checkErr checks that a call ended with an errno; nil is success.
func checkErr(t *testing.T, what string, got, want error) {
	t.Helper()
	assert.Is(t, got, want, what)
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	assert.OK(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A mount point cannot be taken away, and nothing moves from one part to
// another by rename or link.
func TestCompositionBorders(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{})
	dirs := family(t, w, "app", "lib")
	mkdirAll(t, dirs["app"]+"/up/lib")
	mkdirAll(t, dirs["app"]+"/d")
	m := w.Mount("@acme/app", "--mount", "at=/up/lib,source=@acme/lib")
	at := func(p string) string { return filepath.Join(m.Dir, p) }
	checkErr(t, "rmdir of a mount point", unix.Rmdir(at("up/lib")), syscall.EBUSY)
	checkErr(t, "rename of a mount point", unix.Rename(at("up/lib"), at("x")), syscall.EBUSY)
	checkErr(t, "rename over a mount point", unix.Rename(at("d"), at("up/lib")), syscall.EBUSY)
	checkErr(t, "rename of its parent", unix.Rename(at("up"), at("x")), syscall.EBUSY)
	checkErr(t, "rename across", unix.Rename(at("up/lib/from"), at("x")), syscall.EXDEV)
	checkErr(t, "rename across, back", unix.Rename(at("from"), at("up/lib/x")), syscall.EXDEV)
	checkErr(t, "link across", unix.Link(at("from"), at("up/lib/x")), syscall.EXDEV)
	checkErr(t, "exchange across", unix.Renameat2(unix.AT_FDCWD, at("from"), unix.AT_FDCWD, at("up/lib/from"), unix.RENAME_EXCHANGE), syscall.EXDEV)
	checkErr(t, "mkdir of a mount point", unix.Mkdir(at("up/lib"), 0o755), syscall.EEXIST)
	checkContent(t, at("up/lib/from"), "lib")
	checkContent(t, at("from"), "app")
	checkNumbers(t, at("from"), at("up/lib/from"), at("up/lib"), at("up"), m.Dir)
}

// checkNumbers checks that files of all parts have numbers of their own.
func checkNumbers(t *testing.T, paths ...string) {
	t.Helper()
	seen := map[uint64]string{}
	for _, p := range paths {
		var st unix.Stat_t
		assert.OK(t, unix.Stat(p, &st))
		assert.Equal(t, seen[st.Ino], "", p, "shares its number", st.Ino)
		seen[st.Ino] = p
	}
}

// A part is as read-only as the manifest, the mount or its parent says.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		flags []string
		ro    map[string]bool // by part
	}{
		{"whole tree", []string{"--read-only", "--mount", "at=/lib,source=@acme/lib"}, map[string]bool{"": true, "lib": true}},
		{"one part", []string{"--mount", "at=/lib,source=@acme/lib,mode=read-only"}, map[string]bool{"": false, "lib": true}},
		{"below a read-only part", []string{"--mount", "at=/lib,source=@acme/lib,mode=read-only", "--mount", "at=/lib/deep,source=@acme/deep"},
			map[string]bool{"": false, "lib": true, "lib/deep": true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := harness.New(t, harness.Options{})
			family(t, w, "app", "lib", "deep")
			m := w.Mount("@acme/app", c.flags...)
			for part, ro := range c.ro {
				if ro {
					checkReadOnly(t, filepath.Join(m.Dir, part))
				} else {
					write(t, filepath.Join(m.Dir, part, "new"), "x")
				}
			}
			for _, p := range m.Status().Parts {
				refused := c.ro[p.At[1:]] && !c.ro[""] // the kernel refuses by itself where all is read-only
				if c.ro[p.At[1:]] != (p.ReadOnly != "") || refused != (p.Refused > 0) {
					t.Errorf("status of %s: read-only %q, refused %d", p.At, p.ReadOnly, p.Refused)
				}
			}
			var st unix.Statfs_t
			checkErr(t, "statfs", unix.Statfs(m.Dir, &st), nil)
			assert.Equal(t, st.Flags&unix.ST_RDONLY != 0, c.ro[""], "mounted ro")
		})
	}
}

// checkReadOnly tries every kind of change.
func checkReadOnly(t *testing.T, dir string) {
	t.Helper()
	f := dir + "/from"
	now := []unix.Timespec{{Sec: 1}, {Sec: 1}}
	for what, err := range map[string]error{
		"create": os.WriteFile(dir+"/x", nil, 0o644), "write": os.WriteFile(f, nil, 0o644), "truncate": unix.Truncate(f, 0),
		"mkdir": unix.Mkdir(dir+"/x", 0o755), "unlink": unix.Unlink(f), "rename": unix.Rename(f, dir+"/x"),
		"link": unix.Link(f, dir+"/x"), "symlink": unix.Symlink("x", dir+"/x"), "mkfifo": unix.Mkfifo(dir+"/x", 0o644),
		"chmod": unix.Chmod(f, 0o600), "chown": unix.Chown(f, -1, os.Getegid()), "utimes": unix.UtimesNanoAt(unix.AT_FDCWD, f, now, 0),
		"setxattr": unix.Setxattr(f, "user.a", []byte("x"), 0), "removexattr": unix.Removexattr(f, "user.a"),
		"tmpfile": tryOpen(dir, unix.O_RDWR|unix.O_TMPFILE), "O_TRUNC": tryOpen(f, unix.O_RDONLY|unix.O_TRUNC),
	} {
		checkErr(t, what, err, syscall.EROFS)
	}
	checkErr(t, "read", tryOpen(f, unix.O_RDONLY), nil)
	checkContent(t, f, lastName(dir))
}

// lastName is what the file "from" of a part holds: the part's name.
func lastName(dir string) string {
	switch base := filepath.Base(dir); base {
	case "lib", "deep":
		return base
	}
	return "app"
}

func tryOpen(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

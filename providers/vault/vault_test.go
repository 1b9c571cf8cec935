package vault_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/vault"
)

// fixture is a provider and its directory.
func fixture(t *testing.T) (*vault.Provider, string) {
	root := t.TempDir()
	p := open(t, root, t.TempDir())
	t.Cleanup(func() { p.Close() })
	return p, root
}

var (
	loc           = providers.MustLocator
	unconditional = providers.WriteOptions{If: providers.Unconditional()}
)

func write(t *testing.T, p providers.Provider, name, content string) providers.Info {
	t.Helper()
	return assert.Of(p.Write(t.Context(), loc(name), providers.String(content), unconditional)).OK(t)
}

// The disk has what a verb answers for.
func TestWritesReachTheDisk(t *testing.T) {
	p, root := fixture(t)
	write(t, p, "d/f", "content")
	tier.OnDisk(t, filepath.Join(root, "d/f"))
}

// A name that a verb has answered for is so after a loss of power. One is called with each
// boot: what the disk writes for the next would bring it there too.
func TestNamesSurviveALossOfPower(t *testing.T) {
	if !testrun.Private(t) {
		return
	}
	disk, locks := testrun.NewDisk(t, t.TempDir(), 64<<20), t.TempDir()
	whatever := providers.Unconditional()
	for _, step := range []struct {
		verb string
		do   func(p *vault.Provider) error
		want string
	}{
		{"write", func(p *vault.Provider) error { write(t, p, "d/f", "one"); return nil }, "d/ d/f=one"},
		{"replace", func(p *vault.Provider) error { write(t, p, "d/f", "two"); return nil }, "d/ d/f=two"},
		{"move", func(p *vault.Provider) error {
			return assert.ErrOf(p.Move(t.Context(), loc("d/f"), loc("d/g"), providers.MoveOptions{Source: whatever, Target: whatever}))
		}, "d/ d/g=two"},
		{"delete", func(p *vault.Provider) error {
			return p.Delete(t.Context(), loc("d/g"), providers.DeleteOptions{If: whatever})
		}, "d/"},
		{"mkdir", func(p *vault.Provider) error {
			return assert.ErrOf(p.Mkdir(t.Context(), loc("h"), providers.MkdirOptions{}))
		}, "d/ h/"},
	} {
		p := open(t, disk.Dir, locks)
		assert.OK(t, step.do(p))
		disk.Off()
		p.Close()
		disk.On()
		assert.Equal(t, disk.Files(), step.want, step.verb)
	}
}

// No link that stands in the tree leads any verb out of it.
func TestConfined(t *testing.T) {
	p, root := fixture(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "sub", "secret")
	assert.OK(t, os.Mkdir(filepath.Dir(secret), 0o755))
	assert.OK(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("outside"), 0o600))
	assert.OK(t, os.WriteFile(secret, []byte("outside"), 0o600))
	assert.OK(t, os.Symlink(outside, filepath.Join(root, "absolute")))
	assert.OK(t, os.Symlink(assert.Of(filepath.Rel(root, outside)).OK(t), filepath.Join(root, "relative")))
	assert.OK(t, os.Symlink(secret, filepath.Join(root, "file")))
	for _, dir := range []string{"absolute", "relative", "absolute/sub", "relative/sub"} {
		l := loc(dir + "/secret")
		assert.Is(t, assert.ErrOf(p.Stat(t.Context(), l)), providers.ErrNotExist, "stat")
		assert.Is(t, assert.ErrOf(p.Read(t.Context(), l, providers.ReadOptions{})), providers.ErrNotExist, "read")
		assert.Is(t, assert.ErrOf(p.Write(t.Context(), l, providers.String("x"), unconditional)), providers.ErrNotDir, "write")
		assert.Is(t, p.Delete(t.Context(), l, providers.DeleteOptions{If: providers.IfDir()}), providers.ErrNotExist, "delete")
		_, err := p.Mkdir(t.Context(), loc(dir+"/new"), providers.MkdirOptions{})
		assert.Is(t, err, providers.ErrNotDir, "mkdir")
		_, err = p.List(t.Context(), loc(dir), providers.ListOptions{})
		assert.True(t, err != nil, "list of", dir, "went outside")
	}
	mode := providers.Attr{Valid: providers.AttrMode | providers.AttrModTime, Mode: 0o777, ModTime: time.Unix(1, 0)}
	assert.OK(t, assert.ErrOf(p.SetAttr(t.Context(), loc("file"), providers.SetAttrOptions{If: providers.Unconditional(), Attr: mode})))
	write(t, p, "file", "in place of the link")
	content, _ := os.ReadFile(secret)
	st, _ := os.Stat(secret)
	entries, _ := os.ReadDir(filepath.Dir(secret))
	above, _ := os.ReadDir(outside)
	entries = append(entries, above[2:]...)
	if string(content) != "outside" || st.Mode() != 0o600 || st.ModTime().Unix() == 1 || len(entries) != 1 {
		t.Errorf("outside: content %q, mode %v, mtime %v, %d entries", content, st.Mode(), st.ModTime(), len(entries))
	}
}

// A directory that others turn into a link and back, while we write below it, never leads out.
func TestSwappedDirectory(t *testing.T) {
	p, root := fixture(t)
	outside := t.TempDir()
	assert.OK(t, os.Mkdir(filepath.Join(root, "dir"), 0o755))
	assert.OK(t, os.Symlink(outside, filepath.Join(root, "link")))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, "dir"), unix.AT_FDCWD, filepath.Join(root, "link"), unix.RENAME_EXCHANGE)
			}
		}
	}()
	for range 200 {
		for _, name := range []string{"dir/file", "dir/sub/file"} {
			p.Write(t.Context(), loc(name), providers.String("x"), unconditional)
			p.Delete(t.Context(), loc(name), providers.DeleteOptions{If: providers.Unconditional()})
		}
	}
	close(stop)
	<-done
	entries, _ := os.ReadDir(outside)
	assert.True(t, len(entries) == 0, len(entries), "entries outside")
}

// New files follow the umask, replaced ones keep their mode.
func TestModes(t *testing.T) {
	p, root := fixture(t)
	plain := filepath.Join(root, "plain")
	assert.OK(t, os.WriteFile(plain, nil, 0o666))
	want := assert.Of(os.Stat(plain)).OK(t)
	write(t, p, "new", "x")
	got := assert.Of(os.Stat(filepath.Join(root, "new"))).OK(t)
	assert.Equal(t, got.Mode(), want.Mode(), "new file: mode", "as any program makes it")
	assert.OK(t, os.Chmod(plain, 0o640))
	write(t, p, "plain", "x")
	if got, _ := os.Stat(plain); got.Mode() != 0o640 {
		t.Errorf("replaced file: mode %v, want 0640", got.Mode())
	}
}

// A foreign program writes into the file in place.
func TestChangedWhileRead(t *testing.T) {
	p, root := fixture(t)
	for name, change := range map[string]func(string) error{
		"overwritten": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteAt([]byte("new"), 150_000)
				err = errors.Join(err, f.Close())
			}
			return err
		},
		"truncated": func(path string) error { return os.Truncate(path, 10) },
		"grown":     func(path string) error { return os.Truncate(path, 300_000) },
	} {
		write(t, p, "a", strings.Repeat("old", 70_000))
		c := assert.Of(p.Read(t.Context(), loc("a"), providers.ReadOptions{})).OK(t)
		assert.OK(t, assert.ErrOf(io.ReadFull(c.Body, make([]byte, 1000))))
		assert.OK(t, change(filepath.Join(root, "a")))
		assert.Is(t, assert.ErrOf(io.Copy(io.Discard, c.Body)), providers.ErrConflict, name+" while it is read")
		c.Body.Close()
	}
}

// A pipe is neither listed nor opened, which would hang.
func TestSpecialFiles(t *testing.T) {
	p, root := fixture(t)
	assert.OK(t, unix.Mkfifo(filepath.Join(root, "pipe"), 0o644))
	write(t, p, "a", "x")
	assert.Equal(t, len(assert.Of(p.List(t.Context(), loc(""), providers.ListOptions{})).OK(t).Entries), 1, "list")
	assert.Is(t, assert.ErrOf(p.Stat(t.Context(), loc("pipe"))), providers.ErrUnsupported, "stat")
	assert.Is(t, assert.ErrOf(p.Read(t.Context(), loc("pipe"), providers.ReadOptions{})), providers.ErrUnsupported, "read")
	_, err := p.Write(t.Context(), loc("pipe"), providers.String("x"), unconditional)
	assert.Is(t, err, providers.ErrUnsupported, "write")
	assert.Is(t, p.Delete(t.Context(), loc("pipe"), providers.DeleteOptions{If: providers.Unconditional()}), providers.ErrUnsupported, "delete")
}

// Nothing changes, nothing is left, and the kind says why.
func TestFullDisk(t *testing.T) {
	tier.RequireRoot(t)
	root := t.TempDir()
	assert.OK(t, unix.Mount("none", root, "tmpfs", 0, "size=64k"), "mount")
	t.Cleanup(func() { unix.Unmount(root, unix.MNT_DETACH) })
	p := open(t, root, t.TempDir())
	t.Cleanup(func() { p.Close() })
	write(t, p, "a", "before")
	_, err := p.Write(t.Context(), loc("a"), providers.String(strings.Repeat("x", 1<<20)), unconditional)
	assert.Is(t, err, providers.ErrQuota, "write to a full disk")
	wantNoTemp(t, root)
	got, _, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{})
	assert.True(t, string(got) == "before" && err == nil, "content:", got, err)
}

// What is no vault is refused, and one in which the lock would lie.
func TestOpenErrors(t *testing.T) {
	root := t.TempDir()
	assert.OK(t, os.WriteFile(filepath.Join(root, "file"), nil, 0o644))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name, root string
		ctx        context.Context
		want       error
	}{
		{"no name", "", t.Context(), providers.ErrInvalid},
		{"nothing", filepath.Join(root, "no"), t.Context(), providers.ErrNotExist},
		{"a file", filepath.Join(root, "file"), t.Context(), providers.ErrNotDir},
		{"too late", root, ended, context.Canceled},
		{"the lock inside", root, t.Context(), providers.ErrInvalid},
	} {
		assert.Is(t, assert.ErrOf(vault.Open(c.ctx, c.root, vault.Options{Locks: root})), c.want, c.name)
	}
}

// What Look says of a vault is what becomes of opening it; neither makes anything, and no
// verb that reads does.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	root, file := filepath.Join(dir, "vault"), filepath.Join(dir, "file")
	assert.OK(t, errors.Join(os.Mkdir(root, 0o755), os.WriteFile(file, nil, 0o600), os.WriteFile(filepath.Join(root, "a"), nil, 0o644), os.Symlink(root, filepath.Join(dir, "link"))))
	for cache, want := range map[string]string{
		filepath.Join(dir, "new", "cache"): "", filepath.Join(root, "cache"): "would lie in the vault", filepath.Join(dir, "link", "cache"): "would lie in the vault",
		filepath.Join(file, "cache"): "not a directory", "relative": "XDG_CACHE_HOME",
	} {
		t.Setenv("XDG_CACHE_HOME", cache)
		f := vault.Look(t.Context(), root, false)
		p, err := vault.Open(t.Context(), root, vault.Options{})
		assert.True(t, f.Grade == providers.Good == (want == "") && f.Grade == providers.Good == (err == nil) && strings.Contains(f.Says, want), cache, "look says", f, "open", err)
		if err == nil {
			_, _, err = providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{})
			assert.OK(t, errors.Join(err, p.Close()))
		} else if f.Do == "" || !strings.Contains(err.Error(), f.Says+": "+f.Do) {
			t.Errorf("%s: open says %v, look %+v", cache, err, f)
		}
	}
	for in, want := range map[string]int{dir: 3, root: 1} {
		assert.Equal(t, len(assert.Of(os.ReadDir(in)).OK(t)), want, "looking and reading made something")
	}
}

// Of another's vault, whose programs have another lock, nothing is changed.
func TestAnothersVault(t *testing.T) {
	tier.RequireRoot(t)
	root := t.TempDir()
	assert.OK(t, os.WriteFile(filepath.Join(root, "a"), []byte("theirs"), 0o644))
	assert.OK(t, os.Chown(root, 12345, 12345))
	_, err := vault.Open(t.Context(), root, vault.Options{Locks: t.TempDir()})
	assert.Is(t, err, providers.ErrPermission, "open")
	f := vault.Look(t.Context(), root, false)
	assert.True(t, f.Grade == providers.Bad && strings.Contains(f.Says, "user 12345"), "look says", f)
	p, err := vault.Open(t.Context(), root, vault.Options{ReadOnly: true})
	assert.OK(t, err)
	t.Cleanup(func() { p.Close() })
	_, _, err = providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{})
	assert.OK(t, err)
	_, err = p.Write(t.Context(), loc("a"), providers.String("x"), unconditional)
	assert.Is(t, err, providers.ErrReadOnly, "write")
}

// A replication writes times as it likes, and people change modes: neither makes another
// version, nor a conflict.
func TestTimesAreNoVersion(t *testing.T) {
	p, root := fixture(t)
	info := write(t, p, "a", "before")
	long := time.Now().Add(-time.Hour)
	for _, change := range []func(string) error{
		func(path string) error { return os.Chtimes(path, long, long) },
		func(path string) error { return os.Chmod(path, 0o600) },
		func(path string) error { // downloaded once more
			return errors.Join(os.WriteFile(path+"2", []byte("before"), 0o644), os.Rename(path+"2", path))
		},
	} {
		assert.OK(t, change(filepath.Join(root, "a")))
		now := assert.Of(p.Stat(t.Context(), loc("a"))).OK(t)
		assert.True(t, now.Version.Matches(info.Version) && now.Digest == "sha256:"+info.Version.ETag, "version", info.Version, "became", now.Version)
	}
	_, err := p.Write(t.Context(), loc("a"), providers.String("after"), providers.WriteOptions{If: providers.IfVersion(info.Version)})
	assert.OK(t, err)
}

// What another program changes makes conditions fail, also when the size is the same and
// the time was put back, and also when the version of before was remembered.
func TestForeignChanges(t *testing.T) {
	p, root := fixture(t)
	path := filepath.Join(root, "a")
	for name, change := range map[string]func() error{
		"rewritten with the same size": func() error { return os.WriteFile(path, []byte("BEFORE"), 0o644) },
		"rewritten, time put back": func() error {
			st, _ := os.Stat(path)
			return errors.Join(os.WriteFile(path, []byte("BEFORE"), 0o644), os.Chtimes(path, st.ModTime(), st.ModTime()))
		},
		"replaced by rename": func() error {
			return errors.Join(os.WriteFile(path+"2", []byte("BEFORE"), 0o644), os.Rename(path+"2", path))
		},
		"made a directory": func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) },
		"made a link":      func() error { return errors.Join(os.Remove(path), os.Symlink("before", path)) },
	} {
		info := write(t, p, "a", "before")
		assert.OK(t, change())
		_, err := p.Write(t.Context(), loc("a"), providers.String("after"), providers.WriteOptions{If: providers.IfVersion(info.Version)})
		assert.Is(t, err, providers.ErrConflict, "write when "+name)
		err = p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.IfVersion(info.Version)})
		assert.Is(t, err, providers.ErrConflict, "delete when "+name)
		assert.OK(t, os.RemoveAll(path))
	}
	wantNoTemp(t, root)
}

// A file that this user may not read is there, and does not hide the others.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 { // who may read everything
		asNobody(t)
		return
	}
	p, root := fixture(t)
	write(t, p, "a", "x")
	assert.OK(t, os.WriteFile(filepath.Join(root, "b"), []byte("secret"), 0o200))
	page := assert.Of(p.List(t.Context(), loc(""), providers.ListOptions{})).OK(t)
	assert.True(t, len(page.Entries) == 2 && page.Entries[1].Size == 6 && !page.Entries[1].Version.IsZero(), "listing:", page.Entries)
	assert.Is(t, assert.ErrOf(p.Read(t.Context(), loc("b"), providers.ReadOptions{})), providers.ErrPermission, "read")
}

// asNobody runs the test once more as a user without privileges.
func asNobody(t *testing.T) {
	t.Helper()
	const nobody = 65534
	tmp := assert.Of(os.MkdirTemp("", "unprivileged")).OK(t)
	defer os.RemoveAll(tmp)
	assert.OK(t, os.Chown(tmp, nobody, nobody))
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^"+t.Name()+"$")
	cmd.Dir, cmd.Env = tmp, append(os.Environ(), "TMPDIR="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	assert.True(t, err == nil, "as a user", out, err)
}

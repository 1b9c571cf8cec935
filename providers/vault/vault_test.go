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
	info, err := p.Write(t.Context(), loc(name), providers.String(content), unconditional)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func wantErr(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: got %v, want %v", what, err, kind)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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
			_, err := p.Move(t.Context(), loc("d/f"), loc("d/g"), providers.MoveOptions{Source: whatever, Target: whatever})
			return err
		}, "d/ d/g=two"},
		{"delete", func(p *vault.Provider) error {
			return p.Delete(t.Context(), loc("d/g"), providers.DeleteOptions{If: whatever})
		}, "d/"},
		{"mkdir", func(p *vault.Provider) error {
			_, err := p.Mkdir(t.Context(), loc("h"), providers.MkdirOptions{})
			return err
		}, "d/ h/"},
	} {
		p := open(t, disk.Dir, locks)
		ok(t, step.do(p))
		disk.Off()
		p.Close()
		disk.On()
		assert.Equal(t, disk.Files(), step.want, step.verb)
	}
}

// TestConfined: no link that stands in the tree leads any verb out of it.
func TestConfined(t *testing.T) {
	p, root := fixture(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "sub", "secret")
	ok(t, os.Mkdir(filepath.Dir(secret), 0o755))
	ok(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("outside"), 0o600))
	ok(t, os.WriteFile(secret, []byte("outside"), 0o600))
	ok(t, os.Symlink(outside, filepath.Join(root, "absolute")))
	up, err := filepath.Rel(root, outside)
	ok(t, err)
	ok(t, os.Symlink(up, filepath.Join(root, "relative")))
	ok(t, os.Symlink(secret, filepath.Join(root, "file")))
	for _, dir := range []string{"absolute", "relative", "absolute/sub", "relative/sub"} {
		l := loc(dir + "/secret")
		_, err := p.Stat(t.Context(), l)
		wantErr(t, "stat", err, providers.ErrNotExist)
		_, err = p.Read(t.Context(), l, providers.ReadOptions{})
		wantErr(t, "read", err, providers.ErrNotExist)
		_, err = p.Write(t.Context(), l, providers.String("x"), unconditional)
		wantErr(t, "write", err, providers.ErrNotDir)
		wantErr(t, "delete", p.Delete(t.Context(), l, providers.DeleteOptions{If: providers.IfDir()}), providers.ErrNotExist)
		_, err = p.Mkdir(t.Context(), loc(dir+"/new"), providers.MkdirOptions{})
		wantErr(t, "mkdir", err, providers.ErrNotDir)
		if _, err = p.List(t.Context(), loc(dir), providers.ListOptions{}); err == nil {
			t.Errorf("list of %s went outside", dir)
		}
	}
	mode := providers.Attr{Valid: providers.AttrMode | providers.AttrModTime, Mode: 0o777, ModTime: time.Unix(1, 0)}
	_, err = p.SetAttr(t.Context(), loc("file"), providers.SetAttrOptions{If: providers.Unconditional(), Attr: mode})
	ok(t, err)
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

// TestSwappedDirectory: a directory that others turn into a link and back,
// while we write below it, never leads out.
func TestSwappedDirectory(t *testing.T) {
	p, root := fixture(t)
	outside := t.TempDir()
	ok(t, os.Mkdir(filepath.Join(root, "dir"), 0o755))
	ok(t, os.Symlink(outside, filepath.Join(root, "link")))
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
	if entries, _ := os.ReadDir(outside); len(entries) != 0 {
		t.Errorf("%d entries outside", len(entries))
	}
}

// TestModes: new files follow the umask, replaced ones keep their mode.
func TestModes(t *testing.T) {
	p, root := fixture(t)
	plain := filepath.Join(root, "plain")
	ok(t, os.WriteFile(plain, nil, 0o666))
	want, err := os.Stat(plain)
	ok(t, err)
	write(t, p, "new", "x")
	got, err := os.Stat(filepath.Join(root, "new"))
	ok(t, err)
	if got.Mode() != want.Mode() {
		t.Errorf("new file: mode %v, want %v as any program makes it", got.Mode(), want.Mode())
	}
	ok(t, os.Chmod(plain, 0o640))
	write(t, p, "plain", "x")
	if got, _ := os.Stat(plain); got.Mode() != 0o640 {
		t.Errorf("replaced file: mode %v, want 0640", got.Mode())
	}
}

// TestChangedWhileRead: a foreign program writes into the file in place.
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
		c, err := p.Read(t.Context(), loc("a"), providers.ReadOptions{})
		ok(t, err)
		_, err = io.ReadFull(c.Body, make([]byte, 1000))
		ok(t, err)
		ok(t, change(filepath.Join(root, "a")))
		_, err = io.Copy(io.Discard, c.Body)
		wantErr(t, name+" while it is read", err, providers.ErrConflict)
		c.Body.Close()
	}
}

// TestSpecialFiles: a pipe is neither listed nor opened, which would hang.
func TestSpecialFiles(t *testing.T) {
	p, root := fixture(t)
	ok(t, unix.Mkfifo(filepath.Join(root, "pipe"), 0o644))
	write(t, p, "a", "x")
	page, err := p.List(t.Context(), loc(""), providers.ListOptions{})
	if err != nil || len(page.Entries) != 1 {
		t.Errorf("list: %+v, %v", page.Entries, err)
	}
	_, err = p.Stat(t.Context(), loc("pipe"))
	wantErr(t, "stat", err, providers.ErrUnsupported)
	_, err = p.Read(t.Context(), loc("pipe"), providers.ReadOptions{})
	wantErr(t, "read", err, providers.ErrUnsupported)
	_, err = p.Write(t.Context(), loc("pipe"), providers.String("x"), unconditional)
	wantErr(t, "write", err, providers.ErrUnsupported)
	wantErr(t, "delete", p.Delete(t.Context(), loc("pipe"), providers.DeleteOptions{If: providers.Unconditional()}), providers.ErrUnsupported)
}

// TestFullDisk: nothing changes, nothing is left, and the kind says why.
func TestFullDisk(t *testing.T) {
	tier.RequireRoot(t)
	root := t.TempDir()
	if err := unix.Mount("none", root, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatalf("mount: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(root, unix.MNT_DETACH) })
	p := open(t, root, t.TempDir())
	t.Cleanup(func() { p.Close() })
	write(t, p, "a", "before")
	_, err := p.Write(t.Context(), loc("a"), providers.String(strings.Repeat("x", 1<<20)), unconditional)
	wantErr(t, "write to a full disk", err, providers.ErrQuota)
	wantNoTemp(t, root)
	if got, _, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{}); string(got) != "before" || err != nil {
		t.Errorf("content: %q, %v", got, err)
	}
}

// What is no vault is refused, and one in which the lock would lie.
func TestOpenErrors(t *testing.T) {
	root := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(root, "file"), nil, 0o644))
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
		_, err := vault.Open(c.ctx, c.root, vault.Options{Locks: root})
		wantErr(t, c.name, err, c.want)
	}
}

// What Look says of a vault is what becomes of opening it; neither makes anything, and no
// verb that reads does.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	root, file := filepath.Join(dir, "vault"), filepath.Join(dir, "file")
	ok(t, errors.Join(os.Mkdir(root, 0o755), os.WriteFile(file, nil, 0o600), os.WriteFile(filepath.Join(root, "a"), nil, 0o644), os.Symlink(root, filepath.Join(dir, "link"))))
	for cache, want := range map[string]string{
		filepath.Join(dir, "new", "cache"): "", filepath.Join(root, "cache"): "would lie in the vault", filepath.Join(dir, "link", "cache"): "would lie in the vault",
		filepath.Join(file, "cache"): "not a directory", "relative": "XDG_CACHE_HOME",
	} {
		t.Setenv("XDG_CACHE_HOME", cache)
		f := vault.Look(t.Context(), root, false)
		p, err := vault.Open(t.Context(), root, vault.Options{})
		if f.Grade == providers.Good != (want == "") || f.Grade == providers.Good != (err == nil) || !strings.Contains(f.Says, want) {
			t.Errorf("%s: look says %+v, open %v", cache, f, err)
		}
		if err == nil {
			_, _, err = providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{})
			ok(t, errors.Join(err, p.Close()))
		} else if f.Do == "" || !strings.Contains(err.Error(), f.Says+": "+f.Do) {
			t.Errorf("%s: open says %v, look %+v", cache, err, f)
		}
	}
	for in, want := range map[string]int{dir: 3, root: 1} {
		if entries, err := os.ReadDir(in); len(entries) != want || err != nil {
			t.Errorf("looking and reading made something: %v, %v", entries, err)
		}
	}
}

// Of another's vault, whose programs have another lock, nothing is changed.
func TestAnothersVault(t *testing.T) {
	tier.RequireRoot(t)
	root := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(root, "a"), []byte("theirs"), 0o644))
	ok(t, os.Chown(root, 12345, 12345))
	_, err := vault.Open(t.Context(), root, vault.Options{Locks: t.TempDir()})
	wantErr(t, "open", err, providers.ErrPermission)
	if f := vault.Look(t.Context(), root, false); f.Grade != providers.Bad || !strings.Contains(f.Says, "user 12345") {
		t.Errorf("look says %+v", f)
	}
	p, err := vault.Open(t.Context(), root, vault.Options{ReadOnly: true})
	ok(t, err)
	t.Cleanup(func() { p.Close() })
	_, _, err = providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{})
	ok(t, err)
	_, err = p.Write(t.Context(), loc("a"), providers.String("x"), unconditional)
	wantErr(t, "write", err, providers.ErrReadOnly)
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
		ok(t, change(filepath.Join(root, "a")))
		now, err := p.Stat(t.Context(), loc("a"))
		ok(t, err)
		if !now.Version.Matches(info.Version) || now.Digest != "sha256:"+info.Version.ETag {
			t.Errorf("version %+v became %+v", info.Version, now.Version)
		}
	}
	_, err := p.Write(t.Context(), loc("a"), providers.String("after"), providers.WriteOptions{If: providers.IfVersion(info.Version)})
	ok(t, err)
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
		ok(t, change())
		_, err := p.Write(t.Context(), loc("a"), providers.String("after"), providers.WriteOptions{If: providers.IfVersion(info.Version)})
		wantErr(t, "write when "+name, err, providers.ErrConflict)
		err = p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.IfVersion(info.Version)})
		wantErr(t, "delete when "+name, err, providers.ErrConflict)
		ok(t, os.RemoveAll(path))
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
	ok(t, os.WriteFile(filepath.Join(root, "b"), []byte("secret"), 0o200))
	page, err := p.List(t.Context(), loc(""), providers.ListOptions{})
	ok(t, err)
	if len(page.Entries) != 2 || page.Entries[1].Size != 6 || page.Entries[1].Version.IsZero() {
		t.Errorf("listing: %+v", page.Entries)
	}
	_, err = p.Read(t.Context(), loc("b"), providers.ReadOptions{})
	wantErr(t, "read", err, providers.ErrPermission)
}

// asNobody runs the test once more as a user without privileges.
func asNobody(t *testing.T) {
	t.Helper()
	const nobody = 65534
	tmp, err := os.MkdirTemp("", "unprivileged")
	ok(t, err)
	defer os.RemoveAll(tmp)
	ok(t, os.Chown(tmp, nobody, nobody))
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^"+t.Name()+"$")
	cmd.Dir, cmd.Env = tmp, append(os.Environ(), "TMPDIR="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as a user: %v: %s", err, out)
	}
}

package local_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/local"
	"github.com/wsmount/wsmount/providers/providertest"
)

func TestContract(t *testing.T) {
	providertest.Run(t, func(t providertest.T) providers.Provider {
		root := t.TempDir()
		t.Cleanup(func() { wantNoTemp(t, root) })
		return open(t, root)
	})
}

func open(t providertest.T, root string) *local.Provider {
	t.Helper()
	p, err := local.Open(t.Context(), root, local.Options{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

// wantNoTemp looks at the disk itself, where a listing would hide leftovers.
func wantNoTemp(t providertest.T, root string) {
	t.Helper()
	filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".tmp") && filepath.Base(path) != "a.tmp" {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
}

// fixture is a provider and its directory.
func fixture(t *testing.T) (*local.Provider, string) {
	root := t.TempDir()
	p := open(t, root)
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

// TestTemporaryNames: never listed, never usable, removed after failures.
func TestTemporaryNames(t *testing.T) {
	p, root := fixture(t)
	const temp = "a.123.0123456789abcdef.tmp"
	ok(t, os.WriteFile(filepath.Join(root, temp), []byte("somebody's"), 0o644))
	ok(t, os.WriteFile(filepath.Join(root, "a.tmp"), nil, 0o644))
	page, err := p.List(t.Context(), loc(""), providers.ListOptions{})
	ok(t, err)
	if len(page.Entries) != 1 || page.Entries[0].Locator != loc("a.tmp") {
		t.Errorf("listing: %+v", page.Entries)
	}
	_, err = p.Stat(t.Context(), loc(temp))
	wantErr(t, "stat", err, providers.ErrNotExist)
	_, err = p.Write(t.Context(), loc(temp), providers.String("x"), unconditional)
	wantErr(t, "write", err, providers.ErrInvalid)
	_, err = p.Write(t.Context(), loc(temp+"/below"), providers.String("x"), unconditional)
	wantErr(t, "write below", err, providers.ErrInvalid)
	_, err = p.Mkdir(t.Context(), loc(temp), providers.MkdirOptions{})
	wantErr(t, "mkdir", err, providers.ErrInvalid)
	ok(t, p.Delete(t.Context(), loc(temp), providers.DeleteOptions{If: providers.Unconditional()}))
	if got, _ := os.ReadFile(filepath.Join(root, temp)); string(got) != "somebody's" {
		t.Errorf("the temporary file of another: %q", got)
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

// TestTwoProviders: of those who replace one version, through two providers
// of one directory, one wins.
func TestTwoProviders(t *testing.T) {
	first, root := fixture(t)
	both := []*local.Provider{first, open(t, root)}
	t.Cleanup(func() { both[1].Close() })
	for range 20 {
		info := write(t, first, "a", "before")
		var won atomic.Int32
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range 8 {
			wg.Go(func() {
				<-start
				cond := providers.IfVersion(info.Version)
				var err error
				if i < 6 {
					_, err = both[i%2].Write(t.Context(), loc("a"), providers.String("after"), providers.WriteOptions{If: cond})
				} else {
					err = both[i%2].Delete(t.Context(), loc("a"), providers.DeleteOptions{If: cond})
				}
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, providers.ErrConflict) && !errors.Is(err, providers.ErrNotExist) {
					t.Errorf("loser: %v", err)
				}
			})
		}
		close(start)
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d of 8 changes of one version succeeded", won.Load())
		}
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

// TestForeignChanges: what other programs do makes conditions fail.
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
		"made private":     func() error { return os.Chmod(path, 0o600) },
		"made a directory": func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) },
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
	p := open(t, root)
	t.Cleanup(func() { p.Close() })
	write(t, p, "a", "before")
	_, err := p.Write(t.Context(), loc("a"), providers.String(strings.Repeat("x", 1<<20)), unconditional)
	wantErr(t, "write to a full disk", err, providers.ErrQuota)
	wantNoTemp(t, root)
	if got, _, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{}); string(got) != "before" || err != nil {
		t.Errorf("content: %q, %v", got, err)
	}
}

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
	} {
		_, err := local.Open(c.ctx, c.root, local.Options{})
		wantErr(t, c.name, err, c.want)
	}
}

func TestDrivers(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	for _, c := range []struct {
		name, driver string
		config       map[string]string
		want         error
	}{
		{"local-fs", "local-fs", map[string]string{"mount_path": root}, nil},
		{"local-fs by path", "local-fs", map[string]string{"path": root}, nil},
		{"dev-local", "dev-local", map[string]string{"root": root}, nil},
		{"both, the same", "dev-local", map[string]string{"root": root, "path": root}, nil},
		{"both, different", "dev-local", map[string]string{"root": root, "path": other}, providers.ErrInvalid},
		{"none", "dev-local", nil, providers.ErrInvalid},
		{"the other's key", "dev-local", map[string]string{"mount_path": root}, providers.ErrInvalid},
		{"misspelt", "local-fs", map[string]string{"mount_path": root, "mountpath": root}, providers.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, d := range local.Drivers() {
				if d.Name != c.driver {
					continue
				}
				p, err := d.Open(t.Context(), providers.Settings{Config: c.config})
				if !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if err == nil {
					if missing := p.Capabilities().Missing(d.Promises); missing != nil {
						t.Errorf("the driver promises more than the provider: %q", missing)
					}
					p.Close()
				} else if p != nil {
					t.Errorf("a provider beside the error: %v", p)
				}
			}
		})
	}
}

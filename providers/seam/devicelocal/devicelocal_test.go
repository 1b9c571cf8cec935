package devicelocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/seamtest"
)

func open(t providertest.T, dir string) *Backend {
	t.Helper()
	return assert.Of(Open(dir)).OK(t)
}

func TestContract(t *testing.T) {
	seamtest.Run(t, func(t providertest.T) seam.Backend { return open(t, filepath.Join(t.TempDir(), ".agentm", "memory")) })
}

func at(t *testing.T, key string) seam.Locator {
	t.Helper()
	return assert.Of(seam.ParseLocator(key)).OK(t)
}

// It promises nothing, and its new directory is its user's alone.
func TestFloor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "memory")
	b := open(t, dir)
	defer b.Close()
	assert.Equal(t, b.Capabilities(), seam.Capabilities{})
	assert.Equal(t, assert.Of(os.Stat(dir)).OK(t).Mode().Perm(), fs.FileMode(0o700), "mode")
}

// TestModeStays of a file that is written again.
func TestModeStays(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	defer b.Close()
	name := filepath.Join(dir, "private.md")
	assert.OK(t, os.WriteFile(name, []byte("old"), 0o600))
	assert.OK(t, os.Chmod(name, 0o640))
	assert.OK(t, assert.ErrOf(b.Write(t.Context(), at(t, "private.md"), "new")))
	assert.Equal(t, assert.Of(os.Stat(name)).OK(t).Mode().Perm(), fs.FileMode(0o640), "mode")
}

// One inside is read and never written to, one that leads outside is refused.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	b := open(t, filepath.Join(dir, "memory"))
	defer b.Close()
	outside := filepath.Join(dir, "secret")
	assert.OK(t, os.WriteFile(outside, []byte("secret"), 0o600))
	for name, target := range map[string]string{"in": "real", "out": "../secret", "abs": outside, "up": ".."} {
		assert.OK(t, os.Symlink(target, filepath.Join(dir, "memory", name)))
	}
	assert.OK(t, assert.ErrOf(b.Write(t.Context(), at(t, "real"), "text")))
	assert.Of(b.Read(t.Context(), at(t, "in"))).Equal(t, "text")
	for _, key := range []string{"out", "abs", "up/secret"} {
		assert.Is(t, assert.ErrOf(b.Read(t.Context(), at(t, key))), providers.ErrPermission, "read", key)
		assert.True(t, assert.ErrOf(b.Write(t.Context(), at(t, key), "x")) != nil, "write", key)
	}
	assert.Is(t, assert.ErrOf(b.Write(t.Context(), at(t, "in"), "x")), providers.ErrUnsupported, "write")
	assert.Of(os.ReadFile(outside)).Equal(t, []byte("secret"))
}

// A directory is used that is the one that was granted, and what is changed in it has the name
// that it seems to have.
func TestGranted(t *testing.T) {
	dir := t.TempDir()
	st := assert.Of(os.Stat(dir)).OK(t).Sys().(*syscall.Stat_t)
	assert.Is(t, assert.ErrOf(OpenGranted(dir, Granted{st.Dev, st.Ino + 1})), providers.ErrPermission, "open another")
	assert.Is(t, assert.ErrOf(OpenGranted(filepath.Join(dir, "none"), Granted{})), providers.ErrNotExist, "open what is not there")
	assert.OK(t, os.Symlink(".", filepath.Join(dir, "link")))
	assert.OK(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
	for plain, g := range map[bool]Granted{true: {st.Dev, st.Ino}, false: {}} {
		b := assert.Of(OpenGranted(dir, g)).OK(t)
		for _, err := range []error{assert.ErrOf(b.Write(t.Context(), at(t, "link/f"), "x")), assert.ErrOf(b.Mkdir(t.Context(), at(t, "link/e")))} {
			assert.Equal(t, errors.Is(err, providers.ErrUnsupported), plain, "through a link:", err)
			assert.Equal(t, err == nil, !plain, "through a link:", err)
		}
		assert.OK(t, assert.ErrOf(b.Write(t.Context(), at(t, "d/new/f"), "x")))
		assert.OK(t, b.Close())
	}
}

// What is neither file nor directory has no text, and nobody waits for it.
func TestNoFiles(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	defer b.Close()
	assert.OK(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	l := at(t, "fifo")
	assert.Is(t, assert.ErrOf(b.Read(t.Context(), l)), providers.ErrUnsupported, "read")
	assert.Is(t, assert.ErrOf(b.Write(t.Context(), l, "x")), providers.ErrUnsupported, "write")
	assert.Equal(t, len(assert.Of(b.List(t.Context(), l)).OK(t)), 0, "children")
	absent := assert.ErrOf(b.Read(t.Context(), at(t, "none"))).Error()
	assert.Equal(t, strings.Count(absent, "none"), 1, absent, "names it")
}

// TestTemporaryFiles that a killed program left are not listed, and nobody writes one.
// A write leaves none, done or failed.
func TestTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	defer b.Close()
	own := ".wsmount-" + strings.Repeat("0a", 16) + ".tmp"
	assert.OK(t, os.WriteFile(filepath.Join(dir, own), nil, 0o600))
	assert.Is(t, assert.ErrOf(b.Write(t.Context(), at(t, own), "x")), providers.ErrInvalid, "write")
	assert.Is(t, assert.ErrOf(b.Mkdir(t.Context(), at(t, own))), providers.ErrInvalid, "mkdir")
	assert.OK(t, assert.ErrOf(b.Write(t.Context(), at(t, "a"), "x")))
	assert.OK(t, os.MkdirAll(filepath.Join(dir, "full", "x"), 0o700))
	assert.True(t, b.replace(b.root, "full", "x", nil, nil) != nil, "a directory was replaced")
	children, err := b.List(t.Context(), at(t, ""))
	assert.OK(t, err)
	assert.Slice(t, children, []seam.Locator{at(t, "a"), at(t, "full")})
	entries, err := os.ReadDir(dir)
	assert.OK(t, err)
	assert.Equal(t, len(entries), 3, "entries, with the one that was there")
}

// TestOpenFails where no directory can be.
func TestOpenFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	assert.OK(t, os.WriteFile(file, nil, 0o600))
	var e *providers.Error
	_, err := Open(filepath.Join(file, "memory"))
	assert.True(t, errors.As(err, &e) && errors.Is(err, providers.ErrNotDir), "open:", err)
}

// Who keeps the directory's lock is waited for, and not for ever.
func TestLockedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b := open(t, dir)
		defer b.Close()
		other := assert.Of(os.Open(dir)).OK(t)
		defer other.Close()
		assert.OK(t, syscall.Flock(int(other.Fd()), syscall.LOCK_EX))
		err := assert.ErrOf(b.Write(t.Context(), at(t, "a"), "x"))
		var timeout *TimeoutError
		assert.True(t, errors.As(err, &timeout) && timeout.Waited >= 30*time.Second && timeout.Waited < 31*time.Second, "write:", err)
		assert.Is(t, err, providers.ErrUnavailable)
		assert.OK(t, syscall.Flock(int(other.Fd()), syscall.LOCK_UN))
		assert.OK(t, assert.ErrOf(b.Write(t.Context(), at(t, "a"), "x")))
	})
}

// What fails when a change was made says so, and not what would mean that nothing happened.
func TestFailsAfterTheChange(t *testing.T) {
	b := open(t, t.TempDir())
	defer b.Close()
	b.fsync = func(f *os.File) error {
		if info, err := f.Stat(); err != nil || !info.IsDir() {
			return err
		}
		return syscall.ENOSPC
	}
	for verb, err := range map[string]error{"write": assert.ErrOf(b.Write(t.Context(), at(t, "a"), "x")), "mkdir": assert.ErrOf(b.Mkdir(t.Context(), at(t, "d")))} {
		assert.Is(t, err, providers.ErrUnavailable, verb)
		assert.False(t, errors.Is(err, providers.ErrQuota), verb, "says that nothing happened:", err)
	}
}

// TestContentIsSafe before it has its name, and for nobody whom the old was not for; one that
// does not get to the disk replaces nothing.
func TestContentIsSafe(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	defer b.Close()
	assert.OK(t, os.WriteFile(filepath.Join(dir, "a"), []byte("old"), 0o600))
	private, synced := fs.FileMode(0o600), false
	d := assert.Of(os.Open(dir)).OK(t)
	defer d.Close()
	f := assert.Of(begin(d, &private)).OK(t)
	info, err := f.Stat()
	assert.OK(t, errors.Join(err, f.Close()))
	assert.Equal(t, info.Mode().Perm(), private, "mode from the first moment on")
	b.fsync = func(f *os.File) error {
		info, err := f.Stat()
		if err != nil || info.IsDir() {
			return err
		}
		assert.Equal(t, info.Mode().Perm(), fs.FileMode(0o600), "mode")
		assert.Equal(t, info.Size(), 3, "bytes that are brought to the disk")
		assert.Equal(t, len(assert.Of(os.ReadDir(dir)).OK(t)), 1, "entries, of which one killed now would leave some")
		synced = true
		return syscall.ENOSPC
	}
	assert.Is(t, assert.ErrOf(b.Write(t.Context(), at(t, "a"), "new")), providers.ErrQuota)
	assert.True(t, synced, "the content was not brought to the disk")
	got, err := b.Read(t.Context(), at(t, "a"))
	assert.OK(t, err)
	assert.Equal(t, got, "old")
	entries, err := os.ReadDir(dir)
	assert.OK(t, err)
	assert.Equal(t, len(entries), 1, "entries")
}

// A program that takes no lock changes the file while the new content is brought to the disk, or
// when the old was compared.
func TestChangedBesideTheLock(t *testing.T) {
	dir := t.TempDir()
	theirs := func(path string) error {
		return errors.Join(os.WriteFile(path+".new", []byte("theirs"), 0o600), os.Rename(path+".new", path))
	}
	for name, x := range map[string]struct {
		old  seam.ETag
		when func(b *Backend, act func() error)
	}{
		"made":     {seam.None, whileSynced},
		"replaced": {seam.ETagOf("old"), whileSynced},
		"compared": {seam.ETagOf("old"), func(b *Backend, act func() error) { b.compared = func() { assert.OK(t, act()) } }},
	} {
		b := open(t, dir)
		path := filepath.Join(dir, name)
		if x.old != seam.None {
			assert.OK(t, os.WriteFile(path, []byte("old"), 0o600))
		}
		x.when(b, func() error { return theirs(path) })
		err := assert.ErrOf(b.WriteIf(t.Context(), at(t, name), x.old, "ours"))
		assert.Is(t, err, providers.ErrConflict, name)
		assert.Contains(t, fmt.Sprint(err), seam.ETagOf("theirs").String(), name)
		assert.Equal(t, string(assert.Of(os.ReadFile(path)).OK(t)), "theirs", name)
		assert.OK(t, b.Close())
	}
	assert.Equal(t, len(assert.Of(os.ReadDir(dir)).OK(t)), 3, "entries")
}

func whileSynced(b *Backend, act func() error) {
	b.fsync = func(f *os.File) error {
		if info, err := f.Stat(); err != nil || info.IsDir() {
			return err
		}
		return act()
	}
}

// mount is one whose directory "sent" sends what is closed, and which is asked for a lock.
type mount struct {
	behind string // the directory that it shows
	b      *Backend
}

func (m mount) Sends(dir string) bool { return filepath.Base(dir) == "sent" }

func (m mount) Lock(ctx context.Context, dir, name string, old *seam.ETag) (func(), error) {
	l, err := seam.ParseLocator(strings.TrimPrefix(dir, m.behind) + "/" + name)
	if err != nil {
		return nil, err
	}
	return m.b.Lock(ctx, l, old)
}

// A file has one lock, whatever directory a backend was opened at and whatever links lead there,
// in a mount too: who has it keeps out all others, which then see what was written.
func TestOneLock(t *testing.T) {
	real := assert.Of(filepath.EvalSymlinks(t.TempDir())).OK(t)
	assert.OK(t, os.MkdirAll(filepath.Join(real, "d", "e"), 0o700))
	assert.OK(t, os.Symlink("d", filepath.Join(real, "link")))
	assert.OK(t, os.Symlink(real, filepath.Join(real, "root")))
	behind := open(t, real)
	mounted := assert.Of(OpenMounted(real, mount{real, behind}, false)).OK(t)
	names := map[string]struct {
		b *Backend
		l seam.Locator
	}{
		"the root": {open(t, real), at(t, "d/e/f")}, "the parent": {open(t, filepath.Join(real, "d", "e")), at(t, "f")},
		"a link": {open(t, real), at(t, "/link//e/f")}, "a link to the root": {open(t, filepath.Join(real, "root", "link")), at(t, "e/f")},
		"a mount": {mounted, at(t, "d/e/f")}, "a link in a mount": {mounted, at(t, "link/e/f")},
	}
	defer func() {
		for _, n := range names {
			n.b.Close()
		}
	}()
	for first, one := range names {
		for second, other := range names {
			synctest.Test(t, func(t *testing.T) {
				assert.OK(t, assert.ErrOf(one.b.Write(t.Context(), one.l, "old")))
				unlock := assert.Of(one.b.Lock(t.Context(), one.l, nil)).OK(t)
				written := make(chan error)
				go func() { written <- assert.ErrOf(other.b.WriteIf(t.Context(), other.l, seam.ETagOf("old"), "other")) }()
				time.Sleep(timeout / 2) // of the bubble: by then it waits, and nothing else runs
				assert.Of(one.b.Read(t.Context(), one.l)).Equal(t, "old", first, "is held, and written by", second)
				assert.OK(t, one.b.write(assert.Of(one.b.enter(nameOf(parentOf(one.l)))).OK(t), one.l, "first", nil))
				unlock()
				assert.Is(t, <-written, providers.ErrConflict, first, "was written, and by", second)
				assert.Of(other.b.Read(t.Context(), other.l)).Equal(t, "first", first, second)
			})
		}
	}
	assert.Is(t, assert.ErrOf(behind.Lock(t.Context(), at(t, "none/f"), nil)), providers.ErrNotExist)
	assert.Is(t, assert.ErrOf(behind.Lock(t.Context(), at(t, "d"), new(seam.ETag))), providers.ErrIsDir)
	assert.Is(t, assert.ErrOf(behind.Lock(t.Context(), at(t, "d/e/f/g"), nil)), providers.ErrNotDir)
}

// A directory that is removed while its lock is waited for is made anew, and a condition that
// cannot hold makes none.
func TestRemovedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b := open(t, dir)
		defer b.Close()
		assert.OK(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
		unlock := assert.Of(b.Lock(t.Context(), at(t, "d/f"), nil)).OK(t)
		written := make(chan error)
		go func() { written <- assert.ErrOf(b.WriteIf(t.Context(), at(t, "d/f"), seam.None, "x")) }()
		time.Sleep(timeout / 2)
		assert.OK(t, os.Remove(filepath.Join(dir, "d")))
		unlock()
		assert.OK(t, <-written)
		assert.Of(b.Read(t.Context(), at(t, "d/f"))).Equal(t, "x")
		assert.Is(t, assert.ErrOf(b.WriteIf(t.Context(), at(t, "e/f"), seam.ETagOf("x"), "y")), providers.ErrConflict)
		assert.Is(t, assert.ErrOf(os.Stat(filepath.Join(dir, "e"))), fs.ErrNotExist)
	})
}

// TestSentByItsName: where what is closed is sent, it has its name by then.
func TestSentByItsName(t *testing.T) {
	dir := t.TempDir()
	behind := open(t, dir)
	defer behind.Close()
	b := assert.Of(OpenMounted(dir, mount{dir, behind}, false)).OK(t)
	defer b.Close()
	for _, name := range []string{"sent", "kept"} {
		b.fsync = func(f *os.File) error {
			info, err := f.Stat()
			assert.OK(t, err)
			there, err := os.ReadFile(filepath.Join(dir, name, "f"))
			assert.Equal(t, err == nil && string(there) == "x", name == "sent" || info.IsDir(), name, "has its name when it is brought to the disk")
			return nil
		}
		assert.OK(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		assert.OK(t, assert.ErrOf(b.Write(t.Context(), at(t, name+"/f"), "x")))
	}
}

// TestMounted: what is mounted in a directory that was granted was not granted with it.
func TestMounted(t *testing.T) {
	tier.RequireRoot(t)
	dir := t.TempDir()
	below := filepath.Join(dir, "below")
	assert.OK(t, os.Mkdir(below, 0o700))
	assert.OK(t, unix.Mount("none", below, "tmpfs", 0, "size=64k"))
	defer unix.Unmount(below, 0)
	assert.OK(t, os.WriteFile(filepath.Join(below, "f"), []byte("x"), 0o600))
	assert.OK(t, os.Symlink("below", filepath.Join(dir, "link")))
	info, err := os.Stat(dir)
	assert.OK(t, err)
	st := info.Sys().(*syscall.Stat_t)
	b, err := OpenGranted(dir, Granted{st.Dev, st.Ino})
	assert.OK(t, err)
	defer b.Close()
	for _, key := range []string{"below/f", "link/f", "below/new/f"} {
		for verb, err := range map[string]error{
			"read": assert.ErrOf(b.Read(t.Context(), at(t, key))), "info": assert.ErrOf(b.Info(t.Context(), at(t, key))), "exists": assert.ErrOf(b.Exists(t.Context(), at(t, key))),
			"list": assert.ErrOf(b.List(t.Context(), at(t, key))),
		} {
			assert.Is(t, err, providers.ErrPermission, verb, key)
		}
		if !strings.HasPrefix(key, "link") {
			assert.Is(t, assert.ErrOf(b.Write(t.Context(), at(t, key), "y")), providers.ErrPermission, "write", key)
			assert.Is(t, assert.ErrOf(b.Mkdir(t.Context(), at(t, key))), providers.ErrPermission, "mkdir", key)
		}
	}
}

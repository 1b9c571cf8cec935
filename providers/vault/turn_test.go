package vault

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/localdir"
	"github.com/wsmount/wsmount/providers/seam"
)

// reach is a vault by which the file d/e/f of a directory is reached.
type reach struct {
	seam.Conditional
	p    *Provider
	file seam.Locator
}

func reachOf(t *testing.T, dir, key string) reach {
	t.Helper()
	p := assert.Of(Open(t.Context(), dir, Options{Locks: t.TempDir()})).OK(t)
	return reach{seam.New(p), p, assert.Of(seam.ParseLocator(key)).OK(t)}
}

// A file has one lock, whatever vault it is reached by: who changes it keeps out all others, which
// then see what was written.
func TestOneLock(t *testing.T) {
	ways := map[string]string{"the vault": "", "a vault in it": "d", "a vault of the parent": "d/e"}
	for first, firstDir := range ways {
		for second, secondDir := range ways {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				name := filepath.Join(dir, "d", "e", "f")
				assert.OK(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("old"), 0o600)))
				one := reachOf(t, filepath.Join(dir, firstDir), strings.TrimPrefix("d/e/f", firstDir))
				other := reachOf(t, filepath.Join(dir, secondDir), strings.TrimPrefix("d/e/f", secondDir))
				write := func(r reach, text string) error {
					return assert.ErrOf(r.WriteIf(t.Context(), r.file, seam.ETagOf("old"), text))
				}
				written := make(chan error, 1)
				one.p.at = func(now step) {
					if now != stepLooked {
						return
					}
					go func() { written <- write(other, "second") }()
					time.Sleep(time.Second) // of the bubble: by then it waits, and nothing else runs
					assert.Equal(t, string(assert.Of(os.ReadFile(name)).OK(t)), "old", first, "is under way, and written by", second)
				}
				assert.OK(t, write(one, "first"), first, "and then", second)
				assert.Is(t, <-written, providers.ErrConflict, first, "was written, and by", second)
				assert.Equal(t, string(assert.Of(os.ReadFile(name)).OK(t)), "first", first, second)
				assert.OK(t, errors.Join(one.Close(), other.Close()))
			})
		}
	}
}

// holdDir holds a directory's lock as another process does.
func holdDir(t *testing.T, dir string) (release func()) {
	t.Helper()
	f := assert.Of(os.Open(dir)).OK(t)
	t.Cleanup(func() { f.Close() })
	assert.Of(localdir.TryLock(int(f.Fd()))).Equal(t, true, dir)
	return func() { assert.OK(t, localdir.Unlock(int(f.Fd()))) }
}

func isHeld(t *testing.T, dir string) bool {
	t.Helper()
	f := assert.Of(os.Open(dir)).OK(t)
	defer f.Close()
	return !assert.Of(localdir.TryLock(int(f.Fd()))).OK(t)
}

// Each change waits for the directories that it changes names in, each by one lock where both
// are one or the vault's own, and not for ever; then nothing has happened, and nothing is held.
func TestDirectoriesAreLocked(t *testing.T) {
	always := providers.Unconditional()
	mode := providers.SetAttrOptions{If: always, Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}}
	move := providers.MoveOptions{Source: always, Target: always}
	f, in := providers.MustLocator("d/f"), providers.MustLocator
	for name, x := range map[string]struct {
		locked string // the directory; "": the change waits for none
		change func(ctx context.Context, p *Provider) error
	}{
		"write": {"d", func(ctx context.Context, p *Provider) error {
			return assert.ErrOf(p.Write(ctx, f, providers.String("new"), providers.WriteOptions{If: always}))
		}},
		"delete": {"d", func(ctx context.Context, p *Provider) error {
			return p.Delete(ctx, f, providers.DeleteOptions{If: always})
		}},
		"attributes":  {"d", func(ctx context.Context, p *Provider) error { return assert.ErrOf(p.SetAttr(ctx, f, mode)) }},
		"move away":   {"d", func(ctx context.Context, p *Provider) error { return assert.ErrOf(p.Move(ctx, f, in("f"), move)) }},
		"move to":     {"e", func(ctx context.Context, p *Provider) error { return assert.ErrOf(p.Move(ctx, f, in("e/f"), move)) }},
		"move beside": {"d", func(ctx context.Context, p *Provider) error { return assert.ErrOf(p.Move(ctx, f, in("d/g"), move)) }},
		"in the root": {"", func(ctx context.Context, p *Provider) error {
			return assert.ErrOf(p.Move(ctx, in("top"), in("top2"), move))
		}},
		"of the root": {"", func(ctx context.Context, p *Provider) error { return assert.ErrOf(p.SetAttr(ctx, in(""), mode)) }},
		"where is nothing": {"", func(ctx context.Context, p *Provider) error {
			return p.Delete(ctx, in("none/f"), providers.DeleteOptions{If: always})
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			p := assert.Of(Open(t.Context(), dir, Options{Locks: t.TempDir()})).OK(t)
			defer p.Close()
			for _, d := range []string{"d", "e"} {
				assert.OK(t, os.Mkdir(filepath.Join(dir, d), 0o700))
			}
			assert.OK(t, errors.Join(theirs(filepath.Join(dir, "d", "f")), theirs(filepath.Join(dir, "top"))))
			began := time.Now()
			if x.locked != "" {
				release := holdDir(t, filepath.Join(dir, x.locked))
				err := x.change(t.Context(), p)
				var timeout *DirectoryTimeoutError
				assert.True(t, errors.As(err, &timeout) && timeout.Waited >= directoryTimeout && timeout.Waited < directoryTimeout+time.Second, name, err)
				assert.Is(t, err, providers.ErrUnavailable, name)
				assert.Slice(t, names(t, filepath.Join(dir, "d")), []string{"f"}, name)
				assert.Equal(t, string(assert.Of(os.ReadFile(filepath.Join(dir, "d", "f"))).OK(t)), "theirs", name)
				release()
				began = time.Now()
			}
			p.at = func(now step) {
				if now == stepLooked && x.locked != "" {
					assert.True(t, isHeld(t, filepath.Join(dir, x.locked)), name, "changes what is not locked")
				}
			}
			assert.OK(t, x.change(t.Context(), p), name)
			assert.Equal(t, time.Since(began), 0, name, "waited for itself")
			for _, d := range []string{"", "d", "e"} {
				assert.False(t, isHeld(t, filepath.Join(dir, d)), name, "left locked:", d)
			}
		})
	}
}

// Two changes of two directories do not wait for each other: the outer is locked before the
// inner, and of two beside each other the first by name.
func TestDirectoriesInOrder(t *testing.T) {
	for _, x := range []struct{ from, to, first, second string }{
		{"d/b/f", "d/a/f", "d/a", "d/b"}, {"d/a/f", "d/b/g", "d/a", "d/b"}, {"d/a/f", "d/f", "d", "d/a"}, {"d/g", "d/b/g", "d", "d/b"},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			p := assert.Of(Open(t.Context(), dir, Options{Locks: t.TempDir()})).OK(t)
			defer p.Close()
			for _, d := range []string{"d/a", "d/b"} {
				assert.OK(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
			}
			assert.OK(t, theirs(filepath.Join(dir, x.from)))
			release := holdDir(t, filepath.Join(dir, x.first))
			moved := make(chan error, 1)
			go func() {
				moved <- assert.ErrOf(p.Move(t.Context(), providers.MustLocator(x.from), providers.MustLocator(x.to),
					providers.MoveOptions{Source: providers.Unconditional(), Target: providers.IfAbsent()}))
			}()
			time.Sleep(time.Second) // of the bubble
			assert.False(t, isHeld(t, filepath.Join(dir, x.second)), x.second, "is locked before", x.first)
			release()
			assert.OK(t, <-moved)
		})
	}
}

// A directory that was replaced while its lock was waited for is not taken for the one that is
// there now.
func TestReplacedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		p := assert.Of(Open(t.Context(), dir, Options{Locks: t.TempDir()})).OK(t)
		defer p.Close()
		d := filepath.Join(dir, "d")
		assert.OK(t, errors.Join(os.Mkdir(d, 0o700), theirs(filepath.Join(d, "f"))))
		release := holdDir(t, d)
		looked := false
		p.at = func(now step) {
			if now == stepLooked {
				looked = isHeld(t, d)
			}
		}
		deleted := make(chan error, 1)
		go func() {
			deleted <- p.Delete(t.Context(), providers.MustLocator("d/f"), providers.DeleteOptions{If: providers.Unconditional()})
		}()
		time.Sleep(time.Second) // of the bubble
		assert.OK(t, errors.Join(os.Rename(d, d+"2"), os.Mkdir(d, 0o700), theirs(filepath.Join(d, "f"))))
		release()
		assert.OK(t, <-deleted)
		assert.True(t, looked, "the directory that is there was not locked")
		assert.Is(t, assert.ErrOf(os.Stat(filepath.Join(d, "f"))), unix.ENOENT)
		assert.Slice(t, names(t, d+"2"), []string{"f"})
	})
}

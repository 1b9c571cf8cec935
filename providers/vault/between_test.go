package vault

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

func openHere(t *testing.T) (p *Provider, vault, locks string) {
	t.Helper()
	vault, locks = t.TempDir(), t.TempDir()
	p = assert.Of(Open(t.Context(), vault, Options{Locks: locks})).OK(t)
	t.Cleanup(func() { assert.OK(t, p.Close()) })
	return p, vault, locks
}

// What a program that takes no lock does between our look and our act is not overwritten:
// what it makes, what it changes, what it removes.
func TestChangedBetween(t *testing.T) {
	for name, x := range map[string]struct {
		before string // "": nothing
		cond   providers.Condition
		act    func(path string) error
		want   error
		left   string
	}{
		"made, if absent":        {"", providers.IfAbsent(), theirs, providers.ErrExist, "theirs"},
		"made, unconditional":    {"", providers.Unconditional(), theirs, providers.ErrConflict, "theirs"},
		"changed, unconditional": {"before", providers.Unconditional(), theirs, providers.ErrConflict, "theirs"},
		"removed":                {"before", providers.Unconditional(), os.Remove, providers.ErrConflict, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, vault, _ := openHere(t)
			note := filepath.Join(vault, "note")
			if x.before != "" {
				assert.OK(t, os.WriteFile(note, []byte(x.before), 0o644))
			}
			p.at = func(now step) {
				if now == stepLooked {
					assert.OK(t, x.act(note))
				}
			}
			_, err := p.Write(t.Context(), providers.MustLocator("note"), providers.String("ours"), providers.WriteOptions{If: x.cond})
			assert.Is(t, err, x.want)
			content, _ := os.ReadFile(note)
			assert.Equal(t, string(content), x.left)
			assert.Equal(t, len(names(t, vault)), min(1, len(x.left)), "entries")
		})
	}
}

func theirs(path string) error { return os.WriteFile(path, []byte("theirs"), 0o644) }

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	for _, e := range assert.Of(os.ReadDir(dir)).OK(t) {
		names = append(names, e.Name())
	}
	return names
}

// A directory that is removed while a file is on its way to it is made anew.
func TestDirectoryRemoved(t *testing.T) {
	p, vault, _ := openHere(t)
	assert.OK(t, os.Mkdir(filepath.Join(vault, "d"), 0o700))
	p.at = func(now step) {
		if now == stepFilled {
			assert.OK(t, os.Remove(filepath.Join(vault, "d")))
		}
	}
	_, err := p.Write(t.Context(), providers.MustLocator("d/note"), providers.String("ours"), providers.WriteOptions{If: providers.IfAbsent()})
	assert.OK(t, err)
	assert.Slice(t, names(t, filepath.Join(vault, "d")), []string{"note"})
}

// A deletion of a version does not remove what replaced it a moment before.
func TestChangedBeforeDelete(t *testing.T) {
	p, vault, _ := openHere(t)
	l := providers.MustLocator("note")
	info := assert.Of(p.Write(t.Context(), l, providers.String("before"), providers.WriteOptions{If: providers.IfAbsent()})).OK(t)
	p.at = func(now step) {
		if now == stepLooked {
			assert.OK(t, theirs(filepath.Join(vault, "note")))
		}
	}
	assert.Is(t, p.Delete(t.Context(), l, providers.DeleteOptions{If: providers.IfVersion(info.Version)}), providers.ErrConflict)
	assert.Slice(t, names(t, vault), []string{"note"})
}

// A change whose lock was taken over does not happen.
func TestLockLost(t *testing.T) {
	p, vault, locks := openHere(t)
	p.at = func(now step) {
		if now == stepLooked {
			places := assert.Of(filepath.Glob(filepath.Join(locks, "*", "lock"))).OK(t)
			assert.Equal(t, len(places), 1, "locks")
			assert.OK(t, errors.Join(os.Remove(places[0]), os.Mkdir(places[0], 0o700)))
		}
	}
	_, err := p.Write(t.Context(), providers.MustLocator("note"), providers.String("ours"), providers.WriteOptions{If: providers.IfAbsent()})
	assert.Is(t, err, providers.ErrUnavailable)
	assert.Slice(t, names(t, vault), nil)
}

// Content on its way is in no listing, and is not found under its own name. What another
// program is writing is listed: nobody knows whether it still does.
func TestTemporaryNames(t *testing.T) {
	p, vault, _ := openHere(t)
	const others = "note.123.0123456789abcdef0123456789abcdef.tmp"
	assert.OK(t, os.WriteFile(filepath.Join(vault, others), nil, 0o644))
	p.at = func(now step) {
		if now == stepFilled { // and killed now would leave nothing
			assert.Slice(t, names(t, vault), []string{others})
		}
		if now != stepLooked {
			return
		}
		on := names(t, vault)
		assert.Equal(t, len(on), 2, "on the disk")
		page := assert.Of(p.List(t.Context(), providers.Locator{}, providers.ListOptions{})).OK(t)
		assert.Equal(t, len(page.Entries), 1, "in the listing")
		assert.Equal(t, page.Entries[0].Locator.String(), others)
		for _, name := range on {
			_, err := p.Stat(t.Context(), providers.MustLocator(name))
			assert.Equal(t, err == nil, name == others, name)
		}
	}
	_, err := p.Write(t.Context(), providers.MustLocator("note"), providers.String("ours"), providers.WriteOptions{If: providers.IfAbsent()})
	assert.OK(t, err)
}

// What was read once is not read again while its file says that it did not change, except
// right before a change.
func TestRemembered(t *testing.T) {
	p, vault, _ := openHere(t)
	note := filepath.Join(vault, "note")
	assert.OK(t, os.WriteFile(note, []byte("note"), 0o644))
	f := assert.Of(os.Open(note)).OK(t)
	defer f.Close()
	sum, st, err := p.sums.hash(t.Context(), f)
	assert.OK(t, err)
	m := markOf(&st)
	changed := time.Unix(0, max(m.mtime, m.ctime))
	assert.Equal(t, m.believable(changed.Add(steady)), false, "a change of the same tick would be missed")
	assert.Equal(t, m.believable(changed.Add(steady+1)), true)
	for i := range 3 * generation {
		other := m
		other.ino += uint64(i + 1)
		p.sums.put(other, sum)
		if i == 0 {
			p.sums.put(m, sum)
		}
		_, ok := p.sums.get(m)
		assert.Must(t, ok, "forgotten after", i, "others, though it was asked for")
	}
	assert.True(t, len(p.sums.young)+len(p.sums.old) <= 2*generation, "it grows without end")
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// What is private is so from the first byte on, with what a writer that was killed leaves.
func TestPrivateFromTheFirstByte(t *testing.T) {
	p, vault, _ := openHere(t)
	looked := readFunc(func([]byte) (int, error) {
		for _, name := range names(t, vault) {
			assert.Equal(t, assert.Of(os.Stat(filepath.Join(vault, name))).OK(t).Mode().Perm(), 0o600, name)
		}
		return 0, io.EOF
	})
	made := providers.WriteOptions{If: providers.IfAbsent(), Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}}
	for _, opts := range []providers.WriteOptions{made, {If: providers.Unconditional()}} { // then as what is replaced
		_, err := p.Write(t.Context(), providers.MustLocator("note"), providers.Body{Reader: looked, Size: providers.SizeUnknown}, opts)
		assert.OK(t, err)
	}
}

// What fails when a change was made says so, whatever it failed for: a full disk alone would
// say that nothing happened.
func TestFailsAfterTheChange(t *testing.T) {
	note, moved, always := providers.MustLocator("note"), providers.MustLocator("moved"), providers.Unconditional()
	for name, change := range map[string]func(*Provider) error{
		"write": func(p *Provider) error {
			return assert.ErrOf(p.Write(t.Context(), note, providers.String("new"), providers.WriteOptions{If: always}))
		},
		"delete": func(p *Provider) error { return p.Delete(t.Context(), note, providers.DeleteOptions{If: always}) },
		"move": func(p *Provider) error {
			return assert.ErrOf(p.Move(t.Context(), note, moved, providers.MoveOptions{Source: always, Target: always}))
		},
		"mkdir": func(p *Provider) error { return assert.ErrOf(p.Mkdir(t.Context(), moved, providers.MkdirOptions{})) },
		"setattr": func(p *Provider) error {
			return assert.ErrOf(p.SetAttr(t.Context(), note, providers.SetAttrOptions{If: always, Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}}))
		},
	} {
		p, vault, _ := openHere(t)
		assert.OK(t, theirs(filepath.Join(vault, "note")))
		p.fsync = func(int) error { return unix.ENOSPC }
		err := change(p)
		assert.Is(t, err, providers.ErrUnavailable, name)
		assert.False(t, errors.Is(err, providers.ErrQuota), name, "says that nothing happened:", err)
		assert.Contains(t, err.Error(), unix.ENOSPC.Error(), name)
	}
}

// growing is a context under which a file grows whenever it is looked at.
type growing struct {
	context.Context
	t    *testing.T
	file string
}

func (g growing) Err() error {
	f := assert.Of(os.OpenFile(g.file, os.O_WRONLY|os.O_APPEND, 0)).OK(g.t)
	_, err := f.WriteString("one more line\n")
	assert.OK(g.t, errors.Join(err, f.Close()))
	return g.Context.Err()
}

// A log that grows all the time hides neither itself nor what is beside it; it is another at
// each look. Who asks for no version does not read it.
func TestGrowing(t *testing.T) {
	p, vault, _ := openHere(t)
	l := providers.MustLocator("log")
	ctx := growing{t.Context(), t, filepath.Join(vault, "log")}
	for _, name := range []string{"log", "note"} {
		assert.OK(t, theirs(filepath.Join(vault, name)))
	}
	page := assert.Of(p.List(ctx, providers.Locator{}, providers.ListOptions{})).OK(t)
	assert.Equal(t, len(page.Entries), 2, "entries")
	for _, info := range page.Entries {
		assert.False(t, info.Version.IsZero(), info.Locator, "has no version")
	}
	now := assert.Of(p.Stat(ctx, l)).OK(t)
	assert.False(t, now.Version.Matches(page.Entries[0].Version), "a file that changed has the version of before")
	_, err := p.Write(ctx, l, providers.String("ours"), providers.WriteOptions{If: providers.IfVersion(now.Version)})
	assert.Is(t, err, providers.ErrConflict)

	b := seam.New(p)
	at := assert.Of(b.Resolve("log")).OK(t)
	before := assert.Of(os.Stat(ctx.file)).OK(t)
	assert.Equal(t, len(assert.Of(b.List(ctx, seam.Locator{})).OK(t)), 2, "children")
	assert.OK(t, errors.Join(assert.ErrOf(b.Info(ctx, at)), assert.ErrOf(b.Exists(ctx, at))))
	after := assert.Of(os.Stat(ctx.file)).OK(t)
	assert.True(t, after.Size()-before.Size() < 10*int64(len("one more line\n")), "the content was read for nothing")
}

// TestSeamTakesTheLock: state, the registry and all else that goes through the seam change
// while the vault's mutex is held, and agentm's programs see that.
func TestSeamTakesTheLock(t *testing.T) {
	p, _, locks := openHere(t)
	b, held := seam.New(p), 0
	p.at = func(now step) {
		if now == stepLooked {
			places, err := filepath.Glob(filepath.Join(locks, "*", "lock"))
			assert.OK(t, err)
			held += len(places)
		}
	}
	l, err := b.Resolve("projects", "atlas", "_harness", "PLAN.md")
	assert.OK(t, err)
	assert.OK(t, assert.ErrOf(b.Write(t.Context(), l, "one")))
	assert.OK(t, assert.ErrOf(b.WriteIf(t.Context(), l, seam.ETagOf("one"), "two")))
	assert.OK(t, seam.Update(t.Context(), b, l, func(string, bool) (string, bool, error) { return "three", true, nil }))
	assert.Equal(t, held, 3, "changes under agentm's lock")
}

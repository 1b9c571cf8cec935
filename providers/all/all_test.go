package all_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/seam"
)

func TestRegistry(t *testing.T) {
	want := []string{"cloud-bucket", "github", "mastra-azure", "mastra-s3", "memory", "self-bucket", "vault"}
	first, second := all.Registry(), all.Registry()
	assert.Slice(t, first.Names(), want)
	err := first.Register(providers.Driver{Name: "another", Open: second.List()[0].Open})
	if err != nil || len(second.Names()) != len(want) {
		t.Errorf("registries are not independent: %v, %q", err, second.Names())
	}
	for _, d := range first.List() {
		assert.False(t, d.Name != "another" && (d.Text == "" || !d.Promises.Writable), d.Name, "text", d.Text, "promises", d.Promises)
	}
}

// Memory can be kept on this machine without a configuration, and in a vault.
func TestBackends(t *testing.T) {
	r := all.Backends()
	assert.Slice(t, r.Protocols(), []string{"device-local", "vault"})
	assert.True(t, r != all.Backends(), "registries are not independent")
}

// What would keep the vault from being used, doctor says beforehand, in the words of the refusal.
func TestVaultRefused(t *testing.T) {
	vault := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(vault, "cache"))
	s := seam.Settings{Home: t.TempDir(), Vault: vault, Config: seam.Config{Err: fs.ErrNotExist}}
	p := all.Backends().Preview(t.Context(), s, seam.Capabilities{})
	_, err := all.Backends().Select(t.Context(), s, seam.Capabilities{})
	assert.True(t, p.Grade == providers.Bad && err != nil && err.Error() == p.Text && p.Do != "", "the preview says", p, "the selection", err)
	s.ReadOnly = true // who only reads needs no lock
	assert.OK(t, os.WriteFile(filepath.Join(vault, "f"), []byte("text"), 0o600))
	p = all.Backends().Preview(t.Context(), s, seam.Capabilities{})
	b, err := all.Backends().Select(t.Context(), s, seam.Capabilities{Sync: true})
	assert.Must(t, err == nil && p.Grade != providers.Bad, "the preview says", p, "the selection", err)
	defer b.Close()
	l, _ := b.Resolve("f")
	text, err := b.Read(t.Context(), l)
	_, refused := b.Write(t.Context(), l, "x")
	assert.True(t, text == "text" && errors.Is(refused, providers.ErrReadOnly), "read", text, err, "written:", refused)
}

// The vault that settings name is opened, with what it promises.
func TestVaultBackend(t *testing.T) {
	home, vault := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // where its lock is
	s := seam.Settings{Home: home, Vault: vault, Config: seam.Config{Err: fs.ErrNotExist}}
	b := assert.Of(all.Backends().Select(t.Context(), s, seam.Capabilities{Sync: true, ConflictFiles: true, ConcurrentWriters: true})).OK(t)
	defer b.Close()
	assert.Is(t, assert.ErrOf(b.Write(t.Context(), seam.Locator{}, "")), providers.ErrIsDir, "write over the root")
	l, err := b.Resolve("projects", "atlas", "plan.md")
	if err == nil {
		_, err = b.Write(t.Context(), l, "# Plan\n")
	}
	data, readErr := os.ReadFile(filepath.Join(vault, "projects", "atlas", "plan.md"))
	assert.True(t, err == nil && readErr == nil && string(data) == "# Plan\n", "the vault has", data, readErr, err)
}

// inMount is the directory of a mount as who serves that changes it.
type inMount struct {
	seam.Conditional
	changed func()
}

func (m inMount) Write(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
	m.changed()
	return m.Conditional.Write(ctx, l, content)
}

func (m inMount) WriteIf(ctx context.Context, l seam.Locator, old seam.ETag, content string) (seam.Locator, error) {
	m.changed()
	return m.Conditional.WriteIf(ctx, l, old, content)
}

// Memory in a mount is changed by what serves that, a vault in its turn. Where that cannot be asked
// no condition is kept, and who only reads asks nothing.
func TestMemoryInMount(t *testing.T) {
	for _, protocol := range []string{seam.DeviceLocal, seam.Vault} {
		home, vault, cache := t.TempDir(), t.TempDir(), t.TempDir()
		t.Setenv("XDG_CACHE_HOME", cache)
		changes, foreign := 0, error(nil)
		s := seam.Settings{Home: home, Vault: vault, Backend: protocol, Config: seam.Config{Err: fs.ErrNotExist}}
		s.Mounted = func(_ context.Context, dir string, plain bool) (seam.Conditional, error, error) {
			assert.Equal(t, plain, protocol == seam.Vault, protocol, "through no link")
			if foreign != nil {
				return nil, foreign, nil
			}
			b := assert.Of(all.Directory(dir)).OK(t).(seam.Conditional)
			return inMount{b, func() {
				changes++
				held, err := filepath.Glob(filepath.Join(cache, "agentm", "locks", "*", "lock"))
				assert.True(t, err == nil && (len(held) == 1) == (protocol == seam.Vault), protocol, "locks that are held:", held)
			}}, nil, nil
		}
		l := assert.Of(seam.ParseLocator("d/f")).OK(t)
		b := assert.Of(all.Backends().Select(t.Context(), s, seam.Capabilities{})).OK(t)
		assert.Of(b.Write(t.Context(), l, "one")).OK(t)
		assert.Is(t, assert.ErrOf(b.(seam.Conditional).WriteIf(t.Context(), l, seam.None, "mine")), providers.ErrConflict, protocol)
		assert.Of(b.(seam.Conditional).WriteIf(t.Context(), l, seam.ETagOf("one"), "two")).OK(t)
		assert.Of(b.Read(t.Context(), l)).Equal(t, "two")
		assert.Equal(t, b.Capabilities(), all.Backends().Get(protocol).Promises, protocol)
		assert.Equal(t, changes, 3, protocol, "changes by what serves the mount")
		assert.OK(t, b.Close())

		foreign = providers.ErrUnsupported
		b = assert.Of(all.Backends().Select(t.Context(), s, seam.Capabilities{})).OK(t)
		assert.Is(t, assert.ErrOf(b.(seam.Conditional).WriteIf(t.Context(), l, seam.ETagOf("two"), "mine")), foreign, protocol)
		assert.Of(b.Write(t.Context(), l, "three")).OK(t)
		assert.OK(t, b.Close())

		s.ReadOnly, s.Mounted = true, func(context.Context, string, bool) (seam.Conditional, error, error) { panic("asked") }
		b = assert.Of(all.Backends().Select(t.Context(), s, seam.Capabilities{})).OK(t)
		assert.Of(b.Read(t.Context(), l)).Equal(t, "three")
		assert.OK(t, b.Close())
	}
}

// A file in a vault has one lock, by whatever directory memory has it: it waits for a change of the
// vault, and the vault for one of it, and each then sees what the other wrote.
func TestMemoryInVault(t *testing.T) {
	for _, in := range []string{"", "d", "d/a"} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			name := filepath.Join(dir, "d", "a", "f")
			for _, d := range []string{filepath.Dir(name), filepath.Join(dir, "d", "b")} {
				assert.OK(t, os.MkdirAll(d, 0o700))
			}
			vault := assert.Of(assert.Of(all.Registry().Select("vault", providers.Capabilities{})).OK(t).
				Open(t.Context(), providers.Settings{Config: map[string]string{"vault_path": dir}})).OK(t)
			memory := assert.Of(all.Directory(filepath.Join(dir, in))).OK(t).(seam.Conditional)
			defer func() { assert.OK(t, errors.Join(memory.Close(), vault.Close())) }()
			l := assert.Of(memory.Resolve(strings.TrimPrefix("d/a/f", in))).OK(t)
			hold := func(key string) (release func()) {
				st := assert.Of(os.Stat(dir)).OK(t).Sys().(*syscall.Stat_t)
				return assert.Of(all.LockGranted(t.Context(), dir, st.Dev, st.Ino, assert.Of(seam.ParseLocator(key)).OK(t), nil)).OK(t)
			}
			waits := func(change func() error) (done chan error) {
				done = make(chan error, 1)
				go func() { done <- change() }()
				time.Sleep(time.Second) // of the bubble: by then it waits, and nothing else runs
				assert.Equal(t, len(done), 0, "changes that did not wait")
				assert.Equal(t, string(assert.Of(os.ReadFile(name)).OK(t)), "old", "memory in", in)
				return done
			}
			assert.OK(t, os.WriteFile(name, []byte("old"), 0o600))
			release := hold("d/a/f")
			asked := assert.Of(vault.Stat(t.Context(), providers.MustLocator("d/a/f"))).OK(t).Version
			written := waits(func() error {
				return assert.ErrOf(vault.Write(t.Context(), providers.MustLocator("d/a/f"), providers.String("new"), providers.WriteOptions{If: providers.IfVersion(asked)}))
			})
			assert.OK(t, os.WriteFile(name, []byte("first"), 0o600))
			release()
			assert.Is(t, <-written, providers.ErrConflict, "the vault's, memory in", in)

			assert.OK(t, os.WriteFile(name, []byte("old"), 0o600))
			release = hold("d/b/f") // for which a move waits that has locked d/a
			moved := waits(func() error {
				return assert.ErrOf(vault.(providers.Mover).Move(t.Context(), providers.MustLocator("d/a/f"), providers.MustLocator("d/b/f"),
					providers.MoveOptions{Source: providers.Unconditional(), Target: providers.IfAbsent()}))
			})
			written = waits(func() error { return assert.ErrOf(memory.WriteIf(t.Context(), l, seam.ETagOf("old"), "new")) })
			release()
			assert.OK(t, <-moved)
			assert.Is(t, <-written, providers.ErrConflict, "memory's, in", in)
			assert.Equal(t, string(assert.Of(os.ReadFile(filepath.Join(dir, "d", "b", "f"))).OK(t)), "old")
		})
	}
}

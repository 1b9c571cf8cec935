package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/store"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/seamtest"
)

// place opens a path in a mount as the verbs do.
func (w *world) place(t providertest.T, name string) seam.Conditional {
	t.Helper()
	h := store.Host{StateRoot: func() (string, error) { return w.path("state"), nil }}
	b, err := h.OpenPlace(t.Context(), w.path(name))
	assert.OK(t, err, name)
	return b.(seam.Conditional)
}

// A place in a mount is a backend like any, whatever the mount is of.
func TestStoreMountedContract(t *testing.T) {
	for name, c := range map[string]struct {
		mount func(t *testing.T) (*world, *remote) // nil remote: a local directory
		lacks []string                             // what the mount refuses
	}{
		"local": {mount: func(t *testing.T) (*world, *remote) { return mountNotes(t), nil }},
		"files": {mount: func(t *testing.T) (*world, *remote) { return mountFiles(t, "mode: canonical") }},
		"repository": {mount: func(t *testing.T) (*world, *remote) { return mountRepository(t, perTurn+", push: {on: per-commit}") },
			lacks: []string{"write-if/unchanged", "write-if/changed", "write-if/counted", "routing/repos", "routing/counted"}}, // which sends later
	} {
		t.Run(name, func(t *testing.T) {
			w, r := c.mount(t)
			n := 0
			seamtest.Run(t, func(t providertest.T) seam.Backend {
				n++
				dir := "mnt/" + strconv.Itoa(n)
				assert.OK(t, os.Mkdir(w.path(dir), 0o755))
				again := func() seam.Conditional { return w.place(t, dir) }
				proved := seamtest.Proved{Conditional: again(), Proof: seamtest.Proof{Again: again}}
				if r != nil {
					proved.Put = func(key, content string) {
						w.ok("commit", w.path("mnt")) // of what is written at once there is nothing to commit
						assert.OK(t, r.Tamper(t.Context(), providers.MustLocator(strconv.Itoa(n)+"/"+key), []byte(content)))
						w.ok("pull", w.path("mnt"))
					}
				}
				return proved
			}, c.lacks...)
		})
	}
}

// A file of a local workspace is one, under whatever name a writer has it: in the mount, at a
// place in it, through a link, and past all of them. Who has its lock keeps all
// others out, and none of them loses what another wrote.
func TestStoreOneFile(t *testing.T) {
	w := mountNotes(t)
	w.write("notes/d/f", "")
	assert.OK(t, os.Symlink("d", w.path("notes/link")))
	bare := assert.Of(all.Directory(w.path("notes"))).OK(t).(seam.Conditional)
	var names []seam.Conditional
	var keys []seam.Locator
	for _, n := range []struct {
		b   seam.Conditional
		key string
	}{{bare, "d/f"}, {w.place(t, "mnt"), "d/f"}, {w.place(t, "mnt"), "/link/f"}, {w.place(t, "mnt/d"), "f"}, {w.place(t, "mnt/link"), "f"}} {
		defer n.b.Close()
		names, keys = append(names, n.b), append(keys, assert.Of(n.b.Resolve(n.key)).OK(t))
	}

	dir := assert.Of(os.Open(w.path("notes/d"))).OK(t)
	defer dir.Close()
	assert.OK(t, syscall.Flock(int(dir.Fd()), syscall.LOCK_EX))
	for i, b := range names {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // which is what ends the waiting
		_, err := b.WriteIf(ctx, keys[i], seam.ETagOf(""), "locked out")
		cancel()
		assert.True(t, errors.Is(err, context.DeadlineExceeded) && w.read("notes/d/f") == "", i, "wrote while another had the lock:", err)
	}
	assert.OK(t, syscall.Flock(int(dir.Fd()), syscall.LOCK_UN))

	each := tier.Pick(6, 200)
	var writers sync.WaitGroup
	for i, b := range names {
		writers.Go(func() {
			for range each {
				err := seam.Update(t.Context(), b, keys[i], func(text string, _ bool) (string, bool, error) { return text + "x", true, nil })
				if err != nil {
					t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	writers.Wait()
	assert.Equal(t, len(w.read("notes/d/f")), len(names)*each, "updates")
	entries, err := os.ReadDir(filepath.Dir(w.path("notes/d/f")))
	assert.OK(t, err)
	assert.Equal(t, len(entries), 1, "entries")
}

package daemon

import (
	"context"
	"log/slog"
	"testing"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cache/pins"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// A bucket has no end, and what may be written now is what the local disk has above its
// reserve; all else that has a working copy is as large as that disk.
func TestStatfs(t *testing.T) {
	for _, c := range []struct {
		bucket   bool
		keepFree int64
	}{{true, 0}, {false, 0}, {true, 1 << 60}} {
		v, err := cache.Open(t.Context(), memory.New(memory.Options{}), cache.Options{StateDir: t.TempDir(), Provider: "memory", KeepFree: c.keepFree})
		assert.OK(t, err)
		defer v.Close()
		w := &workingCopy{Volume: v, isBucket: c.bucket}
		st := assert.Of(w.Statfs(&fs.Op{}, fs.RootIno)).OK(t)
		assert.Equal(t, st.Blocks*uint64(st.Frsize) == unlimited && st.Bfree == st.Blocks && st.Files == st.Ffree, c.bucket, c, st)
		assert.Equal(t, st.Bavail == 0, c.keepFree > 0, c, st)
		assert.True(t, st.Bavail < unlimited/uint64(st.Frsize), c, st)
	}
}

// What is pinned stays so when it cannot be fetched, which is said.
func TestPinWithoutTheStore(t *testing.T) {
	p := memory.New(memory.Options{})
	assert.OK(t, assert.ErrOf(p.Write(t.Context(), providers.MustLocator("f"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()})))
	set := assert.Of(pins.Load(t.TempDir())).OK(t)
	v := assert.Of(cache.Open(t.Context(), p, cache.Options{StateDir: t.TempDir(), Provider: "memory", Pins: set})).OK(t)
	defer v.Close()
	w := &workingCopy{Volume: v, pins: set, syncer: &syncer{gate: newGate("@acme/a", slog.New(slog.DiscardHandler))}}
	c := &copies{layout: layout{mountpoint: "/mnt/ws", parts: []*part{{volume: w}}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.pin(ctx, control.CacheRequest{Path: "f"})
	assert.Contains(t, err.Error(), "it is pinned, and not all of it is on the local disk yet: ")
	assert.True(t, set.Holds("f"), "it is pinned")
}

package cache

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/memory"
)

// evictAll gives up what may be, as a full disk would have it.
func (w *world) evictAll() {
	w.Helper()
	w.v.weighAll()
	w.v.store.Evict(w.v.eviction.MayEvict)
}

// idle waits until nothing is open, of the sender's either.
func (w *world) idle() {
	w.Helper()
	for deadline := time.Now().Add(guard); w.v.store.Usage().Open > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			w.Fatal("content is still in use")
		}
	}
}

// Clean content that nobody uses is given up when there is too much of it; what
// the backend does not have never is.
func TestEvict(t *testing.T) {
	block := strings.Repeat("x", 60<<10)
	files := []string{"clean", block, "open", block, "dirty", block, "renamed", block}
	w := newWorld(t, onlyAsked, holding(files...), func(_ *world, o *Options) { o.CacheSize = 1 })
	w.v.store.SetEvictor(func(int64) {}) // when the test says so, and not before
	for i := 0; i < len(files); i += 2 {
		w.get(files[i])
	}
	o := w.open("open", syscall.O_RDONLY)
	w.ok(w.put("dirty", block+"ours"))
	w.ok(w.rename("renamed", "moved"))
	w.evictAll()
	for path, want := range map[string]table.State{"clean": table.None, "open": table.Whole, "dirty": table.Whole, "moved": table.Whole} {
		assert.Equal(t, w.record(path).State, want, path)
	}
	o.File.Release()
	assert.Equal(t, w.get("clean"), block, "fetched again")
	w.ok(w.sendAll())
	w.idle()
	w.evictAll()
	for _, path := range []string{"open", "dirty", "moved"} {
		assert.Equal(t, w.record(path).State, table.None, path, "after all was sent")
	}
	assert.Equal(t, w.get("dirty"), block+"ours", "fetched again")
}

// What stays on this machine is all there is of it.
func TestEvictKeepsWhatIsIgnored(t *testing.T) {
	w := newWorld(t, ignoring, func(_ *world, o *Options) { o.CacheSize = 1 })
	w.rules("", "*.o")
	w.do("put a.o ours")
	w.tracks()
	w.idle()
	w.evictAll()
	assert.Equal(t, w.get("a.o"), "ours")
}

// A directory that nobody looked at for long is forgotten, and listed again
// when somebody does.
func TestUnload(t *testing.T) {
	p := memory.Options{}
	w, c := historic(t, func(w *world, o *Options) {
		onlyAsked(w, o)
		w.p = memory.New(p)
		for _, d := range []string{"a", "b", "a/c"} {
			for i := range 300 {
				w.tamper(fmt.Sprintf("%s/f%d", d, i), "x")
			}
		}
	})
	w.list("a")
	w.list("b")
	w.list("a/c")
	w.ok(w.put("b/mine", "not sent"))
	w.forgetAll()
	assert.Equal(t, w.v.unload(1<<20), 904, "names known")
	assert.Equal(t, w.v.unload(10), 904, "names left although all was listed just now")
	c.pass(time.Hour)
	known := w.v.unload(10)
	if known != 303 { // a and b, and what is in b
		t.Errorf("%d names left", known)
	}
	w.check()
	assert.Equal(t, len(w.list("a/c")), 302, "names in a/c")
	assert.Equal(t, len(w.list("b")), 303, "names in b")
	assert.Equal(t, w.get("a/f7"), "x")
	w.check()
}

// A directory without entries is known here only where the backend keeps none, so
// it is not forgotten.
func TestUnloadKeepsEmptyDirectories(t *testing.T) {
	w, c := historic(t, func(w *world, o *Options) {
		onlyAsked(w, o)
		w.p = memory.New(memory.Options{Without: asBucket})
		w.tamper("p/f", "x")
	})
	w.do("mkdir p/e")
	w.upload()
	w.forgetAll()
	c.pass(time.Hour)
	w.v.unload(0)
	assert.Slice(t, w.local(), []string{"p/", "p/e/", "p/f: x"}, "here")
	w.do("mv p/e p/g", "put p/g/n 1")
	w.upload()
	w.same()
}

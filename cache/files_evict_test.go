package cache

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// evictAll gives up what may be, as a full disk would have it.
func (w *world) evictAll() {
	w.Helper()
	w.v.weighAll()
	w.v.store.Evict(w.v.mayEvict)
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

// What is clean when it is weighed may be all there is of it when its turn to be
// given up comes.
func TestEvictLooksAgain(t *testing.T) {
	theirs := func(w *world, content string) {
		w.tamper("f", content)
		_, err := w.v.Pull(w.Context(), PullOptions{})
		w.ok(err)
	}
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"written":     {func(w *world) { w.do("put f ours") }, "f: ours"},
		"open":        {func(w *world) { w.Cleanup(w.open("f", syscall.O_RDONLY).File.Release) }, "f: theirs"},
		"newer there": {func(w *world) { theirs(w, "newer") }, "f: newer"},
		"newer on both sides": {func(w *world) {
			w.do("put f ours")
			theirs(w, "newer")
		}, "f: newer, f.conflict-ae0bec9e: ours"},
		"gone there, as far as is known": {func(w *world) {
			w.do("mv f g")
			w.faults.Queue(providers.MethodMove, providertest.Fault{After: providers.ErrUnavailable})
			_ = w.sendAll()
			w.do("mv g f")
		}, "f: theirs"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, onlyAsked, holding("f", "theirs"), func(_ *world, o *Options) { o.CacheSize = 1 })
			w.v.store.SetEvictor(func(int64) {}) // when the test says so, and not before
			w.get("f")
			w.v.weighAll()
			ino, asked := w.walk("f"), false
			w.v.store.Evict(func(x uint64) bool {
				if fs.Ino(x) != ino || asked {
					return false
				}
				asked = true
				c.change(w)
				may := w.v.mayEvict(x)
				assert.False(t, may, "it may be given up")
				return may
			})
			assert.True(t, asked, "it did not count as clean before")
			assert.Equal(t, strings.Join(w.local(), ", "), c.want)
		})
	}
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

package cache

import (
	"slices"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/memory"
)

// idle waits until nothing is open, of the sender's either.
func (w *world) idle() {
	w.Helper()
	w.until(func() bool { return w.v.store.Usage().Open == 0 })
}

// What stays on this machine is all there is of it.
func TestEvictKeepsWhatIsIgnored(t *testing.T) {
	w := newWorld(t, ignoring, func(_ *world, o *Options) { o.CacheSize = 1 })
	w.rules("", "*.o")
	w.do("put a.o ours")
	w.tracks()
	w.idle()
	w.v.room.WeighAll()
	w.v.store.Evict(w.v.eviction.MayEvict) // as a full disk would have it
	assert.Equal(t, w.get("a.o"), "ours")
}

// A directory that nobody looked at for long is forgotten, and listed again
// when somebody does.
func TestUnload(t *testing.T) {
	files := slices.Concat(numbered(300, "a/f%d"), numbered(300, "b/f%d"), numbered(300, "a/c/f%d"))
	w, c := historic(t, onlyAsked, over(memory.Options{}), holding(files...))
	w.list("a")
	w.list("b")
	w.list("a/c")
	w.ok(w.put("b/mine", "not sent"))
	w.forgetAll()
	assert.Equal(t, w.unload(1<<20), 904, "names known")
	assert.Equal(t, w.unload(10), 904, "names left although all was listed just now")
	c.pass(time.Hour)
	known := w.unload(10)
	assert.Equal(t, known, 303, "names left") // a and b, and what is in b
	w.check()
	assert.Equal(t, len(w.list("a/c")), 302, "names in a/c")
	assert.Equal(t, len(w.list("b")), 303, "names in b")
	assert.Equal(t, w.get("a/f7"), "x")
	w.check()
}

// unload forgets names until no more than limit are known, and says how many are.
func (w *world) unload(limit int) int {
	w.Helper()
	known, _, err := w.v.unloading.Run(w.v.ctx, limit)
	w.ok(err)
	return known
}

// A directory without entries is known here only where the backend keeps none, so
// it is not forgotten.
func TestUnloadKeepsEmptyDirectories(t *testing.T) {
	w, c := historic(t, onlyAsked, over(memory.Options{Without: asBucket}), holding("p/f", "x"))
	w.do("mkdir p/e")
	w.upload()
	w.forgetAll()
	c.pass(time.Hour)
	w.unload(0)
	assert.Slice(t, w.local(), []string{"p/", "p/e/", "p/f: x"}, "here")
	w.do("mv p/e p/g", "put p/g/n 1")
	w.uploadSame()
}

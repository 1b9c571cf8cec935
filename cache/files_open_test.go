package cache

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/wsmount/wsmount/integration/assert"
)

// firstFetch is how much of a file comes before its open returns.
const firstFetch = 1 << 20

// The content files of a run that was killed carry where they belong, for the time when there
// is no table, once there was another run.
func TestContentOfTheKilledKnowsItsPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, unwaited, holding("clean", "x"))
		w.get("clean")
		w.do("mkdir d", "put d/f x")
		w.killed()
		synctest.Wait() // for the sweep
		w.stop()
		var found []string
		w.ok(w.v.store.Each(func(_ uint64, path string, _ int64, _ bool) { found = append(found, path) }))
		slices.Sort(found)
		assert.Slice(t, found, []string{"", "d/f"}, "content of")
	})
}

// A file that was opened to be changed keeps its version: what another writes
// between the open and the first write is a conflict of the close, not an error of
// the write.
func TestAppendKeepsItsVersion(t *testing.T) {
	for _, flags := range []uint32{syscall.O_WRONLY | syscall.O_APPEND, syscall.O_RDWR | syscall.O_APPEND, syscall.O_RDWR} {
		t.Run(fmt.Sprintf("flags %#x", flags), func(t *testing.T) {
			w := newWorld(t, holding("f", "1234"))
			o := w.open("f", flags)
			w.tamper("f", "other")
			w.writeLast(o, "more", 4)
			w.backend("f: other", "f.conflict-"+short("1234more")+": 1234more")
		})
	}
}

// Of a large file an append needs nothing, but the rest is sent with it: that its
// version is gone is found out before anybody appends to it.
func TestAppendToLargeFile(t *testing.T) {
	w := newWorld(t, unwaited, holding("f", strings.Repeat("1", firstFetch+5)))
	x := w.walk("f")
	w.tamper("f", "other")
	o := w.openIno(x, syscall.O_WRONLY|syscall.O_APPEND)
	w.writeLast(o, "more", firstFetch+5)
	w.upload()
	w.backend("f: othermore")
}

// Whoever opens a file to append to it when the version that was listed is gone
// gets the one that there is, as a reader does: nobody has seen or changed a byte.
func TestAppendToWhatOthersReplaced(t *testing.T) {
	for _, flags := range []uint32{syscall.O_WRONLY | syscall.O_APPEND, syscall.O_RDWR | syscall.O_APPEND} {
		t.Run(fmt.Sprintf("flags %#x", flags), func(t *testing.T) {
			w := newWorld(t, onlyAsked, holding("f", "1"))
			ino := w.walk("f")
			w.tamper("f", "22")
			o := w.openIno(ino, flags)
			w.writeLast(o, "a", 2)
			w.upload()
			w.backend("f: 22a")
			w.same()
		})
	}
}

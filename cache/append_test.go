package cache

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// A file that was opened to be changed keeps its version: what another writes
// between the open and the first write is a conflict of the close, not an error of
// the write.
func TestAppendKeepsItsVersion(t *testing.T) {
	for _, flags := range []uint32{syscall.O_WRONLY | syscall.O_APPEND, syscall.O_RDWR | syscall.O_APPEND, syscall.O_RDWR} {
		t.Run(fmt.Sprintf("flags %#x", flags), func(t *testing.T) {
			w := newWorld(t, holding("f", "1234"))
			o := w.open("f", flags)
			w.tamper("f", "other")
			w.write(o, "more", 4)
			w.ok(w.shut(o))
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
	o, err := w.v.Open(me, x, syscall.O_WRONLY|syscall.O_APPEND)
	w.ok(err)
	w.write(o, "more", firstFetch+5)
	w.ok(w.shut(o))
	_, err = w.v.Commit(t.Context(), CommitOptions{})
	w.ok(err)
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
			o, err := w.v.Open(me, ino, flags)
			w.ok(err)
			w.write(o, "a", 2)
			w.ok(w.shut(o))
			w.upload()
			w.backend("f: 22a")
			w.same()
		})
	}
}

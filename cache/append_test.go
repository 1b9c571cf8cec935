package cache

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
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
			p := memory.New(memory.Options{})
			a := newHost(t, p, "a", t.TempDir(), nil)
			b := newHost(t, p, "b", t.TempDir(), nil)
			b.put("f", "1")
			b.sync()
			a.sync()
			ino, _ := a.walk("f")
			b.put("f", "22")
			b.sync()
			o, err := a.v.Open(me, ino, flags)
			a.ok(err)
			_, err = o.File.Write(me, []byte("a"), 2)
			a.ok(err)
			a.ok(o.File.Flush(me))
			o.File.Release()
			a.sync()
			got, _, err := providers.Fetch(context.Background(), p, at("f"), providers.ReadOptions{})
			a.ok(err)
			if string(got) != "22a" || len(a.all()) != 1 {
				t.Errorf("got %q, and here %q", got, a.all())
			}
		})
	}
}

package cache

import (
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
)

// orphan reports whether a start after a crash would free an inode.
func (w *world) orphan(ino fs.Ino) bool {
	locked := w.v.lock()
	defer locked.unlock()
	return locked.IsOrphan(uint64(ino))
}

// What was removed here takes no space, also while the backend still has it.
func TestRemovedContentIsFreed(t *testing.T) {
	w := newWorld(t, unwaited, holding("f", "hello"))
	w.get("f")
	ino := w.walk("f")
	w.ok(w.unlink("f"))
	w.v.Forget(ino, 100)
	n := w.inode(ino)
	assert.True(t, n.State == 0 && len(n.RemoteLinks) == 1, "content", n.State, len(n.RemoteLinks), "names at the backend")
	w.until(func() bool { // when the disk knows that the name is gone
		f, err := w.v.store.Open(uint64(ino))
		if err == nil {
			f.Release()
		}
		return err != nil
	})
	assert.False(t, w.orphan(ino), "it is still marked")
}

// A file that is being read when its name is removed, or given to another, is
// read to its end, although the backend has it no more.
func TestRemovedWhileRead(t *testing.T) {
	content := strings.Repeat("0123456789abcdef", 3<<20/16)
	for _, c := range []struct {
		name    string
		do      func(w *world)
		backend []string
	}{
		{"unlinked", func(w *world) { w.ok(w.unlink("f")) }, []string{"g: other"}},
		{"replaced", func(w *world) { w.ok(w.rename("g", "f")) }, []string{"f: other"}},
		{"with its directory", func(w *world) {
			w.do("mkdir d", "mv f d/f", "rm d/f", "rmdir d")
		}, []string{"g: other"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, holding("f", content, "g", "other"))
			o := w.open("f", syscall.O_RDONLY)
			defer o.File.Release()
			c.do(w)
			w.settle()
			w.backend(c.backend...)
			buf := make([]byte, 4096)
			d := assert.Of(o.File.Read(me, buf, int64(len(content)-4096))).OK(w)
			assert.Equal(t, string(d.Bytes), content[len(content)-4096:], "other bytes")
		})
	}
}

// What a pull has just put under a name is not removed for a kernel that takes it for what
// was there before: it is told to look again, and then it is done.
func TestNamesThatTheKernelDoesNotKnow(t *testing.T) {
	w := newScene(t, holding("f", "one"))
	assert.Equal(t, w.get("f"), "one")
	w.tamper("f", "two")
	w.pull()
	w.is(w.v.Unlink(me, fs.RootIno, "f"), fs.ErrStale)
	w.ok(w.v.Unlink(me, fs.RootIno, "f"))
}

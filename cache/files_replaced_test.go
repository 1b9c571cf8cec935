package cache

import (
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// A directory that lost its name shows to who is still in it the size that ext4
// shows: none after rmdir, what it was after a rename over it.
func TestSizeOfADirectoryWithoutAName(t *testing.T) {
	for name, c := range map[string]struct {
		take func(w *scene) error
		size uint64
	}{
		"replaced": {func(w *scene) error { return w.rename("other", "d") }, dirSize},
		"removed":  {func(w *scene) error { return w.v.Rmdir(me, fs.RootIno, "d") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newScene(t)
			w.mkdir("d")
			w.mkdir("other")
			ino := w.walk("d")
			w.ok(c.take(w))
			n := w.inode(ino)
			locked := w.v.lock()
			a := locked.attr(table.Ino(ino), &n)
			locked.unlock()
			if a.Nlink != 0 || a.Size != c.size || a.Mode&syscall.S_IFMT != syscall.S_IFDIR {
				t.Errorf("got %d links, size %d, want 0 and %d", a.Nlink, a.Size, c.size)
			}
		})
	}
}

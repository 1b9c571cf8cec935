package cache

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
)

// A table that has failed knows nothing: what is asked of it then fails as it did, and
// no name is said to be missing.
func TestFailedTableMissesNothing(t *testing.T) {
	var broken atomic.Bool
	w := newWorld(t, holding("d/f", "content"), func(_ *world, o *Options) {
		o.names = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if broken.Load() && op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".log") {
				return syscall.EIO
			}
			return nil
		}))
	})
	d := w.walk("d")
	w.walk("d/f")
	broken.Store(true)
	for name, do := range map[string]func() error{
		"mkdir":  func() error { _, err := w.v.Mkdir(me, fs.RootIno, "new", 0o777); return err },
		"unlink": func() error { return w.v.Unlink(me, d, "f") },
		"rmdir":  func() error { return w.v.Rmdir(me, fs.RootIno, "d") },
		"rename": func() error { return w.v.Rename(me, d, "f", fs.RootIno, "g", 0) },
		"lookup": func() error { _, err := w.v.Lookup(me, d, "f"); return err },
		"create": func() error { _, _, err := w.v.Create(me, d, "h", syscall.O_RDWR, 0o666); return err },
	} {
		_ = w.v.Unlink(me, d, "f") // the first change finds out
		assert.Is(t, do(), syscall.EIO, name)
	}
	w.gone = true
	_ = w.v.Close() // it cannot say that all is well
}

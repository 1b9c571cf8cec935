package cache

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// oneSubmodule is a tree with a submodule at a path.
type oneSubmodule string

func (s oneSubmodule) Submodule(_ context.Context, l providers.Locator) (providers.Locator, bool, error) {
	at := providers.MustLocator(string(s))
	return at, l.Contains(at), nil
}

// A submodule stays as it is: what would change it or its place is refused at the call.
func TestSubmodulesAreNotChanged(t *testing.T) {
	w := newScene(t, has("top/f", "F", "other/f", "F"))
	w.do("mkdir top/sub")
	w.v.submodules = oneSubmodule("top/sub")
	w.v.kernelOps = newKernelOps(w.v)
	w.list("other")
	root, top, sub, other := fs.Ino(table.Root), w.walk("top"), w.walk("top/sub"), w.walk("other")
	for what, err := range map[string]error{
		"mkdir in it":                         second(w.v.Mkdir(me, sub, "new", 0o755)),
		"mknod in it":                         second(w.v.Mknod(me, sub, "new", syscall.S_IFREG|0o644, 0)),
		"symlink in it":                       second(w.v.Symlink(me, sub, "new", "to")),
		"link in it":                          second(w.v.Link(me, w.walk("other/f"), sub, "new")),
		"rename into it":                      w.v.Rename(me, other, "f", sub, "new", 0),
		"rename of it":                        w.v.Rename(me, top, "sub", top, "new", 0),
		"rename of the directory above":       w.v.Rename(me, root, "top", root, "new", 0),
		"rename of another directory over it": w.v.Rename(me, root, "other", top, "sub", 0),
		"exchange":                            w.v.Rename(me, root, "other", top, "sub", 2),
		"rmdir":                               w.v.Rmdir(me, top, "sub"),
	} {
		w.is(err, syscall.EROFS)
		assert.Contains(t, err.Error(), "top/sub is a submodule", what, "the reason is not said:", err)
	}
	_, _, err := w.v.Create(me, sub, "new", syscall.O_WRONLY, 0o644)
	w.is(err, syscall.EROFS)
	w.do("put top/new N", "mv top/f top/g", "mkdir top/d", "mv top/d d", "rmdir d", "mv other moved")
	w.sees("moved/", "moved/f: F", "top/", "top/g: F", "top/new: N", "top/sub/")
}

func second[T any](_ T, err error) error { return err }

// interrupted is a store without submodules that says whether its caller still waits.
type interrupted struct{}

func (interrupted) Submodule(ctx context.Context, _ providers.Locator) (providers.Locator, bool, error) {
	return providers.Locator{}, false, ctx.Err()
}

// The kernel interrupts a call for any signal, as Go's scheduler sends all the time. On a
// local disk a change of a name never fails for that.
func TestSignalsEndNoChange(t *testing.T) {
	w := newScene(t, has("f", "F"))
	w.v.submodules = interrupted{}
	w.v.kernelOps = newKernelOps(w.v)
	signalled := make(chan struct{})
	close(signalled)
	op, root := &fs.Op{Cancel: signalled, PID: uint32(os.Getpid())}, fs.Ino(table.Root)
	w.ok(assert.ErrOf(w.v.Mkdir(op, root, "d", 0o755)))
	w.ok(w.v.Rename(op, root, "d", root, "e", 0))
	w.ok(w.v.Rmdir(op, root, "e"))
	w.ok(w.v.Rename(op, root, "f", root, "g", 0))
	w.ok(w.v.Unlink(op, root, "g"))
}

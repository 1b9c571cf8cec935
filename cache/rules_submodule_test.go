package cache

import (
	"context"
	"os"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

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

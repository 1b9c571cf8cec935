package cache

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// Another changed the file that is being moved for us: whoever opens it under its
// new name meanwhile waits for what becomes of the move, and is not told that the
// bytes are nowhere.
func TestOpenWaitsThroughAMove(t *testing.T) {
	for _, method := range []providers.Method{providers.MethodMove, providers.MethodCommit} {
		t.Run(string(method), func(t *testing.T) {
			w := newWorld(t, holding("d/f", "one"), background, func(_ *world, o *Options) {
				o.Policy.Atomic = method == providers.MethodCommit
			})
			x := w.walk("d/f")
			moves, move := w.gate(method)
			defer move()
			w.ok(w.rename("d/f", "a"))
			<-moves
			w.tamper("d/f", "changed")
			got := make(chan string)
			go func() { got <- w.openMoved(x, "a") }()
			w.until(func() bool {
				select {
				case s := <-got:
					t.Fatalf("it did not wait: %.200q", s)
				default:
				}
				locked := w.v.lock()
				defer locked.unlock()
				return w.v.pending.Waiting() > 0
			})
			move()
			assert.Equal(t, <-got, "changed", "it")
		})
	}
}

// openMoved opens and reads an inode as the kernel does, which looks its name up
// again when it is told to, once.
func (w *world) openMoved(x fs.Ino, name string) string {
	o, err := w.v.Open(me, x, syscall.O_RDONLY)
	if errors.Is(err, fs.ErrStale) {
		o, err = w.v.Open(me, w.walk(name), syscall.O_RDONLY)
	}
	if err != nil {
		return err.Error()
	}
	return w.read(o)
}

// A shell that redirects opens, duplicates, closes, and then writes: the backend
// gets one version, and the history has no empty one.
func TestRedirectIsOneVersion(t *testing.T) {
	var calls calls
	w := newWorld(t, recording(&calls))
	w.ok(w.put("f", "old"))
	w.settle()
	calls.changes()
	before := len(w.log("f"))
	o := w.open("f", syscall.O_WRONLY|syscall.O_TRUNC)
	w.ok(o.File.Flush(me))
	w.write(o, "new", 0)
	w.ok(w.shut(o))
	w.settle()
	assert.Equal(t, strings.Count(calls.changes(), "write"), 1, "writes")
	assert.Equal(t, len(w.log("f"))-before, 1, "versions")
	e := w.open("f", syscall.O_WRONLY|syscall.O_TRUNC)
	w.ok(w.shut(e))
	w.settle()
	w.backend("f: ")
}

package cache

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// A pull that gives a file another version while an open of it waits for its
// turn to read gives the open that version, whatever the size.
func TestOpenWaitsThroughAPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, holding("f", strings.Repeat("long ", 1000)), impatient)
		x := w.walk("f")
		for range maxFetches {
			w.v.fetch.slots <- struct{}{}
		}
		got := make(chan string)
		go func() {
			o, err := w.v.Open(me, x, syscall.O_RDONLY)
			if err != nil {
				got <- err.Error()
				return
			}
			got <- w.read(o)
		}()
		w.until(func() bool {
			locked := w.v.lock()
			defer locked.unlock()
			oi := locked.open[table.Ino(x)]
			return oi != nil && oi.f != nil
		})
		w.tamper("f", "short")
		assert.OK(t, assert.ErrOf(w.v.Pull(context.Background(), PullOptions{})))
		for range maxFetches {
			<-w.v.fetch.slots
		}
		assert.Equal(t, <-got, "short", "it")
	})
}

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

// breaking is a provider whose content breaks off at the same place each time.
type breaking struct {
	providers.Provider
	after int64
}

func (b breaking) Read(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
	if err := sleep(ctx, time.Millisecond); err != nil { // or no time would pass in a bubble
		return providers.Content{}, err
	}
	c, err := b.Provider.Read(ctx, l, o)
	if err != nil {
		return c, err
	}
	c.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(c.Body, b.after), broken{}), c.Body}
	return c, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, providers.ErrUnavailable }

// Bytes that come again and again are no progress: whoever waits for the rest
// gives up.
func TestNobodyWaitsForTheSameBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, holding("f", strings.Repeat("x", 1000)), impatient)
		w.wrap = func(p providers.Provider) providers.Provider { return breaking{p, 500} }
		w.again()
		done := make(chan error)
		go func() {
			_, err := w.v.Open(me, w.walk("f"), syscall.O_RDONLY)
			done <- err
		}()
		select {
		case err := <-done:
			assert.Is(t, err, fs.ErrUnavailable)
		case <-time.After(guard):
			t.Fatal("it waits for ever")
		}
	})
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

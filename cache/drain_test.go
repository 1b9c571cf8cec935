package cache

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// lazily has changes wait for hours, as nobody asks for them.
func lazily(_ *world, o *Options) {
	o.Policy.NoWait, o.Policy.Window = true, time.Hour
	o.pause = func(ctx context.Context, d time.Duration) error {
		if d == o.Policy.Window {
			<-ctx.Done()
		}
		return ctx.Err() // retries come at once
	}
}

// What is changed of a file's attributes while a request is under way that sends its
// content, its attributes or its name is sent too, be the request carried out before
// the change or after it.
func TestDrainSendsAttributesThatComeMeanwhile(t *testing.T) {
	service := func(*world, *Options) {}
	keys := over(memory.Options{Without: providers.Capabilities{ListComplete: true, Abilities: asKeys.Abilities}})
	for _, c := range []struct {
		name  string
		store func(*world, *Options)
		call  providers.Method
		first string
	}{
		{"content", service, providers.MethodWrite, "put a mine"},
		{"attributes", service, providers.MethodSetAttr, "chmod a 600"},
		{"extended attributes", service, providers.MethodSetAttr, "tag a user.x=1"},
		{"name", service, providers.MethodMove, "mv a c"},
		{"name of keys", keys, providers.MethodCopy, "mv a c"},
		{"set", repository, providers.MethodCommit, "put a mine"},
		{"set of attributes", repository, providers.MethodCommit, "chmod a 700"},
	} {
		for name, change := range map[string]string{
			"mode": "chmod a 711", "mode set back": "chmod a 644", "extended attribute": "tag a user.x=2", "time": "touch a",
		} {
			if strings.HasPrefix(c.first, "mv") {
				change = strings.Replace(change, " a", " c", 1)
			}
			for _, carriedOut := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%v", c.name, name, carriedOut), func(t *testing.T) {
					drainsDuring(t, c.store, c.call, carriedOut, c.first, change).sameAttr(strings.Fields(change)[1])
				})
			}
		}
	}
}

// drainsDuring drains a working copy with one change, makes another while the first call
// of a kind is under way, and checks that all has arrived in the end.
func drainsDuring(t *testing.T, store func(*world, *Options), call providers.Method, carriedOut bool, first, change string) *world {
	t.Helper()
	var reached <-chan struct{}
	var open func()
	w := newWorld(t, store, has(origin...), lazily, func(w *world, o *Options) {
		o.Policy.Push = true
		reached, open = w.holdFirst(call, carriedOut)
	})
	defer open()
	w.local() // all is known
	w.do(first)
	ctx, cancel := context.WithTimeout(t.Context(), guard)
	defer cancel()
	var err error
	done := async(func() { err = w.v.Drain(ctx, nil) })
	select {
	case <-reached:
	case <-done:
		t.Fatalf("a drain has ended, with error %v, and asked for no %s", err, call)
	}
	w.do(change)
	open()
	<-done
	assert.OK(t, err, "a drain")
	w.same()
	w.unpushed(0)
	return w
}

// holdFirst has the first call of a method wait, before it is carried out or after, once
// the working copy is opened.
func (w *world) holdFirst(call providers.Method, carriedOut bool) (reached <-chan struct{}, open func()) {
	there, gate := make(chan struct{}), make(chan struct{})
	hold := sync.OnceFunc(func() { close(there); <-gate })
	w.wrap = around(func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
		if c.Method != call {
			return next(ctx)
		}
		if !carriedOut {
			hold()
		}
		err := next(ctx)
		hold()
		return err
	})
	return there, sync.OnceFunc(func() { close(gate) })
}

// sameAttr checks that the store has the attributes of a file that it keeps.
func (w *world) sameAttr(path string) {
	w.Helper()
	there := assert.Of(w.remote().Stat(w.Context(), at(path))).OK(w)
	here := w.inode(w.walk(path))
	want := w.v.attrs().Of(&here).Keep(w.v.caps.Attributes)
	assert.True(w, there.Attr.Equal(want), path, "the store has", there.Attr, "programs see", want)
}

// around wraps a provider with what is to be done at each call.
func around(do func(context.Context, *providers.Call, func(context.Context) error) error) func(providers.Provider) providers.Provider {
	return func(p providers.Provider) providers.Provider {
		return providers.Wrap(p, providers.WrapOptions{Around: do})
	}
}

// commitLater is a Commit in the background; when it has returned, over is true.
func (w *world) commitLater() (r *CommitReport, err *error, over *atomic.Bool) {
	r, err, over = new(CommitReport), new(error), new(atomic.Bool)
	go func() {
		*r, *err = w.v.Commit(w.Context(), CommitOptions{})
		over.Store(true)
	}()
	return r, err, over
}

// An upload that has begun is waited for, though a program writes on and the store has
// not been asked for anything yet that changes it.
func TestCommitWaitsForWhatHasBegun(t *testing.T) {
	w := newWorld(t, bare(t), onlyAsked)
	run := w.walk("run")
	w.v.belief.Overdue(time.Second) // so that nothing is asked when it is opened for writing
	o := w.openIno(run, syscall.O_WRONLY|syscall.O_TRUNC)
	w.writeLast(o, "2", 0)
	w.v.belief.Answered(time.Millisecond)
	reached, open := w.gate(providers.MethodStat) // before its content goes, attributes are asked for
	defer open()
	_, _, first := w.commitLater()
	<-reached
	o = w.open("run", syscall.O_WRONLY)
	w.write(o, "3", 0)
	r, failed, over := w.commitLater()
	w.until(func() bool { return over.Load() || w.waiting() == 2 })
	assert.False(t, over.Load(), "it has not waited:", *r, *failed)
	open()
	w.until(over.Load)
	w.until(first.Load)
	w.ok(*failed)
	w.ok(w.shut(o))
}

// What a set left out because a program was writing it goes in the same Commit, if that
// has ended while the set was made.
func TestCommitWaitsForWhatWasClosedMeanwhile(t *testing.T) {
	var closes atomic.Pointer[fs.Opened]
	w := newWorld(t, repository, onlyAsked)
	w.stop()
	w.o.pause = func(_ context.Context, d time.Duration) error {
		if o := closes.Swap(nil); o != nil && d == commit.Breather {
			return w.shut(*o)
		}
		return nil
	}
	w.start()
	for i := range commit.PieceSize + 1 {
		w.do(fmt.Sprintf("put %d x", i))
	}
	o := w.create("f")
	w.write(o, "1", 0)
	closes.Store(&o)
	assert.Equal(t, w.upload().Changes, commit.PieceSize+2, "report")
	w.same()
}

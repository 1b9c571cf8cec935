package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
)

// A file that was replaced where it lies keeps its inode as long as nobody saw
// content of it, so that an open need not be sent back to the name; one that is
// gone is told once.
func TestVersionMovedOn(t *testing.T) {
	w := newScene(t, holding("f", "one", "g", "two", "h", "three"))
	old, gone := w.walk("f"), w.walk("g")
	w.tamper("f", "changed!")
	w.gonePath("g")
	w.serves(old, "changed!")
	now := w.walk("f")
	assert.True(t, now == old && w.get("f") == "changed!", "the name leads to inode", now, "before to", old)
	w.is(assert.ErrOf(w.v.Open(me, gone, syscall.O_RDONLY)), fs.ErrStale)
	assert.Equal(t, w.walk("g"), 0, "the name leads to inode")
	// A bind-mounted file leads to the old inode again and again.
	_, err := w.v.Open(me, gone, syscall.O_RDONLY)
	assert.False(t, err == nil, "the second open of what is nowhere went well")
}

// Each time that the first bytes of an open are asked for there is another
// version: the open waits for one that stays, alone or with others, and never
// shows a size and bytes of different versions.
func TestOpenOfWhatMovesOn(t *testing.T) {
	for _, opens := range []int{1, 3} {
		t.Run(fmt.Sprint(opens), func(t *testing.T) {
			w := newScene(t, holding("f", "0"))
			x := w.walk("f")
			const rounds = 5
			var gates [rounds]chan struct{}
			var reached [rounds]chan struct{}
			for i := range gates {
				gates[i], reached[i] = make(chan struct{}), make(chan struct{})
				w.faults.Queue(providers.MethodRead, providertest.Fault{Gate: gates[i], Reached: reached[i]})
			}
			var done sync.WaitGroup
			last := strings.Repeat("x", rounds+1)
			for range opens {
				done.Go(func() {
					o, err := w.v.Open(me, x, syscall.O_RDONLY)
					if err != nil {
						t.Error(err)
						return
					}
					defer o.File.Release()
					a, err := w.v.Attr(me, x, nil)
					got := w.read(o)
					assert.True(t, err == nil && got == last && a.Size == uint64(len(last)), "got", got, "size", a.Size, err)
				})
			}
			for i := range gates {
				<-reached[i]
				w.tamper("f", strings.Repeat("x", i+2))
				if i%2 == 0 {
					w.pull() // who waits need not be who finds out
				}
				close(gates[i])
			}
			done.Wait()
		})
	}
}

// What is whole is served to who holds the old inode, after he was sent back
// once.
func TestPinnedVersionIsServed(t *testing.T) {
	w := newScene(t, holding("f", "one"))
	old := w.walk("f")
	keep := w.open("f", syscall.O_RDONLY) // as a bind mount does, by its reference
	defer keep.File.Release()
	w.read(keep)
	w.tamper("f", "two!")
	w.pull()
	w.is(assert.ErrOf(w.v.Open(me, old, syscall.O_RDONLY)), fs.ErrStale)
	w.serves(old, "one")
}

// A file whose version is gone, and whose inode cannot become the new one since
// its attributes were changed here, fails an open once; the name leads to a new
// inode, and the old one has content nowhere any more.
func TestVersionMovedOnBesideAChange(t *testing.T) {
	w := newScene(t, holding("f", "one"), func(_ *world, o *Options) { o.Policy = Policy{NoWait: true, Commit: DueAsked} })
	old := w.walk("f")
	w.do("chmod f")
	w.tamper("f", "changed!")
	w.is(assert.ErrOf(w.v.Open(me, old, syscall.O_RDONLY)), fs.ErrStale)
	now := w.walk("f")
	assert.True(t, now != old && now != 0 && w.get("f") == "changed!", "the name leads to inode", now, "before to", old)
	// A bind-mounted file leads to the old inode again and again.
	_, err := w.v.Open(me, old, syscall.O_RDONLY)
	assert.True(t, !errors.Is(err, fs.ErrStale) && err != nil && fs.Errno(err) == syscall.EIO, "the second open", err)
}

// serves opens an inode again and again.
func (w *scene) serves(ino fs.Ino, want string) {
	w.Helper()
	for range 3 {
		o := w.openIno(ino, syscall.O_RDONLY)
		assert.Equal(w, w.read(o), want)
		o.File.Release()
	}
}

// The attributes' version moves on while content is being read: it goes on.
func TestOnlyAttributesMoved(t *testing.T) {
	w := newScene(t, holding("f", "one"))
	w.walk("f")
	_, err := w.p.SetAttr(context.Background(), at("f"), providers.SetAttrOptions{
		If: providers.Unconditional(), Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}})
	w.ok(err)
	o, err := w.v.Open(me, w.walk("f"), syscall.O_RDONLY)
	if errors.Is(err, fs.ErrStale) {
		o, err = w.v.Open(me, w.walk("f"), syscall.O_RDONLY)
	}
	w.ok(err)
	defer o.File.Release()
	assert.Equal(t, w.read(o), "one")
	assert.Equal(t, w.mode("f"), 0o600, "mode")
}

// A link whose target is at the backend is read when somebody asks.
func TestTargetsAreFetched(t *testing.T) {
	w := newScene(t, func(w *world, _ *Options) { (&scene{w}).otherLink("l", "there") })
	w.sees("l -> there")
	w.otherLink("l", "elsewhere")
	w.pull()
	w.sees("l -> elsewhere")
}

// Another changed the file that is being moved for us: whoever opens it under its
// new name meanwhile waits for what becomes of the move, and is not told that the
// bytes are nowhere.
func TestOpenWaitsThroughAMove(t *testing.T) {
	for _, method := range []providers.Method{providers.MethodMove, providers.MethodCommit} {
		t.Run(string(method), func(t *testing.T) {
			w := newWorld(t, holding("d/f", "one"), background, func(_ *world, o *Options) { o.Policy.Atomic = method == providers.MethodCommit })
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
				return w.v.pending.Waiting(locked.View) > 0
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
	w.writeLast(o, "new", 0)
	w.settle()
	assert.Equal(t, strings.Count(calls.changes(), "write"), 1, "writes")
	assert.Equal(t, len(w.log("f"))-before, 1, "versions")
	e := w.open("f", syscall.O_WRONLY|syscall.O_TRUNC)
	w.ok(w.shut(e))
	w.settle()
	w.backend("f: ")
}

// drop takes bytes that nobody wants.
type drop struct{}

func (drop) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// A read that finds its version gone while the head moves does not wait for that any
// longer than its caller.
func TestRevalidationEndsWithItsCaller(t *testing.T) {
	w := newScene(t, holding("f", "one"))
	x := table.Ino(w.walk("f"))
	was := w.v.hydrator.Whereabouts(x)
	w.tamper("f", "two")
	defer w.v.head.Move().Release()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- w.v.hydrator.Follow(ctx, func() error { return w.v.hydrator.Fetch(ctx, x, was.ContentVersion, 0, 3, drop{}) })
	}()
	cancel()
	assert.False(t, <-done == nil, "it was fetched")
	err := w.v.hydrator.Fetch(t.Context(), x, was.ContentVersion, 0, 3, drop{})
	assert.Is(t, err, files.ErrVersionGone) // at once, while the head is kept
}

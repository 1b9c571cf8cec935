package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

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
	if now := w.walk("f"); now != old || w.get("f") != "changed!" {
		t.Errorf("the name leads to inode %d, before to %d", now, old)
	}
	_, err := w.v.Open(me, gone, syscall.O_RDONLY)
	w.is(err, fs.ErrStale)
	assert.Equal(t, w.walk("g"), 0, "the name leads to inode")
	// A bind-mounted file leads to the old inode again and again.
	_, err = w.v.Open(me, gone, syscall.O_RDONLY)
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
					if got := w.read(o); err != nil || got != last || a.Size != uint64(len(last)) {
						t.Errorf("got %q, size %d, %v", got, a.Size, err)
					}
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
	_, err := w.v.Open(me, old, syscall.O_RDONLY)
	w.is(err, fs.ErrStale)
	w.serves(old, "one")
}

// A file whose version is gone, and whose inode cannot become the new one since
// its attributes were changed here, fails an open once; the name leads to a new
// inode, and the old one has content nowhere any more.
func TestVersionMovedOnBesideAChange(t *testing.T) {
	w := newScene(t, holding("f", "one"), func(_ *world, o *Options) {
		o.Policy = Policy{NoWait: true, Commit: DueAsked}
	})
	old := w.walk("f")
	w.do("chmod f")
	w.tamper("f", "changed!")
	_, err := w.v.Open(me, old, syscall.O_RDONLY)
	w.is(err, fs.ErrStale)
	if now := w.walk("f"); now == old || now == 0 || w.get("f") != "changed!" {
		t.Errorf("the name leads to inode %d, before to %d", now, old)
	}
	// A bind-mounted file leads to the old inode again and again.
	_, err = w.v.Open(me, old, syscall.O_RDONLY)
	if errors.Is(err, fs.ErrStale) || err == nil || fs.Errno(err) != syscall.EIO {
		t.Errorf("the second open: %v", err)
	}
}

// serves opens an inode again and again.
func (w *scene) serves(ino fs.Ino, want string) {
	w.Helper()
	for range 3 {
		o, err := w.v.Open(me, ino, syscall.O_RDONLY)
		w.ok(err)
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
	if w.read(o) != "one" || w.mode("f") != 0o600 {
		t.Errorf("%q, mode %o", w.read(o), w.mode("f"))
	}
}

// A link whose target is at the backend is read when somebody asks.
func TestTargetsAreFetched(t *testing.T) {
	w := newScene(t, func(w *world, _ *Options) { (&scene{w}).otherLink("l", "there") })
	ino := w.walk("l")
	if got, err := w.v.Readlink(me, ino); got != "there" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	w.otherLink("l", "elsewhere")
	w.pull()
	if got, err := w.v.Readlink(me, w.walk("l")); got != "elsewhere" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func (w *scene) table(ino fs.Ino) table.Inode {
	locked := w.v.lock()
	defer locked.unlock()
	return *locked.table.Inode(table.Ino(ino))
}

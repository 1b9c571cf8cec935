package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// Within the TTL nothing is asked; after it one listing serves names,
// attributes and opens of a directory, and the kernel gets the rest of it.
func TestTTL(t *testing.T) {
	var c ticking
	var n calls
	w := newScene(t, recording(&n), holding("f", "one"), clocked(&c, time.Second))
	w.get("f")
	n.of(providers.MethodList)
	w.tamper("f", "two!")
	w.tamper("g", "new")
	c.add(900 * time.Millisecond)
	e, err := w.v.Lookup(me, fs.RootIno, "f")
	assert.True(t, err == nil && e.TTL == 100*time.Millisecond && e.Attr.TTL == e.TTL, "entry", e, err)
	e, _ = w.v.Lookup(me, fs.RootIno, "g")
	assert.True(t, e.Ino == 0 && e.TTL == 100*time.Millisecond, "a missing name", e)
	assert.Equal(t, w.get("f"), "one", "within the TTL")
	assert.Equal(t, n.of(providers.MethodList), 0, "listings within the TTL")
	c.add(200 * time.Millisecond)
	assert.True(t, w.walk("f") != 0, "the name is gone")
	assert.Equal(t, w.get("f")+" "+w.get("g"), "two! new", "after it")
	assert.Equal(t, n.of(providers.MethodList), 1, "listings")
}

// The TTL counts from when a listing begins: what others do while it goes on it may not
// show.
func TestTTLBeginsWithTheListing(t *testing.T) {
	var c ticking
	w := newScene(t, holding("f", "one"), clocked(&c, time.Second))
	reached, open := w.gate(providers.MethodList)
	looked := async(func() { w.walk("f") })
	<-reached
	c.add(900 * time.Millisecond)
	open()
	<-looked
	e := assert.Of(w.v.Lookup(me, fs.RootIno, "f")).OK(w)
	assert.Equal(t, e.TTL, 100*time.Millisecond, "the kernel believes it for")
}

// What a renamed directory holds is at two places until the old one is deleted. An
// open asks at that which stays: of the other there is soon nothing to ask.
func TestOpenWhileTheOldPlaceGoes(t *testing.T) {
	var c ticking
	w := newScene(t, background, clocked(&c, time.Second), over(memory.Options{Without: asKeys, ImpliedDirs: true}), holding("d/f", "one"))
	w.get("d/f")
	gate, gone := w.answerLate(providers.MethodDelete)
	w.ok(w.rename("d", "e"))
	<-gone
	ino := w.walk("e/f")
	c.add(2 * time.Second)
	o, err := w.v.Open(me, ino, syscall.O_RDONLY)
	close(gate)
	w.ok(err)
	assert.Equal(t, w.read(o), "one")
	o.File.Release()
	w.settle()
	w.backend("e/", "e/f: one")
}

// An open waits for the answer where a look at names does not.
func TestOpenIsStricter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c ticking
		w := newScene(t, holding("f", "one"), clocked(&c, time.Second), hurried)
		ino := w.walk("f")
		w.get("f")
		w.tamper("f", "two!")
		c.add(2 * time.Second)
		reached, open := w.gate(providers.MethodList)
		opened := make(chan error)
		go func() {
			o, err := w.v.Open(me, ino, syscall.O_RDONLY)
			if err == nil {
				o.File.Release()
			}
			opened <- err
		}()
		<-reached
		got := w.walk("f")
		assert.True(t, got == ino && !w.stale().IsZero(), "inode", got, "stale since", w.stale())
		open()
		w.is(<-opened, fs.ErrStale)
		assert.True(t, w.stale().IsZero(), "still stale")
	})
}

// Who is killed leaves what he waits for.
func TestWhoIsKilledLeaves(t *testing.T) {
	w := newWorld(t, holding("d/a", "1"))
	d := w.walk("d")
	reached, open := w.gate(providers.MethodList)
	defer open()
	cancel, left := make(chan struct{}), make(chan error)
	op := &fs.Op{PID: 1 << 30, Cancel: cancel} // there is no such thread: it was killed
	go func() { left <- w.v.listings.Load(op, table.Ino(d)) }()
	<-reached
	close(cancel)
	w.is(<-left, syscall.EINTR)
	assert.Equal(t, w.get("d/a"), "1") // another listing, not the one that hangs
}

// With the backend cut off, what is known is shown at once and marked stale, and
// content can be opened for a minute; then that is an error. What was changed
// here is always there.
func TestCutOff(t *testing.T) {
	synctest.Test(t, cutOff) // the time that it measures is what was waited for, on any machine
}

func cutOff(t *testing.T) {
	var c ticking
	w := newScene(t, holding("f", "one"), clocked(&c, time.Second), hurried, func(_ *world, o *Options) {
		o.Policy.Commit, o.Policy.NoWait = DueAsked, true
		o.Patience = 200 * time.Millisecond
	})
	w.get("f")
	w.ok(w.put("ours", "x"))
	defer w.silence()()
	c.add(30 * time.Second)
	began := time.Now()
	assert.Equal(t, strings.Join(w.names(""), " "), "f ours", "names")
	assert.AtMost(t, time.Since(began), listing.LeastWait, "it took")
	assert.Equal(t, w.get("f"), "one")
	assert.False(t, w.stale().IsZero(), "not marked stale")
	began = time.Now()
	for range 20 {
		w.names("")
	}
	assert.Equal(t, time.Since(began), 0, "with the backend known to be gone it took")
	w.ok(w.rename("ours", "mine"))
	c.add(31 * time.Second)
	began = time.Now()
	assert.Equal(t, strings.Join(w.names(""), " "), "f mine", "names")
	w.do("mkdir d", "mv d e", "rm mine", "put mine x")
	assert.Equal(t, time.Since(began), 0, "a minute later it took")
	_, err := w.v.Open(me, w.walk("f"), syscall.O_RDONLY)
	w.is(err, fs.ErrUnavailable)
	assert.Equal(t, fs.Errno(err), syscall.EIO)
	o := w.openIno(w.known("mine"), syscall.O_RDONLY)
	assert.Equal(t, w.read(o), "x", "ours")
	o.File.Release()
}

// silence has the store answer nothing any more, until end.
func (w *scene) silence() (end func()) {
	over := make(chan struct{})
	w.intercept(func(ctx context.Context, _ *providers.Call, next func(context.Context) error) error {
		select {
		case <-over:
			return next(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return sync.OnceFunc(func() { close(over) })
}

func (w *scene) stale() time.Time { return w.v.belief.FailingSince() }

// A first listing that was interrupted goes on with what it left, and forgets
// what is gone since.
func TestInterruptedLoad(t *testing.T) {
	w := newScene(t, over(memory.Options{PageSize: 512}), holding(numbered(2*512, "d/%05d")...))
	d := w.walk("d")
	w.faults.Queue(providers.MethodList, providertest.Fault{}, providertest.Fault{Before: providers.ErrPermission})
	w.is(assert.ErrOf(w.v.Lookup(me, d, "00000")), providers.ErrPermission)
	w.gonePath("d/00000")
	w.tamper("d/00001", "other")
	assert.Equal(t, len(w.names("d")), 2*512-1, "names")
	assert.Equal(t, w.get("d/00001"), "other")
}

// What the kernel is told of a pull: names of files, never of a directory that
// goes on existing.
func TestNotifications(t *testing.T) {
	var c ticking
	w := newScene(t, holding("d/f", "1", "d/g", "2", "d/e/x", "3", "k/y", "4"), clocked(&c, time.Second))
	told := &teller{}
	w.v.Bind(told)
	for _, dir := range []string{"", "d", "d/e", "k"} {
		w.names(dir)
	}
	d, e := w.walk("d"), w.walk("d/e")
	w.tamper("d/f", "changed")
	w.gonePath("d/g")
	w.tamper("d/n", "new")
	w.tamper("d/e/x", "changed")
	w.gonePath("k")
	w.pull()
	want := []string{"f", "g", "k", "n", "x", "y"} // not d and e
	assert.Slice(t, told.names(), want, "told")
	assert.Slice(t, told.wrote, []string{"d/e/x", "d/f", "d/n"}, "written")
	assert.Slice(t, told.deleted, []string{"d/g", "k/y"}, "deleted")
	assert.True(t, w.walk("d") == d && w.walk("d/e") == e, "directories are the inodes that they were")
}

// teller remembers what the kernel and the bus are told.
type teller struct {
	unserved
	mu             sync.Mutex
	entries        []string
	wrote, deleted []string
}

func (k *teller) EntryChanged(dir fs.Ino, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entries = append(k.entries, name)
}

func (k *teller) Wrote(path string)   { k.wrote = sorted(append(k.wrote, path)) }
func (k *teller) Deleted(path string) { k.deleted = sorted(append(k.deleted, path)) }

func (k *teller) names() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Compact(sorted(k.entries))
}

// Credentials that do not hold any more say nothing against what is known: names
// are shown, and marked stale, however long that lasts.
func TestNamesWithoutALogin(t *testing.T) {
	var c ticking
	w := newScene(t, holding("f", "one"), clocked(&c, time.Second))
	w.get("f")
	w.intercept(func(context.Context, *providers.Call, func(context.Context) error) error {
		return providers.ErrUnauthenticated
	})
	for _, later := range []time.Duration{30 * time.Second, time.Hour} {
		c.add(later)
		assert.Slice(t, w.names(""), []string{"f"}, later, "later: names")
		assert.False(t, w.stale().IsZero(), later, "later: not marked stale")
	}
}

// On a full disk what a listing brings cannot be recorded: then names are as they were,
// so that some can be removed.
func TestNamesOnAFullDisk(t *testing.T) {
	var c ticking
	var full atomic.Bool
	w := newScene(t, holding("d/f", "one"), clocked(&c, time.Second), func(_ *world, o *Options) {
		o.names = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if full.Load() && op.Kind == errorfs.OpFilePreallocate {
				return syscall.ENOSPC
			}
			return nil
		}))
	})
	f := w.walk("d/f")
	full.Store(true)
	var err error
	for i := 0; err == nil && i < 20_000; i++ {
		_, err = w.v.Mkdir(me, fs.RootIno, fmt.Sprint("new", i), 0o777)
	}
	assert.Must(t, errors.Is(err, syscall.ENOSPC), "changes without end", err)
	w.tamper("d/g", "new")
	for range 3 {
		c.add(40 * time.Second)
		assert.Equal(t, w.walk("d/f"), f, "its inode")
	}
	full.Store(false)
	c.add(time.Second)
	assert.True(t, w.walk("d/g") != 0, "with room again it is not there")
}

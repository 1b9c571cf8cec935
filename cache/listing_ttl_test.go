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

// counting counts the calls of the store by method.
type counting struct {
	mu    sync.Mutex
	calls map[providers.Method]int
}

func (c *counting) option(w *world, _ *Options) {
	c.calls = map[providers.Method]int{}
	w.p = memory.New(memory.Options{PageSize: 3, Hook: func(_ context.Context, m providers.Method, _ providers.Locator) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls[m]++
		return nil
	}})
}

func (c *counting) since(m providers.Method) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.calls[m]
	c.calls[m] = 0
	return n
}

// Within the TTL nothing is asked; after it one listing serves names,
// attributes and opens of a directory, and the kernel gets the rest of it.
func TestTTL(t *testing.T) {
	var c ticking
	var n counting
	w := newScene(t, n.option, holding("f", "one"), clocked(&c, time.Second))
	w.get("f")
	n.since(providers.MethodList)
	w.tamper("f", "two!")
	w.tamper("g", "new")
	c.add(900 * time.Millisecond)
	if e, err := w.v.Lookup(me, fs.RootIno, "f"); err != nil || e.TTL != 100*time.Millisecond || e.Attr.TTL != e.TTL {
		t.Errorf("entry %+v, %v", e, err)
	}
	if e, _ := w.v.Lookup(me, fs.RootIno, "g"); e.Ino != 0 || e.TTL != 100*time.Millisecond {
		t.Errorf("a missing name %+v", e)
	}
	if got := w.get("f"); got != "one" || n.since(providers.MethodList) != 0 {
		t.Errorf("%q within the TTL", got)
	}
	c.add(200 * time.Millisecond)
	old := w.walk("f")
	if got := w.get("f"); got != "two!" || w.get("g") != "new" {
		t.Errorf("%q after it", got)
	}
	if got := n.since(providers.MethodList); got != 1 || old == 0 {
		t.Errorf("%d listings", got)
	}
}

// The TTL counts from when a listing begins: what others do while it goes on it may not
// show.
func TestTTLBeginsWithTheListing(t *testing.T) {
	var c ticking
	w := newScene(t, holding("f", "one"), clocked(&c, time.Second))
	gate, reached := make(chan struct{}), make(chan struct{})
	w.faults.Queue(providers.MethodList, providertest.Fault{Gate: gate, Reached: reached})
	looked := async(func() { w.walk("f") })
	<-reached
	c.add(900 * time.Millisecond)
	close(gate)
	<-looked
	e, err := w.v.Lookup(me, fs.RootIno, "f")
	w.ok(err)
	assert.Equal(t, e.TTL, 100*time.Millisecond, "the kernel believes it for")
}

// An open asks even when nobody looked the name up, and sends the kernel back
// once.
func TestOpenRevalidates(t *testing.T) {
	var c ticking
	w := newScene(t, holding("f", "one"), clocked(&c, time.Second))
	ino := w.walk("f")
	w.get("f")
	w.tamper("f", "two!")
	c.add(2 * time.Second)
	_, err := w.v.Open(me, ino, syscall.O_RDONLY)
	w.is(err, fs.ErrStale)
	assert.Equal(t, w.get("f"), "two!")
}

// What a renamed directory holds is at two places until the old one is deleted. An
// open asks at that which stays: of the other there is soon nothing to ask.
func TestOpenWhileTheOldPlaceGoes(t *testing.T) {
	var c ticking
	w := newScene(t, background, clocked(&c, time.Second), func(w *world, _ *Options) {
		w.p = memory.New(memory.Options{Without: asKeys, ImpliedDirs: true})
	}, holding("d/f", "one"))
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
		gate, reached := make(chan struct{}), make(chan struct{})
		w.faults.Queue(providers.MethodList, providertest.Fault{Gate: gate, Reached: reached})
		opened := make(chan error)
		go func() {
			o, err := w.v.Open(me, ino, syscall.O_RDONLY)
			if err == nil {
				o.File.Release()
			}
			opened <- err
		}()
		<-reached
		if got := w.walk("f"); got != ino || w.stale().IsZero() {
			t.Errorf("inode %d, stale since %v", got, w.stale())
		}
		close(gate)
		w.is(<-opened, fs.ErrStale)
		assert.True(t, w.stale().IsZero(), "still stale")
	})
}

// All who look while a directory is listed wait for the same listing.
func TestOneListingForAll(t *testing.T) {
	var n counting
	w := newScene(t, n.option, holding("d/a", "1"))
	d := w.walk("d")
	n.since(providers.MethodList)
	gate, reached := make(chan struct{}), make(chan struct{})
	w.faults.Queue(providers.MethodList, providertest.Fault{Gate: gate, Reached: reached})
	var all sync.WaitGroup
	look := func() {
		if e, err := w.v.Lookup(me, d, "a"); e.Ino == 0 || err != nil {
			t.Errorf("%+v, %v", e, err)
		}
	}
	all.Go(look)
	<-reached
	for range 7 {
		all.Go(look)
	}
	close(gate)
	all.Wait()
	assert.Equal(t, n.since(providers.MethodList), 1, "listings")
}

// One who is killed leaves; the listing goes on for who still waits, and ends
// when nobody does.
func TestWaitersLeave(t *testing.T) {
	w := newScene(t, holding("d/a", "1", "e/a", "1"))
	d, e := w.walk("d"), w.walk("e")
	gate, reached := make(chan struct{}), make(chan struct{})
	w.faults.Queue(providers.MethodList, providertest.Fault{Gate: gate, Reached: reached})
	dead := &fs.Op{PID: 1 << 30, Cancel: make(chan struct{})} // no such thread: it was killed
	left, stays := make(chan error), make(chan error)
	go func() { stays <- w.v.loadDir(me, table.Ino(d)) }()
	<-reached
	go func() { left <- w.v.loadDir(&fs.Op{PID: 1 << 30, Cancel: closed()}, table.Ino(d)) }()
	w.is(<-left, syscall.EINTR)
	close(gate)
	w.ok(<-stays)

	hung := make(chan struct{})
	w.faults.Queue(providers.MethodList, providertest.Fault{Gate: make(chan struct{}), Reached: hung})
	cancel := make(chan struct{})
	dead.Cancel = cancel
	go func() { left <- w.v.loadDir(dead, table.Ino(e)) }()
	<-hung
	close(cancel)
	w.is(<-left, syscall.EINTR)
	if got := w.get("e/a"); got != "1" { // another listing, not the one that hangs
		t.Errorf("got %q", got)
	}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
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
	cut := make(chan struct{})
	defer close(cut)
	w.v.p = providers.Wrap(w.p, providers.WrapOptions{Around: func(ctx context.Context, call *providers.Call, next func(context.Context) error) error {
		select {
		case <-cut:
			return next(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	c.add(30 * time.Second)
	began := time.Now()
	assert.Equal(t, strings.Join(w.names(""), " "), "f ours", "names")
	if took := time.Since(began); took > listing.LeastWait {
		t.Errorf("it took %v", took)
	}
	assert.Equal(t, w.get("f"), "one")
	assert.False(t, w.stale().IsZero(), "not marked stale")
	began = time.Now()
	for range 20 {
		w.names("")
	}
	if took := time.Since(began); took > 0 {
		t.Errorf("with the backend known to be gone it took %v", took)
	}
	w.ok(w.rename("ours", "mine"))
	c.add(31 * time.Second)
	began = time.Now()
	assert.Equal(t, strings.Join(w.names(""), " "), "f mine", "names")
	w.do("mkdir d", "mv d e", "rm mine", "put mine x")
	if took := time.Since(began); took > 0 {
		t.Errorf("a minute later it took %v", took)
	}
	_, err := w.v.Open(me, w.walk("f"), syscall.O_RDONLY)
	w.is(err, fs.ErrUnavailable)
	assert.Equal(t, fs.Errno(err), syscall.EIO)
	locked := w.v.lock()
	rec, _ := locked.table.Name(table.Root, "mine")
	locked.unlock()
	o, err := w.v.Open(me, fs.Ino(rec.Ino), syscall.O_RDONLY)
	w.ok(err)
	assert.Equal(t, w.read(o), "x", "ours")
	o.File.Release()
}

func (w *scene) stale() time.Time { return w.v.belief.FailingSince() }

// A listing that fails half way shows nothing, and one that comes back takes
// the mark away.
func TestListingIsWholeOrNothing(t *testing.T) {
	w := newScene(t, holding("a", "1", "b", "2", "c", "3", "d", "4"))
	w.faults.Queue(providers.MethodList, providertest.Fault{}, providertest.Fault{Before: providers.ErrPermission})
	_, err := w.v.Lookup(me, fs.RootIno, "a")
	w.is(err, providers.ErrPermission)
	assert.Equal(t, strings.Join(w.names(""), " "), "a b c d", "names")
	assert.True(t, w.stale().IsZero(), "stale")
}

// A directory with more names than a change of the table holds.
func TestLargeDirectory(t *testing.T) {
	const n = 3*batch + 7
	w := newScene(t, func(w *world, _ *Options) {
		w.p = memory.New(memory.Options{PageSize: 100})
		for i := range n {
			w.tamper(fmt.Sprintf("d/%05d", i), "x")
		}
	})
	names := w.names("d")
	if len(names) != n || !slices.IsSorted(names) {
		t.Errorf("%d names of %d", len(names), n)
	}
	assert.Equal(t, w.table(w.walk("d")).Entries, n, "entries")
}

// A first listing that was interrupted goes on with what it left, and forgets
// what is gone since.
func TestInterruptedLoad(t *testing.T) {
	w := newScene(t, func(w *world, _ *Options) {
		w.p = memory.New(memory.Options{PageSize: batch})
		for i := range 2 * batch {
			w.tamper(fmt.Sprintf("d/%05d", i), "x")
		}
	})
	d := w.walk("d")
	w.faults.Queue(providers.MethodList, providertest.Fault{}, providertest.Fault{Before: providers.ErrPermission})
	_, err := w.v.Lookup(me, d, "00000")
	w.is(err, providers.ErrPermission)
	w.gonePath("d/00000")
	w.tamper("d/00001", "other")
	assert.Equal(t, len(w.names("d")), 2*batch-1, "names")
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
	w.tamper("d/f", "changed")
	w.gonePath("d/g")
	w.tamper("d/n", "new")
	w.tamper("d/e/x", "changed")
	w.gonePath("k")
	w.pull()
	want := []string{"f", "g", "k", "n", "x", "y"} // not d and e
	assert.Slice(t, told.names(), want, "told")
	if !slices.Equal(told.wrote, []string{"d/e/x", "d/f", "d/n"}) || !slices.Equal(told.deleted, []string{"d/g", "k/y"}) {
		t.Errorf("events %q and %q", told.wrote, told.deleted)
	}
}

// A pull has put another file under a name, and the kernel renames that name
// before it hears of it: what it has under the new name is the old file.
func TestNotificationOfARenameAfterAPull(t *testing.T) {
	var c ticking
	w := newScene(t, holding("f", "1", "g", "2"), clocked(&c, time.Second))
	told := &teller{}
	w.v.Bind(told)
	old := w.open("f", 0) // or it is the same file with other content
	w.walk("g")
	w.tamper("f", "changed")
	w.pull()
	w.ok(w.rename("f", "h"))
	w.ok(w.rename("g", "k"))
	w.ok(w.shut(old))
	assert.Slice(t, told.names(), []string{"f", "h"}, "told")
}

// Who opens an inode is sent back to its name once, and once more when the inode
// is in another state.
func TestSentBackOnceForEachState(t *testing.T) {
	var c ticking
	w := newScene(t, holding("f", "1"), clocked(&c, time.Second))
	o := w.open("f", 0)
	x := table.Ino(w.walk("f"))
	sent := func() bool {
		locked := w.v.lock()
		defer locked.unlock()
		return locked.tellStale(x, nil)
	}
	if !sent() || sent() {
		t.Error("not once")
	}
	w.tamper("f", "changed")
	w.pull() // takes its name
	if !sent() || sent() {
		t.Error("not once without a name")
	}
	w.ok(w.shut(o))
}

// teller remembers what the kernel and the bus are told.
type teller struct {
	nobody
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
	w.v.p = providers.Wrap(w.p, providers.WrapOptions{Around: func(context.Context, *providers.Call, func(context.Context) error) error {
		return providers.ErrUnauthenticated
	}})
	for _, later := range []time.Duration{30 * time.Second, time.Hour} {
		c.add(later)
		if got := strings.Join(w.names(""), " "); got != "f" || w.stale().IsZero() {
			t.Errorf("%v later: names %q, stale since %v", later, got, w.stale())
		}
	}
}

// A directory that nobody has looked into is listed once, though the listing
// begins after whoever came for it.
func TestFirstLookIsOneListing(t *testing.T) {
	var c ticking
	asked := 0
	w := newScene(t, holding("f", "one"), clocked(&c, time.Second), func(_ *world, o *Options) {
		at := o.Now
		o.Now = func() time.Time { c.add(time.Millisecond); return at() }
	})
	w.v.p = providers.Wrap(w.v.p, providers.WrapOptions{Around: func(ctx context.Context, call *providers.Call, next func(context.Context) error) error {
		if call.Method == providers.MethodList {
			asked++
		}
		return next(ctx)
	}})
	if got := strings.Join(w.names(""), " "); got != "f" || asked != 1 {
		t.Errorf("names %q after %d listings", got, asked)
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
	d, f := w.walk("d"), w.walk("d/f")
	full.Store(true)
	var err error
	for i := 0; err == nil && i < 20_000; i++ {
		_, err = w.v.Mkdir(me, fs.RootIno, fmt.Sprint("new", i), 0o777)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("changes without end: %v", err)
	}
	w.tamper("d/g", "new")
	for range 3 {
		c.add(40 * time.Second)
		if e, err := w.v.Lookup(me, d, "f"); err != nil || e.Ino != f {
			t.Errorf("got %+v, %v", e, err)
		}
	}
	full.Store(false)
	c.add(time.Second)
	if e, err := w.v.Lookup(me, d, "g"); err != nil || e.Ino == 0 {
		t.Errorf("with room again: %+v, %v", e, err)
	}
}

package cache

import (
	"context"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
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
	fs.DiscardNotifier
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

package cache

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
)

// The names of the root come by themselves, and then all goes on without the
// backend.
func TestRootComesWithTheMount(t *testing.T) {
	w := newScene(t, unwaited, holding("a", "1", "b", "2", "c", "3", "d/x", "4", "e", "5"), func(_ *world, o *Options) { o.ListRoot = true })
	w.untilLocked(func(locked *View) bool { return locked.Inode(table.Root).Loaded })
	defer w.silence()()
	w.do("put new x", "mkdir m", "put m/in y", "mv a b", "rm c") // which fail where they wait
	assert.Equal(t, len(w.list(""))-2, 5, "names")               // b d e m new
}

// Who looks into a directory that was never listed waits for the backend, for as
// long as it has not been gone for half of the patience; then nobody does, until
// it answers again.
func TestUnlistedDirectoryOfABackendThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c ticking
		back := newManual()
		w := newScene(t, unwaited, holding("d/f", "1"), clocked(&c, time.Hour), hurried, back.option)
		d := w.walk("d")
		w.faults.Queue(providers.MethodList, providertest.Fault{Before: providers.ErrUnavailable})
		var err error
		first := async(func() { _, err = w.v.Lookup(me, d, "f") })
		w.until(func() bool { return !w.stale().IsZero() })
		limit := func() time.Duration {
			_, limit, err := w.v.listings.Judge(table.Ino(d), w.v.o.Now(), false)
			w.ok(err)
			return limit
		}
		c.add(w.o.Patience/2 - 3*time.Second)
		assert.Equal(t, limit(), 3*time.Second, "how long it waits for the listing")
		c.add(3 * time.Second)
		assert.Equal(t, limit(), listing.LeastWait, "how long it waits for what is gone")
		_, _, failed := w.v.Create(me, d, "x", syscall.O_WRONLY, 0o666)
		w.is(failed, fs.ErrUnavailable)
		w.is(assert.ErrOf(w.v.Mkdir(me, d, "y", 0o777)), fs.ErrUnavailable)
		assert.False(t, hasEnded(first), "they waited for the end of the listing")
		close(back.ends)
		<-first
		w.ok(err)
		w.do("put d/x mine")
		assert.True(t, w.stale().IsZero() && limit() != 0, "it is back, and waits are", limit())
	})
}

// Of a backend that does not answer at all, and where nothing else is said, a close waits
// for 60 s and a first look for half of that; then both fail.
func TestDefaultPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newScene(t, holding("d/f", "1"), func(_ *world, o *Options) { o.Patience = 0 })
		d := w.walk("d")
		o := w.create("new")
		w.write(o, "x", 0)
		end := w.silence()
		waits := func(want time.Duration, do func() error) {
			t.Helper()
			began := time.Now()
			w.is(do(), fs.ErrUnavailable)
			assert.Equal(t, time.Since(began), want, "it waited")
		}
		waits(30*time.Second, func() error { return assert.ErrOf(w.v.Lookup(me, d, "f")) })
		waits(60*time.Second, func() error { return o.File.Flush(me) })
		end()
		o.File.Release()
	})
}

// known is the inode of a name in the root, as the table has it.
func (w *scene) known(name string) fs.Ino {
	locked := w.v.lock()
	defer locked.unlock()
	rec, _ := locked.Name(table.Root, name)
	return fs.Ino(rec.Ino)
}

// What is listed before there is a kernel to tell is told to nobody, and Bind does not
// get in its way.
func TestBindWhileTheRootIsListed(t *testing.T) {
	for range 20 {
		w := newWorld(t, holding("f", "one", "g", "two"))
		listed := async(func() { w.ok(w.v.listings.Load(nil, table.Root)) })
		w.v.Bind(fs.DiscardNotifier{})
		<-listed
	}
}

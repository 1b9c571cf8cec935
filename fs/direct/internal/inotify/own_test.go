package inotify

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// What an own change explains is dropped without a look, and nothing else.
func TestExplains(t *testing.T) {
	for _, c := range []struct {
		name string
		own  Known[int]
		mask uint32
		want bool
	}{
		{"removed", Known[int]{Gone: true}, unix.IN_DELETE, true},
		{"directory removed", Known[int]{Gone: true}, unix.IN_DELETE | unix.IN_ISDIR, true},
		{"moved away", Known[int]{Gone: true}, unix.IN_MOVED_FROM, true},
		{"removed and made again", Known[int]{Gone: true}, unix.IN_DELETE | unix.IN_CREATE, false},
		{"removed and moved to", Known[int]{Gone: true}, unix.IN_DELETE | unix.IN_MOVED_TO, false},
		{"removal under way", Known[int]{Gone: true, Underway: 1}, unix.IN_DELETE, false},
		{"made", Known[int]{Made: 1}, unix.IN_CREATE, true},
		{"made and written", Known[int]{Made: 1}, unix.IN_CREATE | unix.IN_MODIFY, false},
		{"made and removed", Known[int]{Made: 1}, unix.IN_CREATE | unix.IN_DELETE, false},
		{"made, reported before", Known[int]{Made: 1, reported: true}, unix.IN_CREATE, false},
		{"directory made", Known[int]{Made: 1}, unix.IN_CREATE | unix.IN_ISDIR, false},
		{"moved to", Known[int]{Made: 1}, unix.IN_MOVED_TO, false},
		{"nothing of ours", Known[int]{}, unix.IN_CREATE, false},
		{"nothing of ours removed", Known[int]{}, unix.IN_DELETE, false},
	} {
		assert.Equal(t, c.own.Explains(c.mask), c.want, c.name)
	}
}

// An own is one with a clock and a batch that a test sets.
type own struct {
	*Own[int]
	batch uint64
	now   time.Time
}

func newOwn() *own {
	o := &own{batch: 1, now: time.Unix(0, 0)}
	o.Own = NewOwn[int](func() uint64 { return o.batch }, func() time.Time { return o.now })
	return o
}

var f = Key{root, "f"}

func (o *own) make(file int)   { o.Begin(f); o.End(f, file, false) }
func (o *own) remove()         { o.Begin(f); o.End(f, 0, true) }
func (o *own) attempt()        { o.Begin(f); o.Fail(f) }
func (o *own) later(by uint64) { o.batch += by }

// What was seen of a name is entered only if no change of it began since, however it
// ended, and whatever was forgotten of it.
func TestUnchanged(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after func(o *own)
		want          bool
	}{
		{"nothing", nil, nil, true},
		{"a change before", func(o *own) { o.make(1) }, nil, true},
		{"an attempt before", func(o *own) { o.attempt() }, nil, true},
		{"a change of another name", nil, func(o *own) { o.Begin(Key{root, "g"}) }, true},
		{"a change under way", func(o *own) { o.Begin(f) }, nil, false},
		{"a change that began", nil, func(o *own) { o.Begin(f) }, false},
		{"a change", nil, func(o *own) { o.make(1) }, false},
		{"an attempt", nil, func(o *own) { o.attempt() }, false},
		{"a change after another", func(o *own) { o.make(1) }, func(o *own) { o.remove() }, false},
		{"a change that nothing is known of", nil, func(o *own) { o.Begin(f); o.End(f, 0, false) }, false},
		{"as many changes as before", func(o *own) { o.make(1) },
			func(o *own) { o.Begin(f); o.End(f, 0, false); o.make(2) }, false},
		{"a change that was purged", nil, func(o *own) {
			o.make(1)
			o.later(2)
			o.now = o.now.Add(2 * ownFor)
			o.Purge()
		}, false},
	} {
		o := newOwn()
		if c.before != nil {
			c.before(o)
		}
		since := o.Know(f, 0)
		if c.after != nil {
			c.after(o)
		}
		entered := false
		got := o.Unchanged(f, since, true, func() { entered = true })
		assert.True(t, got == c.want && entered == c.want, c.name, got, "entered", entered, "want", c.want)
	}
}

// A change waits for what is entered of the name.
func TestChangeWaitsForWhatIsEntered(t *testing.T) {
	o := newOwn()
	began := make(chan struct{})
	o.Unchanged(f, o.Know(f, 0), true, func() {
		go func() {
			o.Begin(f)
			close(began)
		}()
		if o.mu.TryLock() {
			t.Error("nothing stops a change")
			o.mu.Unlock()
		}
	})
	<-began
}

// A report is ours in the batch that was read when the change returned, and in the
// next.
func TestReportsOfOwnChanges(t *testing.T) {
	o := newOwn()
	o.remove()
	for by, want := range []bool{true, true, false} {
		k := o.Know(f, o.batch+uint64(by))
		assert.Equal(t, k.Explains(unix.IN_DELETE), want, by, "batches later")
	}
	k := o.Know(f, 0)
	assert.True(t, k.Gone, "a look came too late")
	o.attempt()
	assert.True(t, o.names[f].Gone, "an attempt that failed ended what was known")
}

// One report is explained by our making a file, and none by our removing one once
// something was seen there again.
func TestKnownIsGoodForOneReport(t *testing.T) {
	o := newOwn()
	o.make(1)
	o.Unchanged(f, o.Know(f, 1), true, func() {})
	k := o.Know(f, 1)
	assert.True(t, !k.Explains(unix.IN_CREATE) && k.Made == 1, k, "explains a second report")
	o.remove()
	o.Unchanged(f, o.Know(f, 1), true, func() {})
	k = o.Know(f, 1)
	assert.False(t, k.Explains(unix.IN_DELETE), k, "explains another removal")
}

// What no report came for is forgotten, and what may still be reported is not.
func TestPurge(t *testing.T) {
	o := newOwn()
	o.make(1)
	o.Say(Key{root, "g"}, 7)
	o.Begin(Key{root, "h"})
	o.now = o.now.Add(2 * ownFor)
	o.Purge()
	assert.True(t, len(o.names) == 3, len(o.names), "names are known before their reports")
	o.later(2)
	o.now = o.now.Add(2 * ownFor)
	o.Purge()
	assert.True(t, len(o.names) == 1, len(o.names), "names are known, and one is being changed")
}

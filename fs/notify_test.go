package fs

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/wsmount/wsmount/integration/assert"
)

// fakeKernel hands each notification to the test and holds the worker until
// the test lets it go on, as a kernel that waits for a lock does.
type fakeKernel struct {
	got chan note
	on  chan struct{}
}

func newFakeKernel() *fakeKernel {
	return &fakeKernel{got: make(chan note), on: make(chan struct{})}
}

func (k *fakeKernel) EntryNotify(parent uint64, name string) fuse.Status {
	k.got <- note{kind: noteEntry, node: parent, name: name}
	<-k.on
	return fuse.OK
}

func (k *fakeKernel) InodeNotify(node uint64, off, _ int64) fuse.Status {
	kind := noteContent
	if off < 0 {
		kind = noteAttr
	}
	k.got <- note{kind: kind, node: node}
	<-k.on
	return fuse.OK
}

func TestNotesAreSentOnceUnlessTheyComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKernel()
		n := newNotes(&stats{}, nil)
		sl := &slotNotifier{s: &slot{n: 3, part: &part{}}, n: n}
		sl.EntryChanged(1, "a")
		sl.EntryChanged(1, "a") // a repeat while it waits
		sl.AttrChanged(2)
		go n.run(k)

		first := <-k.got
		sl.EntryChanged(1, "a") // changed again while the kernel is being told
		k.on <- struct{}{}
		second := <-k.got
		k.on <- struct{}{}
		third := <-k.got
		k.on <- struct{}{}

		entry := note{kind: noteEntry, node: 3<<slotShift | 1, name: "a"}
		attr := note{kind: noteAttr, node: 3<<slotShift | 2}
		assert.Slice(t, []note{first, second, third}, []note{entry, attr, entry}, "told")
		n.end()
	})
}

// A name that appeared is told unless the kernel has looked it up by the time of its
// turn.
func TestNoteOfWhatIsSeenByNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKernel()
		n := newNotes(&stats{}, nil)
		sl := &slotNotifier{s: &slot{part: &part{}}, n: n}
		looked := false
		seen := func() bool { return looked }
		sl.EntryAppeared(1, "first", seen)
		sl.EntryAppeared(1, "second", seen)
		sl.EntryChanged(1, "third")
		go n.run(k)
		for _, want := range []string{"first", "third"} {
			got := <-k.got
			assert.True(t, got.name == want, "told of", got.name, "want", want)
			looked = true
			k.on <- struct{}{}
		}
		n.end()
	})
}

// What an open has to tell does not wait for the worker, which the kernel may hold
// up.
func TestNewAttrIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKernel()
		n := newNotes(&stats{}, nil)
		sl := &slotNotifier{s: &slot{part: &part{}}, n: n}
		sl.EntryChanged(1, "a")
		go n.run(k)
		<-k.got // and the worker is held up
		told := make(chan struct{})
		go func() { n.newAttr(7); close(told) }()
		assert.Equal(t, <-k.got, (note{kind: noteAttr, node: 7}), "told")
		k.on <- struct{}{}
		k.on <- struct{}{}
		<-told
		n.end()
	})
}

// Who waits for what was reported waits for just that.
func TestWaitForNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKernel()
		n := newNotes(&stats{}, nil)
		sl := &slotNotifier{s: &slot{part: &part{}}, n: n}
		sl.ContentChanged(1)
		go n.run(k)
		told := make(chan struct{})
		<-k.got
		go func() { n.wait(t.Context()); close(told) }()
		synctest.Wait()
		select {
		case <-told:
			t.Error("the kernel has not taken it yet")
		default:
		}
		k.on <- struct{}{}
		<-told
		n.end()
		n.wait(t.Context()) // nobody is left to tell it
	})
}

// Whoever unmounts must not wait for a notification that the kernel holds up,
// and nothing may be sent afterwards.
func TestNotesEndWhileOneIsHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKernel()
		n := newNotes(&stats{}, nil)
		sl := &slotNotifier{s: &slot{part: &part{}}, n: n}
		sl.ContentChanged(1)
		sl.ContentChanged(2)
		go n.run(k)
		<-k.got
		n.close() // returns though the worker is held up
		sl.ContentChanged(3)
		k.on <- struct{}{}
		n.end()
		assert.Equal(t, n.stats.notified.Load(), 1, "notifications after close")
	})
}

func TestEventsNameThePart(t *testing.T) {
	got := make(chan Event, 2)
	n := newNotes(&stats{}, func(e Event) { got <- e })
	go n.run(newFakeKernel())
	sl := &slotNotifier{s: &slot{part: &part{Part: Part{Name: "@a/b"}}}, n: n}
	sl.Wrote("x/y")
	sl.Deleted("z")
	for _, want := range []Event{{"write", "@a/b", "x/y"}, {"delete", "@a/b", "z"}} {
		assert.Equal(t, <-got, want, "event")
	}
	n.end()
}

// The last writes before an unmount are events too, also those that are found
// when a file is released after it.
func TestEventsOutliveTheUnmount(t *testing.T) {
	var got []Event
	n := newNotes(&stats{}, func(e Event) { got = append(got, e) })
	sl := &slotNotifier{s: &slot{part: &part{}}, n: n}
	sl.Wrote("before")
	sl.AttrChanged(1)
	n.close()
	sl.Wrote("after")
	go n.run(newFakeKernel()) // which would wait for ever
	n.end()
	sl.Wrote("too late")
	assert.Slice(t, got, []Event{{Name: "write", Path: "before"}, {Name: "write", Path: "after"}})
}

// What is under a graft is hidden; telling the kernel would unmount what a
// sandbox has mounted below.
func TestNoNoteForAGraft(t *testing.T) {
	w := newWorld(t, Part{Volume: newFake("x/")}, Part{Name: "p", At: "x", Volume: newFake()})
	sl := &slotNotifier{s: w.tree.slots[0], n: w.notes}
	sl.EntryChanged(RootIno, "x")
	sl.EntryChanged(RootIno, "y")
	assert.True(t, len(w.notes.queue) == 1 && w.notes.queue[0].name == "y", "queued", w.notes.queue, "want only y")
}

// A failure found after the reply is seen like one of a request, and not lost
// when the mount ends: it does not wait for the worker.
func TestFailureAfterTheReply(t *testing.T) {
	v := &closing{fakeVolume: newFake()}
	w := newWorld(t, Part{Name: "@a/b", Volume: v})
	var log bytes.Buffer
	w.log = slog.New(slog.NewTextHandler(&log, nil))
	var got []Failure
	w.tell = func(f Failure) { got = append(got, f) }
	w.notes.close()
	v.note.Failed("x/y", fmt.Errorf("put: %w", ErrQuota))
	if len(got) != 1 || got[0].Part != "@a/b" || got[0].Path != "x/y" || got[0].Op != "background" ||
		got[0].Errno != syscall.EDQUOT || !errors.Is(got[0].Err, ErrQuota) || got[0].Time.IsZero() {
		t.Errorf("told %+v, want the part, the path, the error and its errno", got)
	}
	assert.Equal(t, w.stats.snapshot(w.tree.parts).Failed, 1, "counted")
	assert.Contains(t, log.String(), "put: quota exceeded", "log")
}

// closing is a volume whose Close fails.
type closing struct {
	*fakeVolume
	note   Notifier
	closed int
	err    error
}

func (c *closing) Bind(n Notifier) { c.note = n }

func (c *closing) Close() error {
	c.closed++
	return c.err
}

// One volume that cannot be closed must neither hide nor keep open another.
func TestErrorsOfCloseAreReturned(t *testing.T) {
	a := &closing{fakeVolume: newFake(), err: ErrUnavailable}
	b := &closing{fakeVolume: newFake()}
	c := &closing{fakeVolume: newFake(), err: ErrConflict}
	w := newWorld(t, Part{Name: "@a/a", Volume: a}, Part{Name: "@a/b", At: "b", Volume: b}, Part{Name: "@a/c", At: "c", Volume: c})
	s := &Server{front: w.front, served: make(chan struct{})}
	go w.notes.run(newFakeKernel())
	s.finish()
	err := s.Wait()
	assert.True(t, errors.Is(err, ErrUnavailable) && errors.Is(err, ErrConflict) && strings.Contains(err.Error(), "@a/c"), "got", err, "want both errors and the parts' names")
	assert.True(t, a.closed == 1 && b.closed == 1 && c.closed == 1, "closed", a.closed, b.closed, "and", c.closed, "times, want once each")
}

// Waking the worker for each event of a program that writes a thousand files
// costs it more than the events do: they wait for each other, and not longer.
func TestEventsComeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got atomic.Int32
		n := newNotes(&stats{}, func(Event) { got.Add(1) })
		sl := &slotNotifier{s: &slot{part: &part{}}, n: n}
		go n.run(newFakeKernel())
		synctest.Wait()
		for _, want := range []int32{2, 4} { // and once more
			sl.Wrote("a")
			sl.Wrote("b")
			synctest.Wait()
			assert.Equal(t, got.Load(), want-2, "events at once")
			time.Sleep(eventDelay)
			synctest.Wait()
			assert.Equal(t, got.Load(), want, "events after the delay")
		}
		n.end()
	})
}

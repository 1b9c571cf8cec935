package fs

import (
	"slices"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
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
	if got, want := []note{first, second, third}, []note{entry, attr, entry}; !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
	n.close()
	<-n.done
}

// Whoever unmounts must not wait for a notification that the kernel holds up,
// and nothing may be sent afterwards.
func TestNotesEndWhileOneIsHeldUp(t *testing.T) {
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
	<-n.done
	if got := n.stats.notified.Load(); got != 1 {
		t.Errorf("%d notifications after close, want only the one under way", got)
	}
}

func TestEventsNameThePart(t *testing.T) {
	got := make(chan Event, 2)
	n := newNotes(&stats{}, func(e Event) { got <- e })
	go n.run(newFakeKernel())
	sl := &slotNotifier{s: &slot{part: &part{Part: Part{Name: "@a/b"}}}, n: n}
	sl.Wrote("x/y")
	sl.Deleted("z")
	for _, want := range []Event{{"write", "@a/b", "x/y"}, {"delete", "@a/b", "z"}} {
		if e := <-got; e != want {
			t.Errorf("event %v, want %v", e, want)
		}
	}
	n.close()
	<-n.done
}

// What is under a graft is hidden; telling the kernel would unmount what a
// sandbox has mounted below.
func TestNoNoteForAGraft(t *testing.T) {
	w := newWorld(t, Part{Volume: newFake("x/")}, Part{Name: "p", At: "x", Volume: newFake()})
	sl := &slotNotifier{s: w.tree.slots[0], n: w.notes}
	sl.EntryChanged(RootIno, "x")
	sl.EntryChanged(RootIno, "y")
	if len(w.notes.queue) != 1 || w.notes.queue[0].name != "y" {
		t.Errorf("queued %v, want only y", w.notes.queue)
	}
}

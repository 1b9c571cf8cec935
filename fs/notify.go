package fs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// notes passes the reports of volumes to the kernel, from one worker. A notification can block
// in the kernel on a lock that a request holds while it waits for us, so none is sent from a
// handler (but see newAttr) or under a lock that a handler takes; and none is sent once
// unmounting has begun, when no thread may be left to answer such a request. Events go through
// the same queue, so that the kernel has been told of a change before the receiver of the event
// looks at it; the last events are delivered before the volumes count as closed.
type notes struct {
	stats *stats
	event func(Event)

	mu      sync.Mutex
	cond    sync.Cond
	kernel  kernel            // nil before run; guarded by mu
	queue   []note            // guarded by mu
	waiting map[note]struct{} // the notes of queue, to drop repeats; guarded by mu
	timer   bool              // eventDelay is running; guarded by mu
	closed  bool              // nothing more is sent to the kernel; guarded by mu
	ended   bool              // no note is added any more; guarded by mu
	done    chan struct{}
}

// eventDelay is how long an event may wait for the next one. A program that writes a thousand
// files causes a thousand events, and waking the worker for each would cost the program more
// than the event does.
const eventDelay = 2 * time.Millisecond

// note is one thing to report; an event has only kind, name (its path) and part.
type note struct {
	kind noteKind
	node uint64
	name string // a name in node, or the path of an event
	part string
	told chan struct{} // of a noteTold: closed when its turn comes
	seen *func() bool  // of a noteEntry: true if the kernel knows by now; nil: it does not
}

type noteKind uint8

const (
	noteEntry noteKind = iota
	noteAttr
	noteContent
	noteTold
	noteWrote // events from this one on
	noteDeleted
)

func (k noteKind) isEvent() bool { return k >= noteWrote }

// kernel is the part of *fuse.Server that takes notifications.
type kernel interface {
	EntryNotify(parent uint64, name string) fuse.Status
	InodeNotify(node uint64, off, length int64) fuse.Status
}

func newNotes(st *stats, event func(Event)) *notes {
	n := &notes{stats: st, event: event, waiting: make(map[note]struct{}), done: make(chan struct{})}
	n.cond.L = &n.mu
	return n
}

func (n *notes) add(x note) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, dup := n.waiting[x]; dup || n.ended || n.closed && !x.kind.isEvent() {
		return
	}
	n.waiting[x] = struct{}{}
	n.queue = append(n.queue, x)
	switch {
	case !x.kind.isEvent():
		n.cond.Signal()
	case !n.timer:
		n.timer = true
		time.AfterFunc(eventDelay, n.eventsDue)
	}
}

func (n *notes) eventsDue() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.timer = false
	n.cond.Signal()
}

// run sends until end. A note leaves the waiting set before it is sent, so that a change during
// the sending is reported again.
func (n *notes) run(k kernel) {
	defer close(n.done)
	n.mu.Lock()
	n.kernel = k
	n.mu.Unlock()
	for {
		x, ok := n.next()
		if !ok {
			return
		}
		n.send(k, x)
	}
}

// next waits for a note; ok is false at the end.
func (n *notes) next() (x note, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.queue) == 0 && !n.ended {
		n.cond.Wait()
	}
	if len(n.queue) == 0 {
		return note{}, false
	}
	x, n.queue = n.queue[0], n.queue[1:]
	delete(n.waiting, x)
	return x, true
}

// newAttr makes the kernel forget the attributes of a node before it returns. This one
// notification can be sent from a handler: the kernel looks the inode up and marks it, and
// takes no lock that a request keeps while it waits.
func (n *notes) newAttr(node uint64) {
	x := note{kind: noteAttr, node: node}
	n.mu.Lock()
	k, closed := n.kernel, n.closed
	n.mu.Unlock()
	switch {
	case closed:
	case k == nil:
		n.add(x)
	default:
		n.send(k, x)
	}
}

func (n *notes) send(k kernel, x note) {
	switch x.kind {
	case noteEntry:
		if x.seen != nil && (*x.seen)() {
			return
		}
		k.EntryNotify(x.node, x.name)
	case noteAttr:
		k.InodeNotify(x.node, -1, 0)
	case noteContent:
		k.InodeNotify(x.node, 0, 0)
	case noteTold:
		close(x.told)
		return
	case noteWrote, noteDeleted:
		if n.event != nil {
			n.event(Event{Name: [...]string{noteWrote: "write", noteDeleted: "delete"}[x.kind], Part: x.part, Path: x.name})
		}
		return
	}
	n.stats.notified.Add(1)
}

// wait returns when the kernel knows all notes added before, the worker has ended, or ctx ends.
func (n *notes) wait(ctx context.Context) {
	x := note{kind: noteTold, told: make(chan struct{})}
	n.add(x)
	select {
	case <-x.told:
	case <-n.done:
	case <-ctx.Done():
	}
}

// close stops telling the kernel; notes queued for it are dropped, events are not. It does not
// wait for a notification that blocks in the kernel.
func (n *notes) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	events := n.queue[:0]
	for _, x := range n.queue {
		if x.kind.isEvent() {
			events = append(events, x)
		} else {
			delete(n.waiting, x)
		}
	}
	n.queue = events
	n.cond.Signal()
}

// end delivers the queued events, and returns when the worker is gone. It is called when the
// last request has been answered: no notification blocks in the kernel then.
func (n *notes) end() {
	n.close()
	n.mu.Lock()
	n.ended = true
	n.cond.Signal()
	n.mu.Unlock()
	<-n.done
}

// slotNotifier is the Notifier of one part's volume.
type slotNotifier struct {
	s *slot
	n *notes
	f *front
}

var _ Notifier = (*slotNotifier)(nil)

func (k *slotNotifier) EntryChanged(dir Ino, name string) { k.entry(dir, name, nil) }

func (k *slotNotifier) EntryAppeared(dir Ino, name string, seen func() bool) {
	k.entry(dir, name, &seen)
}

func (k *slotNotifier) entry(dir Ino, name string, seen *func() bool) {
	if p := k.s.place(dir); p != nil {
		if c := p.children[name]; c != nil && c.graft != nil {
			return // the volume's own name is hidden, and the kernel would unmount below
		}
	}
	k.n.add(note{kind: noteEntry, node: k.s.node(dir), name: name, seen: seen})
}

func (k *slotNotifier) AttrChanged(ino Ino) { k.n.add(note{kind: noteAttr, node: k.s.node(ino)}) }

func (k *slotNotifier) ContentChanged(ino Ino) {
	k.n.add(note{kind: noteContent, node: k.s.node(ino)})
}

func (k *slotNotifier) Wrote(path string) {
	k.n.add(note{kind: noteWrote, name: path, part: k.s.part.Name})
}

func (k *slotNotifier) Deleted(path string) {
	k.n.add(note{kind: noteDeleted, name: path, part: k.s.part.Name})
}

// Failed does not go through the worker, which drops queued notes at the end: no failure may be
// lost.
func (k *slotNotifier) Failed(path string, err error) {
	k.f.stats.failed.Add(1)
	k.f.failed(Failure{Time: k.f.now(), Part: k.s.part.Name, Op: "background",
		Path: path, Errno: Errno(err), Err: err}, slog.LevelWarn, "failed in the background")
}

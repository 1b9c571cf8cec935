package fs

import (
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// notes tells the kernel what volumes report, from one worker. A notification
// can block in the kernel on a lock that a request holds while it waits for
// us, so it is never sent from a handler or under a lock that one takes; and
// none is sent once unmounting has begun, when nobody may be left to answer
// such a request.
type notes struct {
	stats *stats
	event func(Event)

	mu      sync.Mutex
	cond    sync.Cond
	queue   []note            // guarded by mu
	waiting map[note]struct{} // the notes of queue, to drop repeats; guarded by mu
	closed  bool              // guarded by mu
	done    chan struct{}
}

// note is one thing to tell; of events only kind, path and part are set.
type note struct {
	kind noteKind
	node uint64
	name string // a name in node, or the path of an event
	part string
}

type noteKind uint8

const (
	noteEntry noteKind = iota
	noteAttr
	noteContent
	noteWrote
	noteDeleted
)

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
	if _, dup := n.waiting[x]; dup || n.closed {
		return
	}
	n.waiting[x] = struct{}{}
	n.queue = append(n.queue, x)
	n.cond.Signal()
}

// run sends until close. A note leaves the waiting set before it is sent, so
// that a change during the sending is told again.
func (n *notes) run(k kernel) {
	defer close(n.done)
	for {
		x, ok := n.next()
		if !ok {
			return
		}
		n.send(k, x)
	}
}

// next waits for a note; ok is false when closed.
func (n *notes) next() (x note, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.queue) == 0 && !n.closed {
		n.cond.Wait()
	}
	if n.closed {
		return note{}, false
	}
	x, n.queue = n.queue[0], n.queue[1:]
	delete(n.waiting, x)
	return x, true
}

func (n *notes) send(k kernel, x note) {
	switch x.kind {
	case noteEntry:
		k.EntryNotify(x.node, x.name)
	case noteAttr:
		k.InodeNotify(x.node, -1, 0)
	case noteContent:
		k.InodeNotify(x.node, 0, 0)
	case noteWrote, noteDeleted:
		if n.event != nil {
			n.event(Event{Name: [...]string{noteWrote: "write", noteDeleted: "delete"}[x.kind], Part: x.part, Path: x.name})
		}
		return
	}
	n.stats.notified.Add(1)
}

// close stops telling the kernel; what is queued is dropped. It does not wait
// for a notification that the kernel holds up.
func (n *notes) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	n.queue = nil
	n.cond.Signal()
}

// slotNotifier is what a part's volume reports to.
type slotNotifier struct {
	s *slot
	n *notes
}

var _ Notifier = (*slotNotifier)(nil)

func (k *slotNotifier) EntryChanged(dir Ino, name string) {
	if p := k.s.place(dir); p != nil {
		if c := p.children[name]; c != nil && c.graft != nil {
			return // the volume's own name is hidden, and the kernel would unmount below
		}
	}
	k.n.add(note{kind: noteEntry, node: k.s.node(dir), name: name})
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

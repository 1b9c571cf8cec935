package pending

import (
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// A Queue has the changes that the remote does not have yet.
type Queue struct {
	o    Options
	kick chan struct{}

	resumed  bool
	newest   uint64                  // the newest place in the order
	due      uint64                  // names up to here are to be sent
	because  map[table.Link]struct{} // names that an operation made dirty: due with it
	windowed bool                    // a window is open
	stirs    uint64                  // how often there was a new change, or one became due
	ages     []age

	unsaved map[table.Ino]int64 // bytes of content that the remote lacks
	total   int64               // the sum of unsaved

	closed  map[table.Ino]uint64    // the content version that a program has closed
	overdue map[table.Ino]struct{}  // inodes that are sent although a program goes on writing them
	writing map[table.Ino]time.Time // open for writing since

	waiters map[*Waiter]struct{}

	calls   sync.Mutex // guards arrival, and is held while that runs
	arrival func()
}

// Options are the parts that a queue works with, and its settings.
type Options struct {
	Now func() time.Time
	// After runs f when d is over.
	After func(v *tree.View, d time.Duration, f func(*tree.View))

	// OnChange says that a change becomes due by itself; else it waits for Ask.
	OnChange bool
	// Window is how long after the first change it and all others since are due; 0: at once.
	Window time.Duration
	// Held says that no change is to be due by itself at this moment, whichever were; nil: never.
	Held func(*tree.View) bool
	// MaxUnsaved is how many bytes of content are unsaved when changes become due before the
	// window ends.
	MaxUnsaved int64
	// MaxOpen is for how long content is left alone because a program has it open for
	// writing.
	MaxOpen time.Duration

	Writers Writers
	Sender  Sender
}

// Writers are the programs that have files open for writing.
type Writers interface {
	// Writing reports whether a program has an inode open for writing, and whether it has written
	// bytes that the table does not know of yet.
	Writing(v *tree.View, ino table.Ino) (open, touched bool)
	// All are the inodes that programs have open for writing.
	All(v *tree.View, visit func(ino table.Ino))
}

// A Sender sends due changes.
type Sender interface {
	// Failure is the reason why a name that was tried is not sent: its own failure, or that of a
	// directory above, or of everything. final says that another try will not help.
	Failure(v *tree.View, l table.Link) (cause error, final bool)
	// IsSending reports whether a change of a name is on its way.
	IsSending(v *tree.View, l table.Link) bool
	// IsPlaceKnown reports whether the remote place of an inode is known: no change of it is under
	// way or without an answer.
	IsPlaceKnown(v *tree.View, ino table.Ino) bool
	// IsAsked reports whether a commit was asked for that is not done.
	IsAsked(*tree.View) bool
	// IsStopped reports whether nothing is sent at all for now.
	IsStopped(*tree.View) bool
}

// New is an empty queue, which follows no transaction before Resume.
func New(o Options) *Queue {
	return &Queue{
		o:       o,
		kick:    make(chan struct{}, 1),
		because: map[table.Link]struct{}{},
		unsaved: map[table.Ino]int64{},
		closed:  map[table.Ino]uint64{},
		overdue: map[table.Ino]struct{}{},
		writing: map[table.Ino]time.Time{},
		waiters: map[*Waiter]struct{}{},
	}
}

// Resume takes up the dirty names that the last run left. visit, if not nil, sees each of them.
func (q *Queue) Resume(v *tree.View, visit func(l table.Link, rec table.Name)) {
	q.resumed = true
	v.Dirty(0, func(seq uint64, l table.Link) bool {
		q.count(v, l)
		q.newest = seq
		if visit != nil {
			visit(l, v.Record(l))
		}
		return true
	})
	if q.newest > 0 {
		q.ages = append(q.ages, age{q.newest, q.o.Now()})
	}
	if q.o.OnChange {
		q.due = q.newest // how long it has waited is not known
	}
}

// Kick signals that there may be changes to send. It never blocks and needs no lock.
func (q *Queue) Kick() {
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// Kicked receives the Kicks. Several are one until it is received.
func (q *Queue) Kicked() <-chan struct{} { return q.kick }

// Marked reports whether a change of a name, which was and now is at a place in the order (0: at
// none), is of interest before it becomes due: it is to be kicked.
func (q *Queue) Marked(v *tree.View, was, now uint64) bool {
	switch {
	case now == 0: // it was on its way
		return was != 0
	case was == 0: // not due yet: see Open
		return q.isHurried(v)
	}
	return was <= q.due || q.isHurried(v) // another state of a name that was on its way
}

// Committed follows a transaction that was committed: the names that it concerned, and the inodes
// that lost one. own says that it was part of an operation: the names that it made dirty are due,
// and callers that wait for the operation wait for them too.
func (q *Queue) Committed(v *tree.View, own bool, changed []table.Link, unnamed []table.Ino) {
	if !q.resumed || len(changed)+len(unnamed) == 0 {
		return
	}
	for _, ino := range unnamed {
		q.countInode(v, ino)
	}
	before := q.newest
	for _, l := range changed {
		seq := q.count(v, l)
		if seq > q.newest {
			q.newest = seq
			q.aged(v, seq)
		}
		if seq > before && own { // they may have got their numbers in another order
			q.follows(v, l, seq)
		}
		if seq == 0 {
			delete(q.because, l)
		}
	}
	q.Open(v)
	q.NamesChanged(v, changed...)
}

// follows says that a name is dirty because of an operation: callers that wait for that wait for
// it too.
func (q *Queue) follows(_ *tree.View, l table.Link, seq uint64) {
	q.because[l] = struct{}{}
	q.Kick()
	for w := range q.waiters {
		if len(w.Names) > 0 {
			w.Names[l] = seq
		}
	}
}

// OnArrival has f called, one call at a time, when a change has arrived at the remote, until stop.
// Neither needs the lock, and f is called without it.
func (q *Queue) OnArrival(f func()) (stop func()) {
	set := func(f func()) {
		q.calls.Lock()
		defer q.calls.Unlock()
		q.arrival = f
	}
	set(f)
	return func() { set(nil) }
}

// Arrived says that a change has arrived at the remote, without the lock.
func (q *Queue) Arrived() {
	q.calls.Lock()
	defer q.calls.Unlock()
	if q.arrival != nil {
		q.arrival()
	}
}

package bucket

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Bounds of the cost of records.
const (
	indexMost  = 1_000_000        // in memory, 60 to 115 bytes each
	indexBatch = 1000             // changes that are written without waiting for more
	indexDelay = 5 * time.Second  // from a change until it is written
	indexPause = 5 * time.Minute  // the most between attempts that fail
	indexClose = 10 * time.Second // for Close's last writes; each missed one costs a HEAD later
	indexWait  = 5 * time.Second  // the most that a listing waits for segments
	indexFresh = time.Minute      // the least between two looks at the segments of others
	indexSend  = 30 * time.Second // for one writing
)

// indexWork is the name of the segment writer in reports of its failure.
const indexWork = "attribute index"

// index holds in memory the known metadata that listings leave out. It is
// read from segments and written to them in the background.
type index struct {
	objects *objects
	log     *slog.Logger
	most    int
	ended   func(work string, err error) // is told how writing ended; nil: no report

	// ctx ends with Close, and loaded when segments were first read.
	ctx    context.Context
	cancel context.CancelFunc
	loaded chan struct{}

	// io is locked while segments are read or written, and taken before mu. It guards the fields
	// in its block.
	io       sync.Mutex
	segments map[string]int64    // segments whose records are in memory, and their sizes
	bad      map[string]struct{} // those that cannot be read

	mu      sync.Mutex // guards all below
	known   map[uint64]record
	dirty   map[uint64]struct{} // known, and in no segment
	gone    map[uint64]uint32   // deleted, and when
	looked  time.Time           // at the segments
	delay   time.Duration       // until the next writing; grows while it fails
	timer   *time.Timer         // nil: nothing is planned
	writing bool                // false: the provider was opened for reading
	closed  bool
}

func newIndex(o *objects) *index {
	x := &index{objects: o, log: o.log, most: indexMost, delay: indexDelay, loaded: make(chan struct{}),
		segments: map[string]int64{}, bad: map[string]struct{}{},
		known: map[uint64]record{}, dirty: map[uint64]struct{}{}, gone: map[uint64]uint32{}}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x
}

// lockedIndex is an index while mu is locked, from lock on.
type lockedIndex struct{ *index }

func (x *index) lock() lockedIndex {
	x.mu.Lock()
	return lockedIndex{x}
}

// saw records the answer of a HEAD or a GET.
func (x *index) saw(o *object) {
	key, ok := x.objects.below(o.Key)
	if !ok {
		return
	}
	id, fresh := recordID(key), recordOf(o)
	locked := x.lock()
	defer x.mu.Unlock()
	old, known := x.known[id]
	switch {
	case known && old.same(fresh) && old.covers(fresh.at):
		x.known[id] = fresh // and the segment is as good
	case known && !old.is(recordAssumed) && old.check == fresh.check && old.order() > fresh.order():
		// An answer that was overtaken by a change of attributes.
	default:
		locked.change(id, fresh)
	}
}

// wrote records the result of a change that began at a time of the local clock. The
// times of records are the service's own, as its answer has it.
func (x *index) wrote(o *object, began time.Time) {
	key, ok := x.objects.below(o.Key)
	if !ok {
		return
	}
	made := *o
	if raw, err := o.meta.encode(x.objects.service); err == nil {
		made.meta = decode(o.Key, raw, o.meta.headers(o.Key)) // as Stat would tell it
	}
	fresh := recordOf(&made)
	if o.Modified.IsZero() {
		now := x.objects.now()
		at := o.Answered
		if at.IsZero() {
			at = now
		}
		fresh = recordWithin(&made, at.Add(-max(0, now.Sub(began))), at)
	}
	locked := x.lock()
	defer x.mu.Unlock()
	locked.change(recordID(key), fresh)
}

// removed records that a key is gone.
func (x *index) removed(key string) {
	key, ok := x.objects.below(key)
	if !ok {
		return
	}
	id := recordID(key)
	locked := x.lock()
	defer x.mu.Unlock()
	old, known := x.known[id]
	delete(x.known, id)
	delete(x.dirty, id)
	if known && !old.is(recordAssumed) && x.writing {
		x.gone[id] = seconds(x.objects.now())
		locked.plan()
	}
}

// change puts a record that no segment has.
func (x lockedIndex) change(id uint64, fresh record) {
	x.put(id, fresh)
	if !x.writing {
		return
	}
	delete(x.gone, id)
	if len(x.dirty) < x.most/10 { // else the writing has failed for long
		x.dirty[id] = struct{}{}
	}
	x.plan()
}

// put keeps a record, and drops another where there are too many.
func (x lockedIndex) put(id uint64, fresh record) {
	if _, known := x.known[id]; !known && len(x.known) >= x.most {
		for other := range x.known {
			delete(x.known, other)
			delete(x.dirty, other)
			break
		}
	}
	x.known[id] = fresh
}

// merge adds the records of a segment that are newer than the known ones: of two of one second,
// those of the segment that was written later, and those that no segment has yet.
func (x *index) merge(all []keyedRecord) {
	locked := x.lock()
	defer x.mu.Unlock()
	for i := range all {
		n := &all[i]
		old, known := x.known[n.id]
		_, ours := x.dirty[n.id]
		newer := !known || old.is(recordAssumed) || n.order() > old.order() || n.order() == old.order() && !ours
		switch {
		case n.is(recordGone) && known && n.order() >= old.order():
			delete(x.known, n.id)
			delete(x.dirty, n.id)
		case !n.is(recordGone) && newer:
			n.bits &^= recordAssumed
			locked.put(n.id, n.record)
			delete(x.dirty, n.id)
		}
	}
}

// assume records of unexamined items that they have no attributes.
func (x *index) assume(items []Item) {
	locked := x.lock()
	defer x.mu.Unlock()
	for _, it := range items {
		if key, ok := x.objects.below(it.Key); ok {
			id := recordID(key)
			delete(x.dirty, id)
			locked.put(id, record{check: recordCheck(it.ETag, it.Size), at: seconds(it.Modified), bits: recordAssumed})
		}
	}
}

// fill adds the known attributes to the entries of items, and returns the numbers of the unknown
// ones. An item without a key is an implied directory; a common prefix has no version to compare,
// so its marker's record counts as it is.
func (x *index) fill(told []providers.Info, items []Item, which []int) (unknown []int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, i := range which {
		it := &items[i]
		if s := x.objects.service; s.Tells && it.Key != "" && (s.TellsDirs || !it.IsDir) {
			read(it.Object).tell(&told[i])
			continue
		}
		key, ok := x.objects.below(it.Key)
		if !ok {
			continue
		}
		id := recordID(key)
		known, ok := x.known[id]
		switch {
		case it.IsDir && ok:
			known.tell(&told[i], it.Key)
		case it.IsDir:
		case ok && known.matches(it.ETag, it.Size, it.Modified):
			known.tell(&told[i], it.Key)
			if known.slack > 0 {
				known.settle(it.Modified)
				x.known[id] = known
			}
		default:
			unknown = append(unknown, i)
		}
	}
	return unknown
}

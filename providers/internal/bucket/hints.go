package bucket

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Bounds of what hints cost.
const (
	hintsMost  = 1_000_000        // in memory, 60 to 115 bytes each
	hintsBatch = 1000             // changes that are written without waiting for more
	hintsDelay = 5 * time.Second  // from a change until it is written
	hintsPause = 5 * time.Minute  // the most between attempts that fail
	hintsClose = 10 * time.Second // in which Close writes the last ones; what it does not, costs the next mount a HEAD each
	hintsWait  = 5 * time.Second  // the most that a listing waits for sidecars
	hintsFresh = time.Minute      // the least between two looks at the sidecars of others
	hintsSend  = 30 * time.Second // for one writing
)

// hintsWork is what the writing of sidecars is called where it fails.
const hintsWork = "attribute index"

// hints is what is known of metadata that listings leave out, in memory. It is
// read from sidecars and written to them in the background.
type hints struct {
	objects *objects
	log     *slog.Logger
	most    int
	ended   func(work string, err error) // is told how writing ended; nil: nobody is

	// ctx ends with Close, and loaded when sidecars were first read.
	ctx    context.Context
	cancel context.CancelFunc
	loaded chan struct{}

	// io is held while sidecars are read or written, and taken before mu. It
	// guards what stands under it.
	io       sync.Mutex
	segments map[string]int64    // sidecars whose hints are in memory, and their sizes
	bad      map[string]struct{} // those that cannot be read

	mu      sync.Mutex // guards all below
	known   map[uint64]hint
	dirty   map[uint64]struct{} // known, and in no sidecar
	gone    map[uint64]uint32   // deleted, and when
	looked  time.Time           // at the sidecars
	delay   time.Duration       // until the next writing; grows while it fails
	timer   *time.Timer         // nil: nothing is planned
	writing bool                // changes are to be written: not for a provider that was opened for reading
	closed  bool
}

func newHints(o *objects) *hints {
	h := &hints{objects: o, log: o.log, most: hintsMost, delay: hintsDelay, loaded: make(chan struct{}),
		segments: map[string]int64{}, bad: map[string]struct{}{},
		known: map[uint64]hint{}, dirty: map[uint64]struct{}{}, gone: map[uint64]uint32{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// saw takes what a HEAD or a GET told.
func (h *hints) saw(o *object) {
	key, ok := h.objects.below(o.Key)
	if !ok {
		return
	}
	id, fresh := hintID(key), hintOf(o)
	h.mu.Lock()
	defer h.mu.Unlock()
	old, known := h.known[id]
	switch {
	case known && old.same(fresh) && old.covers(fresh.at):
		h.known[id] = fresh // and the sidecar is as good
	case known && !old.is(hintAssumed) && old.check == fresh.check && old.order() > fresh.order():
		// An answer that was overtaken by a change of attributes.
	default:
		h.change(id, fresh)
	}
}

// wrote takes what a change made, which began at a time of this machine. The
// times of hints are the service's own, as its answer has it.
func (h *hints) wrote(o *object, began time.Time) {
	key, ok := h.objects.below(o.Key)
	if !ok {
		return
	}
	made := *o
	if raw, err := o.meta.encode(h.objects.service.Metadata); err == nil {
		made.meta = decode(o.Key, raw, o.meta.headers(o.Key)) // as Stat would tell it
	}
	fresh := hintOf(&made)
	if o.Modified.IsZero() {
		now := h.objects.now()
		at := o.Answered
		if at.IsZero() {
			at = now
		}
		fresh = hintWithin(&made, at.Add(-max(0, now.Sub(began))), at)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.change(hintID(key), fresh)
}

// removed takes that a key is gone.
func (h *hints) removed(key string) {
	key, ok := h.objects.below(key)
	if !ok {
		return
	}
	id := hintID(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	old, known := h.known[id]
	delete(h.known, id)
	delete(h.dirty, id)
	if known && !old.is(hintAssumed) && h.writing {
		h.gone[id] = seconds(h.objects.now())
		h.plan()
	}
}

// change takes a hint that no sidecar has. mu is held.
func (h *hints) change(id uint64, fresh hint) {
	h.put(id, fresh)
	if !h.writing {
		return
	}
	delete(h.gone, id)
	if len(h.dirty) < h.most/10 { // else nobody has taken them for long
		h.dirty[id] = struct{}{}
	}
	h.plan()
}

// put keeps a hint, and forgets another where there are too many. mu is held.
func (h *hints) put(id uint64, fresh hint) {
	if _, known := h.known[id]; !known && len(h.known) >= h.most {
		for other := range h.known {
			delete(h.known, other)
			delete(h.dirty, other)
			break
		}
	}
	h.known[id] = fresh
}

// merge takes hints of a sidecar, which count where they are newer: of two of one second,
// those of the sidecar that was written later, and those that no sidecar has yet.
func (h *hints) merge(all []keyed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range all {
		n := &all[i]
		old, known := h.known[n.id]
		_, ours := h.dirty[n.id]
		newer := !known || old.is(hintAssumed) || n.order() > old.order() || n.order() == old.order() && !ours
		switch {
		case n.is(hintGone) && known && n.order() >= old.order():
			delete(h.known, n.id)
			delete(h.dirty, n.id)
		case !n.is(hintGone) && newer:
			n.bits &^= hintAssumed
			h.put(n.id, n.hint)
			delete(h.dirty, n.id)
		}
	}
}

// assume notes of items that nobody looked at that they bear nothing.
func (h *hints) assume(items []Item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range items {
		if key, ok := h.objects.below(it.Key); ok {
			id := hintID(key)
			delete(h.dirty, id)
			h.put(id, hint{check: hintCheck(it.ETag, it.Size), at: seconds(it.Modified), bits: hintAssumed})
		}
	}
}

// fill adds to entries what is known of their items, and gives the numbers of
// those of which nothing is. An item without a key is an implied directory; a
// common prefix has no version to compare, so its marker's hint counts as it
// is.
func (h *hints) fill(told []providers.Info, items []Item, which []int) (unknown []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, i := range which {
		it := &items[i]
		if s := h.objects.service; s.Tells && it.Key != "" && (s.TellsDirs || !it.IsDir) {
			read(it.Object).tell(&told[i])
			continue
		}
		key, ok := h.objects.below(it.Key)
		if !ok {
			continue
		}
		id := hintID(key)
		known, ok := h.known[id]
		switch {
		case it.IsDir && ok:
			known.tell(&told[i], it.Key)
		case it.IsDir:
		case ok && known.matches(it.ETag, it.Size, it.Modified):
			known.tell(&told[i], it.Key)
			if known.slack > 0 {
				known.settle(it.Modified)
				h.known[id] = known
			}
		default:
			unknown = append(unknown, i)
		}
	}
	return unknown
}

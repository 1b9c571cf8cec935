package inotify

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Own remembers the user's own changes of names, for the short time between a change and its
// report. F identifies a file; its zero value is no file.
type Own[F comparable] struct {
	batch func() uint64
	now   func() time.Time

	mu sync.Mutex // guards the fields below
	ownNames[F]
	purgedAt time.Time
}

// ownNames are the names with recent changes.
type ownNames[F comparable] struct {
	names     map[Key]Known[F]
	change    uint64 // the number of the last change that began
	forgotten uint64 // of the last one of a name that is not in names any more
}

// Known is the record of one name's own changes.
type Known[F comparable] struct {
	Underway int    // own changes that have not returned
	Gone     bool   // we removed it
	Made     F      // the file that we gave it to
	Said     uint64 // the value given to Say
	Batch    uint64 // the number of the batch under way when the last change returned

	change   uint64 // the number of the last change that began
	reported bool   // a report of Made was seen
	at       time.Time
}

// ownFor is how long a name's record is kept if its reports may never come. At worst a change
// is reported once too often.
const ownFor = 2 * time.Second

// NewOwn makes an Own; batch is Watcher.Batch.
func NewOwn[F comparable](batch func() uint64, now func() time.Time) *Own[F] {
	return &Own[F]{batch: batch, now: now, ownNames: ownNames[F]{names: map[Key]Known[F]{}}}
}

// Begin notes that a request is about to change a name. Fail or End follows.
func (o *Own[F]) Begin(n Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.names[n]
	o.change++
	k.Underway, k.change = k.Underway+1, o.change
	o.put(n, k, o.now())
}

// Fail notes that the change failed.
func (o *Own[F]) Fail(n Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.names[n]
	k.Underway--
	o.put(n, k, o.now())
}

// End notes that the change is over and entered. made is the file that the name leads to by our
// change, if any; gone says that it leads to none.
func (o *Own[F]) End(n Key, made F, gone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.names[n]
	k.Underway, k.Made, k.Gone, k.reported, k.Batch = k.Underway-1, made, gone, false, o.batch()
	o.put(n, k, o.now())
}

// Say records for a while a value for the event made of a name, since the same change may be
// met twice.
func (o *Own[F]) Say(n Key, what uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.names[n]
	k.Said = what
	o.put(n, k, o.now())
}

// put keeps a record unless it is empty.
func (o *ownNames[F]) put(n Key, k Known[F], now time.Time) {
	var none F
	if k.Underway <= 0 && !k.Gone && k.Made == none && k.Said == 0 {
		o.forget(n, k)
		return
	}
	k.at = now
	o.names[n] = k
}

// forget forgets a name, and keeps the number of its last change: see Unchanged.
func (o *ownNames[F]) forget(n Key, k Known[F]) {
	o.forgotten = max(o.forgotten, k.change)
	delete(o.names, n)
}

// reports reports whether our own changes may be in a batch. All of their events are in the
// queue when the change returns, so they are in the batch that is being read then or in the
// next: later ones are of other processes. Batch 0 is no report but a look, which is never too
// late.
func (k *Known[F]) reports(batch uint64) bool { return batch == 0 || batch <= k.Batch+1 }

// Explains reports whether events are of our own change, and no other can have happened to the
// name meanwhile, so that a look at the disk would show nothing new. After a removal of ours
// any change by others begins with an event of another kind. The same goes for a file that we
// made and that was neither written to nor removed; a directory must be looked into.
func (k *Known[F]) Explains(mask uint32) bool {
	var none F
	switch {
	case k.Underway > 0:
		return false
	case k.Gone:
		return mask&^(unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_ISDIR) == 0
	}
	return k.Made != none && !k.reported && mask == unix.IN_CREATE
}

// Know returns the record of a name as far as it can explain a report in a batch.
func (o *Own[F]) Know(n Key, batch uint64) Known[F] {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.names[n]
	if k.Underway <= 0 && !k.reports(batch) {
		var none F
		k.Made, k.Gone = none, false
	}
	k.change = o.change
	return k
}

// Unchanged runs enter, unless a request has begun to change the name since Know, so that the
// result of the look may be wrong. A request that begins now waits until enter has returned,
// and finds its result. enter must call nothing of Own. there says whether the look found a
// file: a second report of it is not explained by our making it, and once a file is at the name
// again the next removal is not ours.
func (o *Own[F]) Unchanged(n Key, since Known[F], there bool, enter func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	k, ok := o.names[n]
	if k.Underway > 0 || k.change > since.change || !ok && o.forgotten > since.change {
		return false
	}
	if ok {
		k.reported = true
		k.Gone = k.Gone && !there
		o.names[n] = k
	}
	enter()
	return true
}

// Purge forgets names for which no report came.
func (o *Own[F]) Purge() {
	now, batch := o.now(), o.batch()
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.purgedAt) < ownFor/2 {
		return
	}
	o.purgedAt = now
	for n, k := range o.names {
		if k.Underway <= 0 && now.Sub(k.at) > ownFor && !k.reports(batch) {
			o.forget(n, k)
		}
	}
}

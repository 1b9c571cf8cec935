package inotify

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Own remembers what the user does to names itself, for the short time between a
// change and its report. F tells files apart; its zero value is none.
type Own[F comparable] struct {
	batch func() uint64
	now   func() time.Time

	mu sync.Mutex // guards what follows
	ownNames[F]
	purgedAt time.Time
}

// ownNames are the names of which something is known.
type ownNames[F comparable] struct {
	names     map[Key]Known[F]
	change    uint64 // the number of the last change that began
	forgotten uint64 // of the last one of a name that is not in names any more
}

// Known is what is known of a name.
type Known[F comparable] struct {
	Underway int    // own changes that have not returned
	Gone     bool   // we removed it
	Made     F      // the file that we gave it to
	Said     uint64 // what Say noted
	Batch    uint64 // the number of the batch under way when the last change returned

	change   uint64 // the number of the last that began
	reported bool   // that we made it
	at       time.Time
}

// ownFor is how long what is known of a name is kept where its reports may never
// come. At worst something is reported once too often.
const ownFor = 2 * time.Second

// NewOwn makes one; batch is Watcher.Batch.
func NewOwn[F comparable](batch func() uint64, now func() time.Time) *Own[F] {
	return &Own[F]{batch: batch, now: now, ownNames: ownNames[F]{names: map[Key]Known[F]{}}}
}

// Begin says that a request is about to change a name. Fail or End follows.
func (o *Own[F]) Begin(n Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.names[n]
	o.change++
	k.Underway, k.change = k.Underway+1, o.change
	o.put(n, k, o.now())
}

// Fail says that the change did not come about.
func (o *Own[F]) Fail(n Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.names[n]
	k.Underway--
	o.put(n, k, o.now())
}

// End says that the change is over, and entered. made is the file that the name leads
// to by our doing, if any; gone says that it leads to none.
func (o *Own[F]) End(n Key, made F, gone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.names[n]
	k.Underway, k.Made, k.Gone, k.reported, k.Batch = k.Underway-1, made, gone, false, o.batch()
	o.put(n, k, o.now())
}

// Say notes for a while what was said of a name, since the same change may be met
// twice.
func (o *Own[F]) Say(n Key, what uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.names[n]
	k.Said = what
	o.put(n, k, o.now())
}

// put keeps what is worth it.
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

// reports says whether reports of what we did may be in a batch. All of them are
// in the queue when the change returns, so they are in the batch that is being
// read then or in the next: what comes later is others' doing. Batch 0 is no
// report but a look, which is never too late.
func (k *Known[F]) reports(batch uint64) bool { return batch == 0 || batch <= k.Batch+1 }

// Explains says that events are our own doing, and nothing else can have happened
// to the name meanwhile, so that a look at the disk would show nothing new. After
// a removal of ours whatever others do begins with an event of another kind. The
// same goes for a file that we made and that was neither written to nor removed;
// a directory is to be looked into.
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

// Know returns what is known of a name that explains a report in a batch.
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

// Unchanged runs enter, unless a request has begun to change the name since Know, so
// that what was seen meanwhile may be wrong. One that begins now waits until what was
// seen is entered, and finds it. enter must call nothing of Own. there says whether
// something was: a second report of it is not explained by our making it, and once
// something is there again the next removal is not ours.
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

// Purge forgets what no report came for.
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

package direct

import (
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// An ownName is what is known of a name for the short time between a change and
// its report.
type ownName struct {
	underway int    // own changes that have not returned
	change   uint64 // the number of the last that began
	batch    uint64 // the number of that under way when the last returned, see reports
	gone     bool   // we removed it
	made     ident  // the file that we gave it to
	reported bool   // that we made it
	said     uint64 // signature of what was reported last
	at       time.Time
}

// ownFor is how long what is known of a name is kept where its reports may never
// come. At worst something is reported once too often.
const ownFor = 2 * time.Second

// reports says whether reports of what we did may be in a batch. All of them are
// in the queue when the change returns, so they are in the batch that is being
// read then or in the next: what comes later is others' doing. Batch 0 is no
// report but a look, which is never too late.
func (o *ownName) reports(batch uint64) bool { return batch == 0 || batch <= o.batch+1 }

// ownBegin says that a request is about to change a name.
func (v *Volume) ownBegin(watched bool, dir wsfs.Ino, name string) {
	if v.watch == nil || !watched {
		return
	}
	w := v.watch
	w.note(key{dir, name}, func(o *ownName) {
		w.change++
		o.underway, o.change = o.underway+1, w.change
	})
}

// ownEnd says that the change is over and the table knows about it. made is the
// file that the name leads to by our doing, if any; gone says that it leads to
// none.
func (v *Volume) ownEnd(watched bool, dir wsfs.Ino, name string, made ident, gone bool) {
	if v.watch == nil || !watched {
		return
	}
	w := v.watch
	w.note(key{dir, name}, func(o *ownName) {
		o.underway, o.made, o.gone, o.reported, o.batch = o.underway-1, made, gone, false, w.batch
	})
}

func (w *watch) note(k key, f func(o *ownName)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.own[k]
	f(&o)
	o.at = w.v.now()
	if o.underway <= 0 && !o.gone && o.made == (ident{}) && o.said == 0 {
		w.forget(k, o)
		return
	}
	w.own[k] = o
}

// forget forgets a name. mu is held.
func (w *watch) forget(k key, o ownName) {
	w.forgotten = max(w.forgotten, o.change)
	delete(w.own, k)
}

// explains says that events are our own doing, and nothing else can have happened
// to the name meanwhile, so that a look at the disk would show nothing new. After
// a removal of ours whatever others do begins with an event of another kind. The
// same goes for a file that we made and that was neither written to nor removed;
// a directory is to be looked into.
func (o *ownName) explains(mask uint32) bool {
	switch {
	case o.underway > 0:
		return false
	case o.gone:
		return mask&^(unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_ISDIR) == 0
	}
	return o.made != (ident{}) && !o.reported && mask == unix.IN_CREATE
}

// known returns what is known of a name that explains a report in a batch.
func (w *watch) known(k key, batch uint64) ownName {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.own[k]
	if o.underway <= 0 && !o.reports(batch) {
		o.made, o.gone = ident{}, false
	}
	o.change = w.change
	return o
}

// unlessChanged runs enter, unless a request has begun to change the name since was,
// so that what was seen meanwhile may be wrong. One that begins now waits until what
// was seen is entered, and finds it. there says whether something was: a second
// report of it is not explained by our making it, and once something is there again
// the next removal is not ours.
func (w *watch) unlessChanged(k key, was ownName, there bool, enter func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	o, ok := w.own[k]
	if o.underway > 0 || o.change > was.change || !ok && w.forgotten > was.change {
		return false
	}
	if ok {
		o.reported = true
		o.gone = o.gone && !there
		w.own[k] = o
	}
	enter()
	return true
}

// nextBatch numbers the batch that is about to be read.
func (w *watch) nextBatch() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.batch++
	return w.batch
}

// purge forgets what no report came for.
func (w *watch) purge(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.purgedAt) < ownFor/2 {
		return
	}
	w.purgedAt = now
	for k, o := range w.own {
		if o.underway <= 0 && now.Sub(o.at) > ownFor && !o.reports(w.batch) {
			w.forget(k, o)
		}
	}
}

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
	gone     bool   // we removed it, and the report has not come
	made     ident  // the file that we gave it to
	reported bool   // that we made it
	said     uint64 // signature of what was reported last
	at       time.Time
}

// ownFor is how long a report of our own doing may take. After that the entry
// is dropped: at worst something is reported once too often.
const ownFor = 2 * time.Second

// ownBegin says that a request is about to change a name.
func (v *Volume) ownBegin(watched bool, dir wsfs.Ino, name string) {
	if v.watch == nil || !watched {
		return
	}
	v.watch.note(key{dir, name}, func(o *ownName) { o.underway++ })
}

// ownEnd says that the change is over and the table knows about it. made is the
// file that the name leads to by our doing, if any; gone says that it leads to
// none.
func (v *Volume) ownEnd(watched bool, dir wsfs.Ino, name string, made ident, gone bool) {
	if v.watch == nil || !watched {
		return
	}
	v.watch.note(key{dir, name}, func(o *ownName) { o.underway, o.made, o.gone, o.reported = o.underway-1, made, gone, false })
}

func (w *watch) note(k key, f func(o *ownName)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.own[k]
	f(&o)
	o.at = w.v.now()
	if o.underway <= 0 && !o.gone && o.made == (ident{}) && o.said == 0 {
		delete(w.own, k)
		return
	}
	w.own[k] = o
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

// take returns what is known of a name. That we removed or made it is used up:
// what is missing or new after the next report is so by others' doing.
func (w *watch) take(k key) ownName {
	w.mu.Lock()
	defer w.mu.Unlock()
	o, ok := w.own[k]
	if !ok || o.underway > 0 {
		return o
	}
	if w.v.now().Sub(o.at) > ownFor { // its report never came
		delete(w.own, k)
		return ownName{}
	}
	was := o
	if o.gone {
		delete(w.own, k)
	} else if !o.reported && o.made != (ident{}) {
		o.reported = true
		w.own[k] = o
	}
	return was
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
		if o.underway <= 0 && now.Sub(o.at) > ownFor {
			delete(w.own, k)
		}
	}
}

// The lifecycle bus.

func (v *Volume) tellWrote(dir wsfs.Ino, name string) {
	if n := v.notifier(); n != nil {
		if path, ok := v.pathOf(dir, name); ok {
			n.Wrote(path)
		}
	}
}

func (v *Volume) tellWroteIno(ino wsfs.Ino) {
	if n := v.notifier(); n != nil {
		if path, ok := v.Path(ino); ok {
			n.Wrote(path)
		}
	}
}

func (v *Volume) tellDeleted(dir wsfs.Ino, name string) {
	if n := v.notifier(); n != nil {
		if path, ok := v.pathOf(dir, name); ok {
			n.Deleted(path)
		}
	}
}

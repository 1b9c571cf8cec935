package direct

import (
	"sync"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// Judging an event compares what lies under the name now with what the kernel
// was last told. Equal: it was our own doing, or a request saw the change first.
// Who did it cannot be asked, and need not be: what counts is whether the kernel
// believes something that is wrong.
type judging struct {
	mu      sync.Mutex // one judge at a time; guards the rest
	written map[key]pendingWrite
	retries []retry
	orphans map[wsfs.Ino]time.Time // watched directories that lost their name
	good    time.Time              // when the last complete batch was handled
	lost    time.Time              // no event is missing from before
	armed   time.Time              // when the reader wakes without an event, by the volume's clock; zero: not
	wake    time.Time              // the same by the real one
}

// A pendingWrite is a `write` event that waits for the writer to finish.
type pendingWrite struct {
	sig uint64
	due time.Time
}

type retry struct {
	key
	mask  uint32
	batch uint64
}

const (
	// quiet is how long a file must rest before its change is an event, when
	// nobody says that it was closed.
	quiet = 50 * time.Millisecond

	// orphanFor is how long a directory that was moved away may take to appear
	// elsewhere in the tree.
	orphanFor = 50 * time.Millisecond

	// maskFound marks a name that was met by reading a new directory, and
	// maskRescan one that is looked at because events were lost. inotify does
	// not use these bits.
	maskFound  = 1 << 16
	maskRescan = 1 << 17

	maskNamed   = unix.IN_CREATE | unix.IN_MOVED_TO | maskFound
	maskUnnamed = unix.IN_DELETE | unix.IN_MOVED_FROM
	maskContent = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | maskNamed | maskRescan
)

func (j *judging) init() {
	j.written = map[key]pendingWrite{}
	j.orphans = map[wsfs.Ino]time.Time{}
}

func (j *judging) takeRetries() []retry {
	r := j.retries
	j.retries = nil
	return r
}

// due is when judging has something to do again; the zero time is never. mu is
// held.
func (j *judging) due(now time.Time) time.Time {
	if len(j.retries) > 0 {
		return now.Add(retryDelay)
	}
	var first time.Time
	for _, p := range j.written {
		if first.IsZero() || p.due.Before(first) {
			first = p.due
		}
	}
	for _, at := range j.orphans {
		if due := at.Add(orphanFor); first.IsZero() || due.Before(first) {
			first = due
		}
	}
	return first
}

// arm sees to it that the reader wakes at a time, and reports whether that is
// earlier than it would have. judging.mu is held.
func (w *watch) arm(at, now time.Time) bool {
	j := &w.judging
	if at.IsZero() || !j.armed.IsZero() && !at.Before(j.armed) {
		return false
	}
	j.armed, j.wake = at, time.Now().Add(at.Sub(now))
	return true
}

// judge looks at one name, of which a batch reports, 0 of none. judging.mu is
// held.
func (w *watch) judge(k key, mask uint32, batch uint64, now time.Time) {
	v := w.v
	if k.name == "" { // the directory itself
		if n := v.notifier(); n != nil && mask&unix.IN_ATTRIB != 0 {
			n.AttrChanged(k.dir)
		}
		return
	}
	again := retry{k, mask, batch}
	o := w.known(k, batch)
	if o.explains(mask) && !w.met(k, o, false) {
		return
	}
	if o.underway > 0 {
		w.judging.retries = append(w.judging.retries, again)
		return
	}
	var st stat
	id, there := w.look(k, &st)
	switch {
	case w.met(k, o, there):
		w.judging.retries = append(w.judging.retries, again)
	case there:
		w.present(again, id, &st, o, now)
	case !o.gone || v.tab.named(k.dir, k.name, 0) != 0: // or a request met what came and went
		w.absent(k, mask, now)
	}
}

// look stats a name; a directory that cannot be reached any more has none.
func (w *watch) look(k key, st *stat) (ident, bool) {
	h, _, err := w.v.holdDir(k.dir)
	if err != nil {
		return ident{}, false
	}
	defer w.v.drop(h)
	if statAt(h.fd, k.name, st) != nil || w.v.crosses(st) {
		return ident{}, false
	}
	return w.v.identOf(h.fd, k.name, st), true
}

// absent deals with a name that others removed.
func (w *watch) absent(k key, mask uint32, now time.Time) {
	v := w.v
	ino := v.tab.named(k.dir, k.name, 0)
	_, pending := w.judging.written[k]
	delete(w.judging.written, k)
	n := v.notifier()
	if ino != 0 {
		w.unname(ino, k, now)
		if n != nil {
			n.AttrChanged(ino)
		}
	}
	if n == nil {
		return
	}
	w.entryChanged(k)
	blink := mask&maskNamed != 0 && ino == 0 && !pending // it came and went
	if !blink && (mask&maskUnnamed != 0 || ino != 0) {
		v.tellDeleted(k.dir, k.name)
	}
}

// unname notes that an inode has lost the name we know.
func (w *watch) unname(ino wsfs.Ino, k key, now time.Time) {
	s, n := w.v.tab.get(ino)
	defer s.mu.Unlock()
	if n == nil || n.parent != k.dir || n.name != k.name {
		return
	}
	w.v.tab.setName(n, ino, k.dir, "")
	if n.flags&flagWatched != 0 {
		w.judging.orphans[ino] = now
	}
}

// present deals with a name that leads to something.
func (w *watch) present(r retry, id ident, st *stat, o ownName, now time.Time) {
	k, mask := r.key, r.mask
	own := o.made == id && mask&maskNamed != 0
	s, n, ino := w.v.tab.find(id)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR && mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 &&
		(n == nil || n.flags&flagListed == 0) {
		w.walk(task{dir: k.dir, name: k.name, mask: maskFound})
	}
	switch {
	case n == nil && own: // and forgotten since
		s.mu.Unlock()
	case n == nil:
		s.mu.Unlock()
		w.unknown(r, id, st, o, now)
	case n.ext != nil && n.ext.busy > 0:
		s.mu.Unlock()
		w.judging.retries = append(w.judging.retries, r)
	case n.parent == k.dir && n.name == k.name:
		w.sameName(s, n, ino, k, mask, st, o, own, now)
	default:
		w.otherName(s, n, ino, k, mask, st, own, now)
	}
}

// unknown: an inode that the kernel does not know.
func (w *watch) unknown(r retry, id ident, st *stat, o ownName, now time.Time) {
	k, mask := r.key, r.mask
	old := w.v.tab.named(k.dir, k.name, 0)
	s, _, ino := w.v.tab.find(id)
	s.mu.Unlock()
	if old == ino { // a request or the walker knows it by now
		old = 0
	}
	n := w.v.notifier()
	if old != 0 {
		w.unname(old, k, now)
		if n != nil {
			n.AttrChanged(old)
		}
	}
	switch {
	case old != 0:
		w.entryChanged(k)
	case mask&(maskNamed|maskRescan) != 0:
		w.entryAppeared(k, id)
	}
	if mask&maskContent != 0 && (mask&maskRescan == 0 || old != 0 || w.since(st)) {
		w.wrote(k, mask, st, o, now)
	}
}

// meet compares what a report led to with what was last told, and says whether
// attributes are news, and whether content is, of which the kernel is to be told.
// own says that the name is our own doing, which is no report of content.
func (n *inode) meet(st *stat, mask uint32, own bool) (attr, content bool) {
	sig := signature(st)
	differs := n.told != sig && n.regular() && n.ext.passes() == 0
	attr = differs || n.flags&flagNews != 0
	written := mask & (unix.IN_MODIFY | unix.IN_CLOSE_WRITE)
	content = (attr || n.flags&flagComing != 0) && mask&maskContent != 0 && (!own || written != 0)
	switch {
	case mask&unix.IN_CLOSE_WRITE != 0:
		n.flags &^= flagComing
	case differs && !sameContent(n.told, sig):
		n.flags |= flagComing
	}
	if differs || content {
		n.flags |= flagStale
	}
	n.flags &^= flagNews
	n.told = sig
	return attr, content
}

// sameName: what the kernel knows under this name is what lies there. It unlocks
// the shard.
func (w *watch) sameName(s *shard, n *inode, ino wsfs.Ino, k key, mask uint32, st *stat, o ownName, own bool, now time.Time) {
	attr, content := n.meet(st, mask, false)
	id, dir, unseen := n.ident(), n.directory(), n.refs == 0
	s.mu.Unlock()
	note := w.v.notifier()
	if note == nil {
		return
	}
	byOthers := mask&maskNamed != 0 && !own && o.said != signature(st)
	switch {
	case content:
		note.ContentChanged(ino)
	case attr || dir && mask&unix.IN_ATTRIB != 0:
		note.AttrChanged(ino)
	}
	switch {
	case byOthers && unseen: // only the walker saw it: the kernel may believe that there is none
		w.entryAppeared(k, id)
	case byOthers:
		note.AttrChanged(k.dir)
	}
	if content || byOthers {
		w.wrote(k, mask, st, o, now)
	}
}

func (e *ext) passes() int32 {
	if e == nil {
		return 0
	}
	return e.pass
}

// otherName: a file that we know by another name, which it has given up or has
// beside this one. It unlocks the shard.
func (w *watch) otherName(s *shard, n *inode, ino wsfs.Ino, k key, mask uint32, st *stat, own bool, now time.Time) {
	named := mask&(maskNamed|maskRescan) != 0
	_, content := n.meet(st, mask, own)
	if named && !own {
		w.v.tab.setName(n, ino, k.dir, k.name)
	}
	if named {
		delete(w.judging.orphans, ino)
	}
	s.mu.Unlock()
	named = named && !own
	note := w.v.notifier()
	if note == nil || !named && !content {
		return
	}
	if named {
		w.entryChanged(k)
	}
	if content {
		note.ContentChanged(ino)
	} else {
		note.AttrChanged(ino)
	}
	w.wrote(k, mask, st, ownName{}, now)
}

// since says whether a file changed after the last event that was not lost.
func (w *watch) since(st *stat) bool {
	const tick = 10 * time.Millisecond // the disk's clock may be that much behind
	return !timeOf(st.Ctime).Before(w.judging.lost.Add(-tick))
}

// entryChanged tells the kernel that a name changed, and with it the directory,
// if the kernel knows the directory.
func (w *watch) entryChanged(k key) {
	w.tellEntry(k, func(n wsfs.Notifier) { n.EntryChanged(k.dir, k.name) })
}

// entryAppeared is entryChanged for a name that the kernel did not know. Between the
// report and the notification a sandbox may look the directory up and mount something
// on it, which the notification would unmount.
func (w *watch) entryAppeared(k key, id ident) {
	w.tellEntry(k, func(n wsfs.Notifier) {
		n.EntryAppeared(k.dir, k.name, func() bool {
			s, n, _ := w.v.tab.find(id)
			defer s.mu.Unlock()
			return n != nil && n.refs > 0 && n.directory() && n.parent == k.dir && n.name == k.name
		})
	})
}

func (w *watch) tellEntry(k key, tell func(wsfs.Notifier)) {
	note := w.v.notifier()
	if note == nil {
		return
	}
	s, n := w.v.tab.get(k.dir)
	known := n != nil && n.refs > 0
	s.mu.Unlock()
	if known {
		tell(note)
		note.AttrChanged(k.dir)
	}
}

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
	if k.name == "" { // the directory itself
		if n := w.v.tell.notifier(); n != nil && mask&unix.IN_ATTRIB != 0 {
			n.AttrChanged(k.dir)
		}
		return
	}
	s := seen{key: k, mask: mask}
	again := func() { w.judging.retries = append(w.judging.retries, retry{k, mask, batch}) }
	s.own = w.known(k, batch)
	switch {
	case s.own.explains(mask) && w.unlessChanged(k, s.own, false, func() {}):
		return
	case s.own.underway > 0:
		again()
		return
	}
	s.id, s.there = w.look(k, &s.st)
	if w.tune.looked != nil {
		w.tune.looked(k)
	}
	var n news
	if !w.unlessChanged(k, s.own, s.there, func() { n = w.enter(&s, now) }) || n.busy {
		again()
		return
	}
	w.tell(&s, n, now)
}

// A seen is what a look at a name found.
type seen struct {
	key
	mask  uint32 // of the report
	own   ownName
	there bool
	id    ident
	st    stat
}

// made says that the name leads to what a request gave it.
func (s *seen) made() bool { return s.own.made == s.id && s.mask&maskNamed != 0 }

// news is what a look changed of what is known.
type news struct {
	busy     bool     // nothing: a request changes the inode right now
	lost     wsfs.Ino // lost its name
	attr     wsfs.Ino // has other attributes
	content  wsfs.Ino // has other content
	entry    bool     // the name leads elsewhere
	appeared bool     // the name was not known
	parent   bool     // the directory changed, and no name of it that the kernel knows
	wrote    bool
	deleted  bool
}

// enter notes in the table what was seen. A request that changes the name waits for
// it, so that what it leaves there is entered later: see unlessChanged.
func (w *watch) enter(s *seen, now time.Time) news {
	switch {
	case s.there:
		return w.present(s, now)
	case !s.own.gone || w.v.tab.named(s.dir, s.name, 0) != 0: // or a request met what came and went
		return w.absent(s, now)
	}
	return news{}
}

// tell passes news on. The locks of the table and of the own changes are free, for
// a path is asked for.
func (w *watch) tell(s *seen, n news, now time.Time) {
	note := w.v.tell.notifier()
	if note != nil {
		if n.lost != 0 {
			note.AttrChanged(n.lost)
		}
		switch {
		case n.entry:
			w.entryChanged(s.key)
		case n.appeared:
			w.entryAppeared(s.key, s.id)
		case n.parent:
			note.AttrChanged(s.dir)
		}
		if n.content != 0 {
			note.ContentChanged(n.content)
		}
		if n.attr != 0 {
			note.AttrChanged(n.attr)
		}
	}
	if n.wrote {
		w.wrote(s, now)
	}
	if n.deleted {
		w.v.tell.deleted(s.dir, s.name)
	}
}

// look stats a name; a directory that cannot be reached any more has none.
func (w *watch) look(k key, st *stat) (ident, bool) {
	h, _, err := w.v.res.holdDir(k.dir)
	if err != nil {
		return ident{}, false
	}
	defer h.drop()
	if statAt(h.fd, k.name, st) != nil || w.v.disk.crosses(st) {
		return ident{}, false
	}
	return w.v.disk.identOf(h.fd, k.name, st), true
}

// absent deals with a name that others removed.
func (w *watch) absent(s *seen, now time.Time) news {
	_, pending := w.judging.written[s.key]
	delete(w.judging.written, s.key)
	lost := w.v.tab.named(s.dir, s.name, 0)
	if lost != 0 {
		w.unname(lost, s.key, now)
	}
	blink := s.mask&maskNamed != 0 && lost == 0 && !pending // it came and went
	return news{lost: lost, entry: true, deleted: !blink && (s.mask&maskUnnamed != 0 || lost != 0)}
}

// unname notes that an inode has lost the name we know.
func (w *watch) unname(ino wsfs.Ino, k key, now time.Time) {
	n, ok := w.v.tab.lock(ino)
	if !ok {
		return
	}
	defer n.unlock()
	if n.loseName(k.dir, k.name) && n.flags&flagWatched != 0 {
		w.judging.orphans[ino] = now
	}
}

// present deals with a name that leads to something.
func (w *watch) present(s *seen, now time.Time) news {
	n, known := w.v.tab.find(s.id)
	if s.st.Mode&unix.S_IFMT == unix.S_IFDIR && s.mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 &&
		(!known || n.flags&flagListed == 0) {
		w.enqueue(task{dir: s.dir, name: s.name, mask: maskFound})
	}
	switch {
	case !known && s.made(): // and forgotten since
		return news{}
	case !known:
		return w.unknown(s, now)
	}
	defer n.unlock()
	switch {
	case n.ext != nil && n.ext.busy > 0:
		return news{busy: true}
	case n.parent == s.dir && n.name == s.name:
		return s.sameName(n)
	}
	return w.otherName(s, n)
}

// unknown: an inode that the kernel does not know.
func (w *watch) unknown(s *seen, now time.Time) news {
	old := w.v.tab.named(s.dir, s.name, 0)
	if n, known := w.v.tab.find(s.id); known { // a request or the walker knows it by now
		if n.ino == old {
			old = 0
		}
		n.unlock()
	}
	if old != 0 {
		w.unname(old, s.key, now)
	}
	return news{
		lost:     old,
		entry:    old != 0,
		appeared: s.mask&(maskNamed|maskRescan) != 0,
		wrote:    s.mask&maskContent != 0 && (s.mask&maskRescan == 0 || old != 0 || w.since(&s.st)),
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

// sameName: what the kernel knows under this name is what lies there.
func (s *seen) sameName(n locked) (found news) {
	attr, content := n.meet(&s.st, s.mask, false)
	byOthers := s.mask&maskNamed != 0 && !s.made() && s.own.said != signature(&s.st)
	switch {
	case content:
		found.content = n.ino
	case attr || n.directory() && s.mask&unix.IN_ATTRIB != 0:
		found.attr = n.ino
	}
	found.appeared = byOthers && n.refs == 0 // only the walker saw it: the kernel may believe that there is none
	found.parent = byOthers
	found.wrote = content || byOthers
	return found
}

func (e *ext) passes() int32 {
	if e == nil {
		return 0
	}
	return e.pass
}

// otherName: a file that we know by another name, which it has given up or has
// beside this one.
func (w *watch) otherName(s *seen, n locked) news {
	named := s.mask&(maskNamed|maskRescan) != 0
	_, content := n.meet(&s.st, s.mask, s.made())
	if named {
		delete(w.judging.orphans, n.ino)
	}
	if named = named && !s.made(); named {
		n.setName(s.dir, s.name)
	}
	s.own = ownName{} // what was said of the file was said of its other name
	switch {
	case content:
		return news{entry: named, content: n.ino, wrote: true}
	case named:
		return news{entry: true, attr: n.ino, wrote: true}
	}
	return news{}
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
			n, ok := w.v.tab.find(id)
			if !ok {
				return false
			}
			defer n.unlock()
			return n.refs > 0 && n.directory() && n.parent == k.dir && n.name == k.name
		})
	})
}

func (w *watch) tellEntry(k key, tell func(wsfs.Notifier)) {
	note := w.v.tell.notifier()
	if note == nil {
		return
	}
	if w.v.tab.referenced(k.dir) {
		tell(note)
		note.AttrChanged(k.dir)
	}
}

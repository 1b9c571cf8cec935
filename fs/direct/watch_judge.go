package direct

import (
	"sync"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/direct/internal/inotify"
	"golang.org/x/sys/unix"
)

// Judging an event compares the file at the name now with the kernel's last answer. Equal: the
// change was our own, or a request saw it first. Which process made it cannot be asked, and
// need not be: it only matters whether the kernel believes something wrong.
type judging struct {
	mu      sync.Mutex // guards the rest; see judge
	written map[key]pendingWrite
	retries []retry
	orphans map[wsfs.Ino]time.Time // watched directories that lost their name
	good    time.Time              // when the last complete batch was handled
	lost    time.Time              // no event from before this time is missing
	armed   bool                   // Handle will be called when a job is due
}

// A pendingWrite is a `write` event that waits for the writer to finish.
type pendingWrite struct {
	sig uint64
	due time.Time
}

// A retry is a report that is looked into once more.
type retry struct {
	inotify.Report
	batch uint64
}

const (
	// retryDelay is for names that a request is changing right now.
	retryDelay = 10 * time.Millisecond

	// quiet is how long a file must rest before its change is an event, when no close of it was
	// reported.
	quiet = 50 * time.Millisecond

	// orphanFor is how long a directory that was moved away may take to appear elsewhere in the
	// tree.
	orphanFor = 50 * time.Millisecond

	maskNamed   = unix.IN_CREATE | unix.IN_MOVED_TO | inotify.Found
	maskUnnamed = unix.IN_DELETE | unix.IN_MOVED_FROM
	maskContent = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | maskNamed | inotify.Rescan
)

func (j *judging) init() {
	j.written = map[key]pendingWrite{}
	j.orphans = map[wsfs.Ino]time.Time{}
}

// A judge compares names. Only one exists at a time, until done.
type judge struct {
	*watch
	*judging
	now time.Time
}

func (w *watch) judge() judge {
	w.judging.mu.Lock()
	return judge{w, &w.judging, w.v.now()}
}

func (j judge) done() { j.mu.Unlock() }

func (j judge) takeRetries() []retry {
	r := j.retries
	j.retries = nil
	return r
}

// due is the time until a judge has to run again; negative is never.
func (j judge) due() time.Duration {
	if len(j.retries) > 0 {
		return retryDelay
	}
	first := time.Duration(-1)
	at := func(t time.Time) {
		if wait := max(0, t.Sub(j.now)); first < 0 || wait < first {
			first = wait
		}
	}
	for _, p := range j.written {
		at(p.due)
	}
	for _, since := range j.orphans {
		at(since.Add(orphanFor))
	}
	return first
}

// Handle judges a batch, and the reports that were put off.
func (w *watch) Handle(b *inotify.Batch) time.Duration {
	again := w.judgeBatch(b)
	for _, at := range b.Gone {
		w.lost(at)
	}
	if b.Overflow {
		w.v.log.Warn("inotify lost events; reading the tree anew")
	}
	w.own.Purge()
	return again
}

func (w *watch) judgeBatch(b *inotify.Batch) time.Duration {
	j := w.judge()
	defer j.done()
	for _, r := range j.takeRetries() {
		j.report(r.Report, r.batch)
	}
	for _, r := range b.Reports {
		j.report(r, b.Number)
	}
	j.settleDue()
	switch {
	case !b.Overflow:
		j.good = j.now
	case w.in.Current():
		j.judging.lost = j.good
	}
	again := j.due()
	j.armed = again >= 0
	return again
}

// report judges one name of a batch's report; batch 0 is a look without an event.
func (j judge) report(r inotify.Report, batch uint64) {
	k, mask := r.Key, r.Mask
	if k.Name == "" { // the directory itself
		if n := j.v.tell.notifier(); n != nil && mask&unix.IN_ATTRIB != 0 {
			n.AttrChanged(k.Dir)
		}
		return
	}
	s := seen{key: k, mask: mask, own: j.own.Know(k, batch)}
	again := func() {
		j.retries = append(j.retries, retry{r, batch})
	}
	switch {
	case s.own.Explains(mask) && j.own.Unchanged(k, s.own, false, func() {}):
		return
	case s.own.Underway > 0:
		again()
		return
	}
	j.look(&s)
	defer s.in.drop()
	if j.looked != nil {
		j.looked(k)
	}
	var n news
	if !j.own.Unchanged(k, s.own, s.there, func() { n = j.enter(&s) }) || n.busy {
		again()
		return
	}
	j.tell(&s, n)
}

// A seen is the result of a look at a name.
type seen struct {
	key
	mask  uint32 // of the report
	own   inotify.Known[ident]
	in    *handle // of the directory; nil where it cannot be reached
	there bool
	id    ident
	st    stat
}

// made reports whether the name leads to the file that a request gave it.
func (s *seen) made() bool { return s.own.Made == s.id && s.mask&maskNamed != 0 }

// news are the differences that a look found against the table.
type news struct {
	busy     bool     // no comparison: a request changes the inode, or has since the look
	lost     wsfs.Ino // lost its name
	attr     wsfs.Ino // has other attributes
	content  wsfs.Ino // has other content
	entry    bool     // the name leads to another file
	appeared bool     // the name was not known
	parent   bool     // the directory changed, but no name in it that the kernel knows
	wrote    bool
	deleted  bool
}

// enter records the result of a look in the table. A request that changes the name waits for
// it, so that its own result is entered later: see Own.Unchanged.
func (j judge) enter(s *seen) news {
	switch {
	case s.there:
		return j.present(s)
	case !s.own.Gone || j.v.tab.named(s.Dir, s.Name, 0) != 0: // or a request saw a file come and go
		return j.absent(s)
	}
	return news{}
}

// tell passes news on. The locks of the table and of the own changes are free, for it looks up
// paths.
func (j judge) tell(s *seen, n news) {
	note := j.v.tell.notifier()
	if note != nil {
		if n.lost != 0 {
			note.AttrChanged(n.lost)
		}
		switch {
		case n.entry:
			j.entryChanged(s.key)
		case n.appeared:
			j.entryAppeared(s.key, s.id)
		case n.parent:
			note.AttrChanged(s.Dir)
		}
		if n.content != 0 {
			note.ContentChanged(n.content)
		}
		if n.attr != 0 {
			note.AttrChanged(n.attr)
		}
	}
	if n.wrote {
		j.wrote(s)
	}
	if n.deleted {
		j.v.tell.deleted(s.Dir, s.Name)
	}
}

// look stats the file at the name; a directory that cannot be reached any more has none.
func (w *watch) look(s *seen) {
	h, _, err := w.v.res.holdDir(s.Dir)
	if err != nil {
		return
	}
	s.in = h
	if statAt(h.fd, s.Name, &s.st) == nil && !w.v.disk.crosses(&s.st) {
		s.there, s.id = true, w.v.disk.identOf(h.fd, s.Name, &s.st)
	}
}

// absent handles a name that others removed.
func (j judge) absent(s *seen) news {
	_, pending := j.written[s.key]
	delete(j.written, s.key)
	lost := j.unname(s, 0)
	blink := s.mask&maskNamed != 0 && lost == 0 && !pending // it came and went
	return news{lost: lost, entry: true, deleted: !blink && (s.mask&maskUnnamed != 0 || lost != 0)}
}

// unname takes the name from the inode recorded there, except but, and returns it; 0 if there
// is none. An inode that a request has met at the name since the look keeps it.
func (j judge) unname(s *seen, but wsfs.Ino) wsfs.Ino {
	n, ok := j.v.tab.lock(j.v.tab.named(s.Dir, s.Name, but))
	if !ok {
		return 0
	}
	defer n.unlock()
	if s.in != nil && j.v.disk.leads(s.in, s.Name, n.ident()) || !n.loseName(s.Dir, s.Name) {
		return 0
	}
	n.flags |= flagTaken
	if n.flags&flagWatched != 0 {
		j.orphans[n.ino] = j.now
	}
	return n.ino
}

// present handles a name that leads to a file.
func (j judge) present(s *seen) news {
	n, known := j.v.tab.find(s.id)
	if s.st.Mode&unix.S_IFMT == unix.S_IFDIR && s.mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 &&
		(!known || n.flags&flagListed == 0) {
		j.in.Walk(s.key, inotify.Found)
	}
	switch {
	case !known && s.made(): // and forgotten since
		return news{}
	case !known:
		return j.unknown(s)
	}
	found := j.known(s, n)
	n.unlock()
	if found.entry {
		found.lost = j.unname(s, n.ino)
	}
	return found
}

func (j judge) known(s *seen, n locked) news {
	switch {
	case n.ext != nil && n.ext.busy > 0 || n.overtook(&s.st):
		return news{busy: true}
	case n.parent == s.Dir && n.name == s.Name:
		return s.sameName(n)
	}
	return j.otherName(s, n)
}

// unknown handles an inode that the kernel does not know.
func (j judge) unknown(s *seen) news {
	var meanwhile wsfs.Ino // a request or the walker knows it by now
	if n, known := j.v.tab.find(s.id); known {
		meanwhile = n.ino
		n.unlock()
	}
	old := j.unname(s, meanwhile)
	return news{
		lost:     old,
		entry:    old != 0,
		appeared: s.mask&(maskNamed|inotify.Rescan) != 0,
		wrote:    s.mask&maskContent != 0 && (s.mask&inotify.Rescan == 0 || old != 0 || j.since(&s.st)),
	}
}

// meet compares the file that a report led to with the last answer, and returns whether
// attributes have news, and whether content has, for the kernel. own says that we gave the name
// ourselves, which is no report of content.
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

// sameName handles a name that still leads to the file that the kernel knows by it.
func (s *seen) sameName(n locked) (found news) {
	attr, content := n.meet(&s.st, s.mask, false)
	byOthers := s.mask&maskNamed != 0 && !s.made() && s.own.Said != signature(&s.st)
	switch {
	case content:
		found.content = n.ino
	case attr || n.directory() && s.mask&unix.IN_ATTRIB != 0:
		found.attr = n.ino
	}
	found.appeared = byOthers && n.refs == 0 // only the walk saw it: the kernel may believe in no such name
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

// otherName handles a file that we know by another name, which it has lost or still has beside
// this one.
func (j judge) otherName(s *seen, n locked) news {
	named := s.mask&(maskNamed|inotify.Rescan) != 0
	_, content := n.meet(&s.st, s.mask, s.made())
	if named {
		delete(j.orphans, n.ino)
	}
	if named = named && !s.made(); named {
		n.setName(s.Dir, s.Name)
	}
	s.own = inotify.Known[ident]{} // what Say noted was for its other name
	switch {
	case content:
		return news{entry: named, content: n.ino, wrote: true}
	case named:
		return news{entry: true, attr: n.ino, wrote: true}
	}
	return news{}
}

// since reports whether a file changed after the last event that was not lost.
func (j judge) since(st *stat) bool {
	const tick = 10 * time.Millisecond // the disk's clock may be that much behind
	return !timeOf(st.Ctime).Before(j.judging.lost.Add(-tick))
}

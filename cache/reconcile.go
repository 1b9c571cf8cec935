package cache

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// merge brings what the backend was seen to have into the working copy, name
// by name, each three ways: what the backend had when we last knew (Base),
// what it has now, and what is here. It is the one place that decides, for a
// listing that was due, for a pull of the whole tree and for a change of ours
// that came too late:
//
//	there        here         then
//	unchanged    any          nothing
//	changed      unchanged    theirs, under a new inode
//	deleted      unchanged    deleted
//	attributes   any          theirs, those that were changed here stay
//	same change  same change  the backend has it already
//	changed      changed      the conflict policy
//	changed      deleted      theirs comes back
//	deleted      changed      ours stays, and is sent anew
//	changed      renamed      theirs, under our name; if ours was changed too, both
//	deleted      renamed      ours stays if its content is here
//	file         directory    (or the other way round) both changed: ours makes
//	                          room under the name of a conflict copy, whatever
//	                          the policy: two kinds cannot share a name
//	changed      changed in   the same, if the rest never came here: see reconcile_partial_conflict.go
//	             part
//
// A directory is changed when something below it is. Names that stay on this
// machine, that the backend has a change of ours for under way, or that it
// changed while it was asked, are left alone.
//
// It runs in one update of the table. What it must know of contents it asks
// (ask): then nothing is changed, the questions are answered without the lock,
// and all is decided anew.
type merge struct {
	v      *Volume
	ctx    context.Context
	remote providers.Provider  // where theirs is read
	mine   *tree.Observation   // the look at the backend that this comes from
	late   map[table.Link]bool // names with an attempt that is known to be lost
	first  bool                // a first listing: nobody has seen these names
	whole  bool                // all that is known was looked at
	dry    bool                // decide, and change nothing
	alone  bool                // nobody gets its report: the next who asks is told
	round  int                 // how often questions were answered

	answers map[question]answer
	open    []query
	made    []table.Ino // content files that were made for answers
	used    []table.Ino // those that a name has got

	// What one run did.
	report  PullReport
	told    []told
	clashes []clash
	touched []table.Link
	news    []table.Link            // that programs see something else under
	deleted int                     // names that the backend has no more
	within  int                     // directories that are gone, above the name
	back    map[table.Ino]table.Ino // as which a directory that was removed here came back
	root    int                     // entries of the root before, -1: not counted
	halt    error                   // too much would be deleted, which was seen early
	left    bool                    // something is left as it was, for another look
}

type told struct {
	path, what string
}

// clash is a conflict of a name.
type clash struct {
	table.Link
	path string
}

var (
	errAsk = errors.New("contents must be compared first")
	errDry = errors.New("only asked")
)

// maxRounds bounds how often questions may lead to more questions.
const maxRounds = 6

func (v *Volume) newMerge(ctx context.Context, remote providers.Provider) *merge {
	return &merge{v: v, ctx: ctx, remote: remote, answers: map[question]answer{}, late: map[table.Link]bool{}}
}

// run does a change of the table that may ask.
func (m *merge) run(do func(*Tx) error) error {
	defer m.dropMade()
	for m.round = 0; ; m.round++ {
		err := m.v.update(func(v *Tx) error {
			m.open, m.report, m.told, m.clashes, m.touched, m.news = nil, PullReport{}, nil, nil, nil, nil
			m.deleted, m.root, m.halt, m.used, m.left = 0, -1, nil, nil, false
			m.back = map[table.Ino]table.Ino{}
			err := do(v)
			if err == nil {
				err = m.halt
			}
			if err != nil {
				m.used = nil
				return err
			}
			switch {
			case m.asks():
				return errAsk
			case m.dry:
				return errDry
			}
			m.finish(v)
			return nil
		})
		if err != errAsk { // never wrapped
			return err
		}
		m.answer()
	}
}

// pulled are the paths that lead to another file than before.
func (m *merge) pulled(v *Tx) (paths []string) {
	if v.o.Pulled == nil {
		return nil
	}
	for _, l := range m.news {
		rec, _ := v.table.Name(l.Dir, l.Name)
		at, ok := v.LocalPath(l)
		if n := v.table.Inode(rec.Ino); ok && n != nil && !n.IsDir() {
			paths = append(paths, at.String())
		}
	}
	return paths
}

// asks reports whether there is a question that was not put yet, and is to be.
func (m *merge) asks() bool {
	if m.round >= maxRounds {
		return false
	}
	for _, q := range m.open {
		if _, put := m.answers[q.question]; !put {
			return true
		}
	}
	return false
}

// finish tells whom it may concern.
func (m *merge) finish(v *Tx) {
	v.Found(m.mine, m.touched...)
	for _, l := range m.news {
		v.recordCame(l)
	}
	m.countDeleted(v)
	missed := v.engine.clashed(v.View, m.clashes)
	if m.alone {
		v.addUnreported(missed)
	}
	told, pulled := m.told, m.pulled(v)
	v.Later(func() {
		for _, path := range pulled {
			m.v.o.Pulled(path)
		}
		for _, t := range told {
			m.v.report("pull", t.path, errors.New(t.what))
		}
	})
}

// tell reports what a person should know of.
func (m *merge) tell(v *Tx, l table.Link, what string, conflict bool) {
	path := v.PathFor(l)
	m.told = append(m.told, told{path, what})
	if conflict {
		m.clash(l, path)
	}
}

// clash counts a conflict.
func (m *merge) clash(l table.Link, path string) {
	m.report.Conflicts = append(m.report.Conflicts, path)
	m.clashes = append(m.clashes, clash{l, path})
}

// name reconciles one name with what the backend has under it now; nil: nothing.
func (m *merge) name(v *Tx, l table.Link, r *providers.Info) {
	l.Dir = m.shownAs(l.Dir)
	rec, _ := v.table.Name(l.Dir, l.Name)
	if r != nil && m.halt == nil && v.onlyIgnored(l, rec) { // tracked from now on
		rec.Local = false
		m.set(v, l, rec)
		rec, _ = v.table.Name(l.Dir, l.Name)
	}
	switch {
	case m.halt != nil:
	case m.skipInFlight(v, l, &rec):
		m.left = true
	case rec.Local, unchanged(rec, r), m.isOwnLateWrite(v, l, rec, r):
	case r == nil:
		m.gone(v, l, rec)
	case r.Kind == providers.KindDir:
		m.dir(v, l, rec, r)
	default:
		m.leaf(v, l, rec, r)
	}
}

// unchanged reports whether the backend has what it was last known to have.
// Attributes of directories have no version: dir looks at them.
func unchanged(rec table.Name, r *providers.Info) bool {
	b := rec.Remote
	switch {
	case r == nil || b == nil:
		return r == nil && b == nil
	case rec.Held != nil && rec.Held.Conflict && rec.Ino != 0:
		theirs, ok := decodeInfo(rec.Held.Remote)
		return ok && theirs.Kind == r.Kind && theirs.Version.Matches(r.Version)
	}
	return b.Kind == r.Kind && b.Kind != providers.KindDir && b.Version.Matches(r.Version)
}

// set stores a record, and looks anew whether its sides differ.
func (m *merge) set(v *Tx, l table.Link, rec table.Name) {
	if from := v.SetName(l, rec); from != 0 {
		v.MarkStaleDentry(l, from)
	}
	v.Mark(l)
	m.touched = append(m.touched, l)
}

// remoteSide says what the backend has under a name. Who had it there loses that
// remote link.
func (m *merge) remoteSide(v *Tx, l table.Link, rec *table.Name, base *table.Remote) {
	rec.Remote, rec.Attempt, rec.Held = base, nil, nil
	m.set(v, l, *rec)
	*rec, _ = v.table.Name(l.Dir, l.Name)
}

// shown says that a program sees something else under a name. Never for a
// directory that still exists: the kernel would unmount what is mounted below.
func (m *merge) shown(v *Tx, l table.Link) {
	if m.first {
		return
	}

	m.news = append(m.news, l)
	v.DirChanged(l.Dir)
	v.Later(func() {
		v.notifier().EntryChanged(ino(l.Dir), l.Name)
		v.notifier().AttrChanged(ino(l.Dir))
	})
}

// gone: the backend has nothing there any more.
func (m *merge) gone(v *Tx, l table.Link, rec table.Name) {
	m.deleted++
	if l.Dir == table.Root && m.root < 0 {
		m.root = massdelete.CountRoot(v)
	}
	b := *rec.Remote
	if b.Kind == providers.KindDir && b.Ino != 0 {
		if !v.caps.EmptyDirs && m.goneEmpty(v, l, rec) {
			return
		}
		if _, ours := m.holds(v, b.Ino); ours && v.caps.ImpliedDirs { // it may have gone with what we delete
			m.deleted--
			return
		}
		if m.tooMuchBelow(v, b.Ino) {
			return
		}
		m.emptied(v, b.Ino)
	}
	changed := rec.Ino != 0 && (rec.Ino != b.Ino || v.table.Inode(rec.Ino).ContentVersion != b.ContentVersion)
	m.remoteSide(v, l, &rec, nil)
	n := v.table.Inode(rec.Ino)
	switch {
	case rec.Ino == 0, rec.Ino != b.Ino:
		m.leftRemote(v, b.Ino)
	case n.IsDir():
		if n.Entries > 0 {
			m.tell(v, l, "directory deleted on the remote but modified locally: kept the local directory", false)
			return
		}
		m.unname(v, l, rec)
	case changed:
		m.tell(v, l, "deleted on the remote but modified locally: kept the local file", false)
	default:
		m.unname(v, l, rec)
	}
}

// goneEmpty deals with a directory that the backend does not show because there
// is nothing in it, where directories come and go with their entries. It reports
// false when others have deleted what was in it.
func (m *merge) goneEmpty(v *Tx, l table.Link, rec table.Name) bool {
	something, ours := m.holds(v, rec.Remote.Ino)
	switch {
	case ours: // the last of what we delete may be gone, or the first of what we make not there
		if something {
			m.emptied(v, rec.Remote.Ino)
		}
	case something:
		return false
	case m.within > 0:
		m.emptied(v, rec.Remote.Ino)
		m.remoteSide(v, l, &rec, nil)
	}
	m.deleted--
	return true
}

// holds reports whether the backend was known to have a file below a directory,
// or may have one; and whether there is one that a change of ours is about.
func (m *merge) holds(v *Tx, dir table.Ino) (something, ours bool) {
	if n := v.table.Inode(dir); n != nil && !n.Loaded {
		something = true
	}
	v.table.Names(dir, "", func(name string, rec table.Name) bool {
		l := table.Link{Dir: dir, Name: name}
		switch {
		case m.skipInFlight(v, l, &rec):
			ours = true
		case rec.Remote == nil:
		case rec.Remote.Kind == providers.KindDir:
			below, busy := m.holds(v, rec.Remote.Ino)
			something, ours = something || below, ours || busy
		default:
			something = true
		}
		return !something || !ours
	})
	return something, ours
}

// emptied: the backend has nothing below a directory any more.
func (m *merge) emptied(v *Tx, dir table.Ino) {
	var names []string
	v.table.Names(dir, "", func(name string, rec table.Name) bool {
		if rec.Remote != nil {
			names = append(names, name)
		}
		return true
	})
	m.within++
	for _, name := range names {
		m.name(v, table.Link{Dir: dir, Name: name}, nil)
	}
	m.within--
	if n := v.table.Inode(dir); n != nil && !n.Loaded {
		v.table.Edit(dir).Loaded = true // there is nothing to list
	}
}

// leftRemote: an inode has lost a remote link at the backend, and has no name there that
// would be its. What only the backend had of it is lost.
func (m *merge) leftRemote(v *Tx, x table.Ino) {
	n := v.table.Inode(x)
	switch {
	case n == nil || len(n.RemoteLinks) > 0:
		return
	case len(n.Links) == 0:
		v.Shed(x)
		return
	case n.IsDir() || n.IsRegular() && n.State == table.Whole || n.IsSymlink() && n.Target != "":
		for _, l := range n.Links {
			v.Mark(l)
			m.tell(v, l, "deleted on the remote but renamed locally: kept the local file", false)
		}
		return
	case n.ContentVersion != n.Origin.ContentVersion && n.State == table.Partial:
		return // what is missing is gone: when it is sent, a part of it is gone
	}
	for _, l := range append([]table.Link(nil), n.Links...) {
		rec, _ := v.table.Name(l.Dir, l.Name)
		m.tell(v, l, "deleted on the remote before its content was fetched", false)
		m.unname(v, l, rec)
	}
}

// unname takes a name away here. Who has the file open keeps it, and the claim
// to the name.
func (m *merge) unname(v *Tx, l table.Link, rec table.Name) {
	n := v.table.Inode(rec.Ino)
	if !m.first {
		v.deleted(l, n)
	}
	v.bury(l, rec.Ino, "pulled")
	x := rec.Ino
	rec.Ino, rec.Local = 0, false
	m.set(v, l, rec)
	m.lost(v, l, x)
	m.shown(v, l)
	m.report.Deleted++
}

// lost is what follows for an inode that has just lost a name to a pull.
func (m *merge) lost(v *Tx, l table.Link, x table.Ino) {
	n := v.table.Edit(x)
	n.Ctime = v.stamp()
	if len(n.Links) > 0 {
		return
	}
	if n.IsRegular() && !v.IsForsaken(x) {
		n.LostName = &l
	}
	v.Shed(x)
}

// take applies a piece of news.
func (m *merge) take(v *Tx, d news) {
	if d.hide {
		d.l.Dir = m.shownAs(d.l.Dir)
		m.hide(v, d.l)
	} else {
		m.name(v, d.l, d.info)
	}
}

// hide has a name that the backend had shown stay here from now on: the
// backend keeps what it has. What was not changed here goes, since it is
// there.
func (m *merge) hide(v *Tx, l table.Link) {
	rec, _ := v.table.Name(l.Dir, l.Name)
	if rec.Remote == nil {
		return
	}
	if m.skipInFlight(v, l, &rec) {
		m.left = true
		return
	}
	b := rec.Remote
	if b.Kind == providers.KindDir && b.Ino != 0 {
		var names []string
		v.table.Names(b.Ino, "", func(name string, rec table.Name) bool {
			names = append(names, name)
			return true
		})
		for _, name := range names {
			m.hide(v, table.Link{Dir: b.Ino, Name: name})
		}
	}
	n := v.table.Inode(rec.Ino)
	ours := n != nil && rec.Ino != 0 && (rec.Ino != b.Ino || n.ContentVersion != b.ContentVersion || n.IsDir() && n.Entries > 0)
	rec.Remote, rec.Attempt, rec.Held = nil, nil, nil
	rec.Local = ours
	if ours && n.IsDir() {
		v.table.Edit(rec.Ino).Loaded = true
	}
	m.set(v, l, rec)
	switch {
	case ours:
		v.Mark(l)
	case rec.Ino != 0:
		m.unname(v, l, rec)
	default:
		m.leftRemote(v, b.Ino)
	}
}

package merge

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// Merge is one merge. A directory counts as changed when an entry below it changed.
//
// It runs in one update of the table. Facts about contents are found by questions (inquiry): while
// one is open nothing is changed; it is answered without the lock, and all is decided anew.
type Merge struct {
	inquiry
	Mine  *tree.Observation   // the look at the remote that this comes from
	late  map[table.Link]bool // names with an attempt that is known to be lost
	First bool                // a first listing: no program has seen these names
	Whole bool                // the whole known tree was looked at
	Dry   bool                // decide, and change nothing
	Alone bool                // no caller gets its report: conflicts wait for the next one
	// Deletions says where names go that the remote lost: if they are Kept, any number may go.
	Deletions revision.Deletions

	// The results of one run.
	Report  Report
	told    []told
	clashes []clash
	touched []table.Link
	news    []table.Link            // names that lead programs to another entry
	deleted int                     // names that the remote lost
	within  int                     // depth of deleted directories above the name
	back    map[table.Ino]table.Ino // the new inodes of resurrected directories
	root    int                     // entries of the root before, -1: not counted
	halt    error                   // an early verdict that too much would be deleted
	Left    bool                    // something was left unchanged, for another look
}

// Report is the result of one run.
type Report struct {
	Changed   int      // names that lead to a new entry
	Deleted   int      // names that are gone
	Conflicts []string // paths
}

// News is a name whose remote entry differs from the last known one.
type News struct {
	table.Link
	Info *providers.Info // nil: nothing
	Hide bool            // excluded, since it was fetched from the remote
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

// New is a merge of an observation of remote.
func (v *Merger) New(ctx context.Context, remote providers.Provider) *Merge {
	return &Merge{inquiry: newInquiry(ctx, v, remote), late: map[table.Link]bool{}}
}

// Run makes a change of the table that may ask questions.
func (m *Merge) Run(do func(*Tx) error) error {
	defer m.dropMade()
	for m.round = 0; ; m.round++ {
		err := m.v.update(func(v *Tx) error {
			m.Report, m.told, m.clashes, m.touched, m.news = Report{}, nil, nil, nil, nil
			m.deleted, m.root, m.halt, m.open, m.used, m.Left = 0, -1, nil, nil, nil, false
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
			case m.Asks():
				return errAsk
			case m.Dry:
				return errDry
			}
			m.finish(v)
			return nil
		})
		switch err { // never wrapped
		case errAsk:
		case errDry:
			return nil
		default:
			return err
		}
		m.answer()
	}
}

// pulled are the paths that lead to another file than before.
func (m *Merge) pulled(v *Tx) (paths []string) {
	if v.o.Pulled == nil {
		return nil
	}
	for _, l := range m.news {
		at, ok := v.LocalPath(l)
		if n := v.Inode(v.Record(l).Ino); ok && n != nil && !n.IsDir() {
			paths = append(paths, at.String())
		}
	}
	return paths
}

// finish hands the results on: to other observations, the history, commits, and at last reports.
func (m *Merge) finish(v *Tx) {
	v.Found(m.Mine, m.touched...)
	for _, l := range m.news {
		v.Notes.Came(l)
	}
	m.countDeleted(v)
	missed := m.unheard(v)
	if m.Alone {
		v.addUnreported(missed)
	}
	told, pulled := m.told, m.pulled(v)
	v.Later(func() {
		for _, path := range pulled {
			m.v.o.Pulled(path)
		}
		for _, t := range told {
			m.v.o.Volume.Report("pull", t.path, errors.New(t.what))
		}
	})
}

// unheard are the conflicts that no waiting commit asked for: a name that is decided at once is
// not held back, and yet the commits that waited for it are to report it.
func (m *Merge) unheard(v *Tx) (paths []string) {
	for _, c := range m.clashes {
		if !v.o.Heard(v.View, c.Link, c.path) {
			paths = append(paths, c.path)
		}
	}
	return paths
}

// tell reports an event that a person should know of.
func (m *Merge) tell(v *Tx, l table.Link, what string, conflict bool) {
	path := v.PathFor(l)
	m.told = append(m.told, told{path, what})
	if conflict {
		m.clash(l, path)
	}
}

// clash counts a conflict.
func (m *Merge) clash(l table.Link, path string) {
	m.Report.Conflicts = append(m.Report.Conflicts, path)
	m.clashes = append(m.clashes, clash{l, path})
}

// name reconciles one name with its present remote entry; nil: none.
func (m *Merge) name(v *Tx, l table.Link, r *providers.Info) {
	if m.halt == nil {
		m.at(v, l, r).reconcile()
	}
}

// Hide makes a name that the remote had shown local from now on.
func (m *Merge) Hide(v *Tx, l table.Link) {
	s := m.at(v, l, nil)
	s.policy.Excluded = true
	s.reconcile()
}

// Take applies a piece of news.
func (m *Merge) Take(v *Tx, d News) {
	if d.Hide {
		m.Hide(v, d.Link)
	} else {
		m.name(v, d.Link, d.Info)
	}
}

// set stores a record, and computes anew whether its sides differ.
func (m *Merge) set(v *Tx, l table.Link, rec table.Name) {
	if from := v.SetName(l, rec); from != 0 {
		v.MarkStaleDentry(l, from)
	}
	v.Mark(l)
	m.touched = append(m.touched, l)
}

// shown notes that a name leads programs to another entry. Never for a directory that still
// exists: the kernel would unmount a file system mounted below it.
func (m *Merge) shown(v *Tx, l table.Link) {
	if m.First {
		return
	}

	m.news = append(m.news, l)
	v.DirChanged(l.Dir)
	v.TellEntry(l)
	v.TellAttr(l.Dir)
}

// skipInFlight reports whether an operation of ours on this name is under way: the remote may show
// the state before it or after it, and the engine resolves its outcome.
func (m *Merge) skipInFlight(v *Tx, l table.Link, rec table.Name) bool {
	if m.Mine != nil {
		if outdated, _ := v.IsOutdated(m.Mine, l); outdated {
			return true
		}
	}
	return !m.late[l] && v.Attempted(rec, m.late)
}

// countGone counts a name that the remote lost.
func (m *Merge) countGone(v *Tx, l table.Link) {
	m.deleted++
	if l.Dir == table.Root && m.root < 0 {
		m.root = massdelete.CountRoot(v)
	}
}

// below looks up the known remote entries below a directory.
func (m *Merge) below(v *Tx, dir table.Ino) (b reconcile.Below) {
	if n := v.Inode(dir); n != nil && !n.Loaded {
		b.Files = true
	}
	v.Names(dir, "", func(name string, rec table.Name) bool {
		switch {
		case m.skipInFlight(v, table.Link{Dir: dir, Name: name}, rec):
			b.Busy = true
		case rec.Remote == nil:
		case rec.Remote.Kind == providers.KindDir:
			deeper := m.below(v, rec.Remote.Ino)
			b.Files, b.Busy = b.Files || deeper.Files, b.Busy || deeper.Busy
		default:
			b.Files = true
		}
		return !b.Files || !b.Busy
	})
	return b
}

// remoteEntries are the names in a directory under which the remote was known to have an entry.
func remoteEntries(v *Tx, dir table.Ino) (names []table.Link) {
	v.Names(dir, "", func(name string, rec table.Name) bool {
		if rec.Remote != nil {
			names = append(names, table.Link{Dir: dir, Name: name})
		}
		return true
	})
	return names
}

// emptied: the remote has no entry below a directory any more.
func (m *Merge) emptied(v *Tx, dir table.Ino) {
	m.within++
	for _, l := range remoteEntries(v, dir) {
		m.name(v, l, nil)
	}
	m.within--
	if n := v.Inode(dir); n != nil && !n.Loaded {
		v.Edit(dir).Loaded = true // there is nothing to list
	}
}

// leftRemote: an inode has lost a remote link, and perhaps the last.
func (m *Merge) leftRemote(v *Tx, x table.Ino) {
	n := v.Inode(x)
	if n == nil {
		return
	}
	a := reconcile.DecideRemains(reconcile.Remains{
		Remote:   len(n.RemoteLinks) > 0,
		Local:    len(n.Links) > 0,
		Complete: n.IsDir() || n.IsRegular() && n.State == table.Whole || n.IsSymlink() && n.Target != "",
		Modified: n.ContentVersion != n.Origin.ContentVersion && n.State == table.Partial,
	})
	switch a.Do {
	case reconcile.Forget:
		v.Shed(x)
	case reconcile.Keep:
		for _, l := range n.Links {
			v.Mark(l)
			m.tell(v, l, a.Note, false)
		}
	case reconcile.Delete:
		for _, l := range append([]table.Link(nil), n.Links...) {
			m.tell(v, l, a.Note, false)
			m.at(v, l, nil).unname()
		}
	}
}

// lost does the rest for an inode that has just lost a name to a pull.
func (m *Merge) lost(v *Tx, l table.Link, x table.Ino) {
	n := v.Edit(x)
	n.Ctime = v.Stamp()
	if len(n.Links) > 0 {
		return
	}
	if n.IsRegular() && !v.IsForsaken(x) {
		n.LostName = &l
	}
	v.Shed(x)
}

package merge

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// reachable is the local directory in which a remote name of dir is shown. A directory that was
// removed locally comes back as another; when a directory has its name by now, the two become one.
func (m *Merge) reachable(v *Tx, dir table.Ino) table.Ino {
	n := v.Inode(dir)
	if dir == table.Root || len(n.Links) > 0 || len(n.RemoteLinks) == 0 {
		return dir
	}
	upload.HandOverAll(v.sent, dir)
	m.reachable(v, n.RemoteLinks[0].Dir)
	home := v.Inode(dir).RemoteLinks[0] // another, if its parent was joined with one
	rec := v.Record(home)
	switch here := v.Inode(rec.Ino); {
	case rec.Ino == 0:
	case here.IsDir():
		if !m.part(v, home, rec.Ino) {
			return dir
		}
		m.join(v, home, rec, dir)
		return rec.Ino
	case !m.at(v, home, nil).aside():
		return dir
	}
	rec = v.Record(home)
	rec.Ino = v.Alloc()
	n = upload.Twin(v.Inode(dir))
	n.Loaded = v.Inode(dir).Loaded
	v.Put(rec.Ino, n)
	m.set(v, home, rec)
	m.shown(v, home)
	rec, _ = v.Name(home.Dir, home.Name)
	m.join(v, home, rec, dir)
	m.tell(v, home, "directory removed locally, but the remote added to it: restored", false)
	return rec.Ino
}

// join makes the remote's directory that of another one which has its name locally: the known
// remote entries below the first go to the other, and so do operations under way there.
func (m *Merge) join(v *Tx, l table.Link, rec table.Name, from table.Ino) {
	to := rec.Ino
	type entry struct {
		name string
		rec  table.Name
	}
	var all []entry
	v.Names(from, "", func(name string, rec table.Name) bool {
		if rec.Remote != nil || rec.Attempt != nil {
			all = append(all, entry{name, rec})
		}
		return true
	})
	for _, e := range all {
		base, attempt := e.rec.Remote, e.rec.Attempt
		e.rec.Remote, e.rec.Attempt, e.rec.Held = nil, nil, nil
		m.set(v, table.Link{Dir: from, Name: e.name}, e.rec)
		there, _ := v.Name(to, e.name)
		there.Remote = base
		l := table.Link{Dir: to, Name: e.name}
		if attempt != nil && attempt.Kind != upload.AttemptSet { // its outcome is found at the same place
			there.Attempt = attempt
			upload.Redirect(v.sent, attempt, l)
		}
		m.set(v, l, there)
	}
	m.back[from] = to
	v.sent.Rest.Succeeded(from, to)
	n := v.Edit(to)
	n.Loaded = n.Loaded && v.Inode(from).Loaded
	base := *rec.Remote
	base.Ino, base.AttrGen = to, n.AttrGen
	m.at(v, l, nil).remoteSide(&base)
	v.Shed(from)
}

// takeOver has a directory that was made locally, and those above it, take the places of
// directories that were removed locally and that the remote still has. It reports whether the
// remote has it then.
func (m *Merge) takeOver(v *Tx, dir table.Ino) bool {
	n := v.Inode(dir)
	switch {
	case dir == table.Root:
		return true
	case n == nil || n.From != "" || len(n.Links) == 0:
		return false
	case len(n.RemoteLinks) > 0:
		return true
	case !m.takeOver(v, n.Links[0].Dir):
		return false
	}
	l := v.Inode(dir).Links[0]
	rec := v.Record(l)
	if rec.Attempt != nil || rec.Remote == nil || rec.Remote.Kind != providers.KindDir {
		return false
	}
	old := v.Inode(rec.Remote.Ino)
	if old == nil || len(old.Links) > 0 || old.From != "" {
		return false
	}
	m.join(v, l, rec, rec.Remote.Ino)
	v.Edit(dir).Listed = 0 // others may have added to it
	return true
}

// ShownAs is a directory, or the one as which it has just come back.
func (m *Merge) ShownAs(dir table.Ino) table.Ino {
	if to, came := m.back[dir]; came {
		return to
	}
	return dir
}

// part takes a directory from the place that it still has at the remote, because it is to be
// another directory there, one that others made at the target of its rename. A tombstone keeps the
// old place, as the engine's do: its entries are to be moved file by file. It reports whether that
// is done; in a directory that was never looked into the names must be known first.
func (m *Merge) part(v *Tx, l table.Link, x table.Ino) bool {
	n := v.Inode(x)
	if len(n.RemoteLinks) == 0 {
		return true
	}
	if !n.Loaded {
		m.look(query{question: question{ino: x, gen: n.ContentVersion, what: askNames}, l: l})
		return false
	}
	upload.LeaveTombstone(v.sent, x, n)
	upload.HandOverAll(v.sent, x)
	return true
}

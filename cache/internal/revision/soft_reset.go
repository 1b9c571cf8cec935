package revision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// keyRewind is a rewinding that has begun: the head may be at its end, while the table is still at
// its start.
const keyRewind = "pull/rewind"

type rewinding struct {
	From providers.Revision // the head before
	Base providers.Revision // the synced revision of the table afterwards; "": none
	To   providers.Revision // the head afterwards: Base, if there is one
}

// rewind turns the changes of the revisions after base, up to the head, into changes of this
// working copy again: the head goes back to base, or on to a revision that has no base with it,
// and the local tree stays. Until it is done the table is not compared with the head. Content that
// only the old head has is fetched before.
func (f *Follower) rewind(w Waiting, head Moving, r rewinding) error {
	changed, err := f.takenBack(w, head, r)
	if err != nil {
		return err
	}
	note, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := f.o.Host.Update(func(tx *tree.Tx) error { tx.Set(keyRewind, note); return nil }); err != nil {
		return err
	}
	if err := f.o.Tree.Sync(); err != nil {
		return err
	}
	err = f.o.Host.Retry(w, func(ctx context.Context) error { return f.store.Adopt(ctx, r.From, r.To) })
	if err == nil {
		err = f.softReset(r.Base, changed)
	}
	if err != nil { // programs go on with the state of the table
		return fmt.Errorf("adopt: %w", errors.Join(err, f.store.Adopt(w, r.To, r.From)))
	}
	return nil
}

// Resume finishes a rewinding that the last run did not finish.
func (f *Follower) Resume(w Waiting) error {
	head := f.o.Head.Move()
	defer head.Release()
	return f.endRewind(w, head)
}

// endRewind ends a rewinding that was interrupted.
func (f *Follower) endRewind(w Waiting, head Moving) error {
	v := f.o.Tree.Lock()
	note := v.Get(keyRewind)
	f.o.Tree.Unlock()
	if note == nil {
		return nil
	}
	if !f.isStore {
		return fmt.Errorf("a pull was interrupted, and the store keeps no revisions any more: %w", providers.ErrUnsupported)
	}
	var r rewinding
	if err := json.Unmarshal(note, &r); err != nil {
		return fmt.Errorf("the record of a pull is damaged: %w", err)
	}
	at, err := f.store.Head(w)
	switch {
	case err != nil:
		return err
	case at != r.To:
		return f.o.Host.Update(func(tx *tree.Tx) error { tx.Set(keyRewind, nil); return nil })
	}
	changed, err := f.takenBack(w, head, r)
	if err != nil {
		return err
	}
	return f.softReset(r.Base, changed)
}

// takenBack are the differences of the old head from the tree that the table is to have as the
// remote side. Their missing local content is fetched.
func (f *Follower) takenBack(w Waiting, head Moving, r rewinding) ([]providers.Difference, error) {
	changed, err := f.Differences(w, r.Base, r.From)
	if err != nil {
		return nil, err
	}
	at, err := f.store.Head(w)
	if err != nil || at != r.From {
		return changed, err // the names came before the head went away
	}
	return changed, f.fetch(w, head.Held, changed)
}

// fetch makes sure that changed names and their content are local, since their revision will not
// be shown any more.
func (f *Follower) fetch(w Waiting, head Held, changed []providers.Difference) error {
	for _, d := range changed {
		dir, ok, err := f.walk(w, head, d.Locator.Parent())
		if err != nil {
			return err
		}
		if !ok || d.Is == nil || d.Is.Kind == providers.KindDir {
			continue
		}
		v := f.o.Tree.Lock()
		had := v.Record(table.Link{Dir: dir, Name: d.Locator.Name()}).Remote
		f.o.Tree.Unlock()
		if had == nil || had.Ino == 0 {
			continue
		}
		if err := f.o.Names.Fetch(w, had.Ino, d.Is.Kind); err != nil {
			return err
		}
	}
	return nil
}

// walk finds the directory that the remote has at a path, with its names. It lists unknown
// directories on the way.
func (f *Follower) walk(w Waiting, head Held, at providers.Locator) (dir table.Ino, ok bool, err error) {
	dir = table.Root
	for _, name := range append(at.Parts(), "") {
		v := f.o.Tree.Lock()
		n := v.Inode(dir)
		known := n != nil && n.Loaded
		f.o.Tree.Unlock()
		if !known {
			if err := f.o.Names.List(w, head, dir); err != nil {
				return 0, false, err
			}
		}
		if name == "" {
			break
		}
		v = f.o.Tree.Lock()
		b := v.Record(table.Link{Dir: dir, Name: name}).Remote
		f.o.Tree.Unlock()
		if b == nil || b.Kind != providers.KindDir || b.Ino == 0 {
			return 0, false, nil
		}
		dir = b.Ino
	}
	return dir, true, nil
}

// softReset sets the remote side of changed names back to their entries in a revision.
func (f *Follower) softReset(base providers.Revision, changed []providers.Difference) error {
	return f.o.Host.Update(func(tx *tree.Tx) error {
		tx.Set(keyRewind, nil)
		for _, d := range slices.Backward(changed) { // entries before their directory
			if d.Was == nil {
				f.setBack(tx, d.Locator, nil)
			}
		}
		for _, d := range changed {
			if d.Was != nil {
				f.setBack(tx, d.Locator, d.Was)
			}
		}
		SetSynced(tx, base, f.o.Shown)
		return f.backlog.TookBack(tx) // they are changes again, and a push is still owed
	})
}

// setBack sets the remote side of a path back to an old entry; nil: none.
func (f *Follower) setBack(tx *tree.Tx, at providers.Locator, old *providers.Info) {
	dir, ok := tx.DirAtRemotePath(at.Parent())
	if !ok {
		return // a directory above is gone
	}
	l := table.Link{Dir: dir, Name: at.Name()}
	had := tx.Record(l).Remote
	if had != nil && had.Kind == providers.KindDir && (old == nil || old.Kind != providers.KindDir) {
		setBackBelow(tx, had.Ino)
	}
	if old == nil {
		tx.SetRemote(l, nil)
		return
	}
	base := &table.Remote{Kind: old.Kind, Version: old.Version, Digest: old.Digest}
	switch {
	case old.Kind == providers.KindDir && (had == nil || had.Kind != old.Kind):
		n := f.o.Attributes.Inode(old, table.TimeOf(f.o.Now()), Since(tx))
		n.Loaded = true
		base.Ino, base.ContentVersion, base.AttrGen = tx.Alloc(), n.ContentVersion, n.AttrGen
		tx.Put(base.Ino, n)
	case old.Kind == providers.KindDir:
		return
	case had != nil && had.Kind == old.Kind: // another kind is another inode
		base.Ino, base.AttrGen = had.Ino, had.AttrGen
		attrIsOurs(tx, had.Ino, old.Attr)
	}
	tx.SetRemote(l, base)
}

// attrIsOurs makes attributes that differ from the remote's old ones a local change, as the
// content is one already.
func attrIsOurs(tx *tree.Tx, ino table.Ino, had providers.Attr) {
	if n := tx.Inode(ino); n != nil && attrs.TakeMode(n.Mode, had) != n.Mode {
		tx.Edit(ino).AttrGen++
	}
}

// setBackBelow removes the remote side below a directory too: directories without entries are in
// the table, and in no revision.
func setBackBelow(tx *tree.Tx, dir table.Ino) {
	below := map[string]*table.Remote{}
	tx.Names(dir, "", func(name string, rec table.Name) bool {
		if rec.Remote != nil {
			below[name] = rec.Remote
		}
		return true
	})
	for _, name := range slices.Sorted(maps.Keys(below)) {
		if b := below[name]; b.Kind == providers.KindDir {
			setBackBelow(tx, b.Ino)
		}
		tx.SetRemote(table.Link{Dir: dir, Name: name}, nil)
	}
}

package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// keyRewind is a rewinding that has begun: the head may be where it leads to, and
// the table still say what it was.
const keyRewind = "pull/rewind"

type rewinding struct {
	From providers.Revision // the head before
	Base providers.Revision // what the table is to say then; "": nothing
	To   providers.Revision // the head then: Base, if there is one
}

// rewind makes what the revisions after base, up to the head, have changed a
// change of this working copy again: the head goes back to base, or on to a
// revision that has no base with it, and what is here stays. Until it is done
// the table is not compared with the head. Content that only the old head has is
// fetched before.
func (v *Volume) rewind(w *waiting, head revision.Moving, s revisions, r rewinding) error {
	changed, err := v.takenBack(w, head, s, r)
	if err != nil {
		return err
	}
	note, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := v.update(func(v *Tx) error { v.table.Set(keyRewind, note); return nil }); err != nil {
		return err
	}
	if err := v.tree.Sync(); err != nil {
		return err
	}
	adopt := func(ctx context.Context) error { return s.Adopt(ctx, r.From, r.To) }
	if err = v.retry(w, adopt); err == nil {
		err = v.softReset(r.Base, changed)
	}
	if err != nil { // programs go on with what the table says
		return fmt.Errorf("adopt: %w", errors.Join(err, s.Adopt(w, r.To, r.From)))
	}
	return nil
}

// rewindLast ends a rewinding that the last run did not come to end.
func (v *Volume) rewindLast(w *waiting) error {
	head := v.head.Move()
	defer head.Release()
	return v.rewound(w, head)
}

// rewound ends a rewinding that was interrupted.
func (v *Volume) rewound(w *waiting, head revision.Moving) error {
	locked := v.lock()
	note := locked.table.Get(keyRewind)
	locked.unlock()
	if note == nil {
		return nil
	}
	s, ok := v.syncer()
	if !ok {
		return fmt.Errorf("a pull was interrupted, and the backend keeps no revisions any more: %w", providers.ErrUnsupported)
	}
	var r rewinding
	if err := json.Unmarshal(note, &r); err != nil {
		return fmt.Errorf("the record of a pull is damaged: %w", err)
	}
	at, err := s.Head(w)
	switch {
	case err != nil:
		return err
	case at != r.To:
		return v.update(func(v *Tx) error { v.table.Set(keyRewind, nil); return nil })
	}
	changed, err := v.takenBack(w, head, s, r)
	if err != nil {
		return err
	}
	return v.softReset(r.Base, changed)
}

// takenBack is what the head before has differently from the tree that the table
// is to say. What is missing here of the former comes from there.
func (v *Volume) takenBack(w *waiting, head revision.Moving, s revisions, r rewinding) ([]providers.Difference, error) {
	changed, err := v.differences(w, s, r.Base, r.From)
	if err != nil {
		return nil, err
	}
	at, err := s.Head(w)
	if err != nil || at != r.From {
		return changed, err // the names came before the head went away
	}
	return changed, v.bring(w, head.Held, changed)
}

// softReset sets the backend's side of what has changed back to what it was in a
// revision.
func (v *Volume) softReset(base providers.Revision, changed []providers.Difference) error {
	return v.update(func(v *Tx) error {
		v.table.Set(keyRewind, nil)
		for _, d := range slices.Backward(changed) { // what is below goes first
			if d.Was == nil {
				v.setBack(d.Locator, nil)
			}
		}
		for _, d := range changed {
			if d.Was != nil {
				v.setBack(d.Locator, d.Was)
			}
		}
		revision.SetSynced(v.table, base, v.o.shown())
		return v.noneUnpushed() // they are changes again, and still owed
	})
}

// treeOf is all of a revision; "" has nothing.
func treeOf(w *waiting, s revisions, r providers.Revision) (map[providers.Locator]providers.Info, error) {
	all := map[providers.Locator]providers.Info{}
	if r == "" {
		return all, nil
	}
	tree, err := s.At(w, r)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	if tree.Capabilities().RecursiveList {
		return all, collect(w, tree, providers.Locator{}, true, all)
	}
	return all, descend(w, tree, providers.Locator{}, all)
}

func collect(w *waiting, p providers.Provider, at providers.Locator, deep bool, all map[providers.Locator]providers.Info) error {
	for info, err := range providers.All(w, p, at, providers.ListOptions{Recursive: deep}) {
		if err != nil {
			return err
		}
		w.moved()
		all[info.Locator] = info
	}
	return nil
}

func descend(w *waiting, p providers.Provider, at providers.Locator, all map[providers.Locator]providers.Info) error {
	here := map[providers.Locator]providers.Info{}
	if err := collect(w, p, at, false, here); err != nil {
		return err
	}
	maps.Copy(all, here)
	for at, info := range here {
		if info.Kind == providers.KindDir {
			if err := descend(w, p, at, all); err != nil {
				return err
			}
		}
	}
	return nil
}

func differs(a, b providers.Info) bool {
	return a.Kind != b.Kind || a.Kind != providers.KindDir && !a.Version.Matches(b.Version)
}

// bring makes sure that changed names and their content are here, since their
// revision will not be shown any more.
func (v *Volume) bring(w *waiting, head revision.Held, changed []providers.Difference) error {
	for _, d := range changed {
		dir, ok, err := v.walkRemotePath(w, head, d.Locator.Parent())
		if err != nil {
			return err
		}
		if !ok || d.Is == nil || d.Is.Kind == providers.KindDir {
			continue
		}
		locked := v.lock()
		rec, _ := locked.table.Name(dir, d.Locator.Name())
		locked.unlock()
		if rec.Remote == nil || rec.Remote.Ino == 0 {
			continue
		}
		if err := v.bringContent(w, rec.Remote.Ino, d.Is.Kind); err != nil {
			return err
		}
	}
	return nil
}

// bringContent fetches all content of an inode. Its errors are those of [files.Hydrator.Fetch].
func (v *Volume) bringContent(w *waiting, x table.Ino, kind providers.Kind) error {
	if kind == providers.KindSymlink {
		return v.fetchTarget(w, x)
	}
	oi, err := v.acquire(x)
	if err != nil {
		return err
	}
	defer v.opener.Release(oi)
	return oi.Content().FetchAll(w)
}

// walkRemotePath is the directory that the remote has at a path. What is not known on the
// way is listed.
func (v *Volume) walkRemotePath(w *waiting, head revision.Held, at providers.Locator) (dir table.Ino, ok bool, err error) {
	dir = table.Root
	for _, name := range append(at.Parts(), "") {
		locked := v.lock()
		n := locked.table.Inode(dir)
		known := n != nil && n.Loaded
		locked.unlock()
		if !known {
			if err := v.listOnce(w, head, dir); err != nil {
				return 0, false, err
			}
		}
		if name == "" {
			return dir, true, nil
		}
		locked = v.lock()
		rec, _ := locked.table.Name(dir, name)
		locked.unlock()
		if rec.Remote == nil || rec.Remote.Kind != providers.KindDir || rec.Remote.Ino == 0 {
			return 0, false, nil
		}
		dir = rec.Remote.Ino
	}
	return dir, true, nil
}

// setBack says that the backend has under a path what it had before; nil: nothing.
func (v *Tx) setBack(at providers.Locator, old *providers.Info) {
	dir, ok := v.DirAtRemotePath(at.Parent())
	if !ok {
		return // above it nothing is there any more
	}
	l := table.Link{Dir: dir, Name: at.Name()}
	rec, _ := v.table.Name(l.Dir, l.Name)
	if rec.Remote != nil && rec.Remote.Kind == providers.KindDir && (old == nil || old.Kind != providers.KindDir) {
		v.setBackBelow(rec.Remote.Ino)
	}
	if old == nil {
		v.SetRemote(l, nil)
		return
	}
	base := &table.Remote{Kind: old.Kind, Version: old.Version, Digest: old.Digest}
	switch {
	case old.Kind == providers.KindDir && (rec.Remote == nil || rec.Remote.Kind != old.Kind):
		n := v.inodeOf(*old)
		n.Loaded = true
		base = remoteOf(*old, v.table.Alloc(), n)
		v.table.Put(base.Ino, n)
	case old.Kind == providers.KindDir:
		return
	case rec.Remote != nil && rec.Remote.Kind == old.Kind: // another kind is another inode
		base.Ino, base.AttrGen = rec.Remote.Ino, rec.Remote.AttrGen
		v.attrIsOurs(rec.Remote.Ino, old.Attr)
	}
	v.SetRemote(l, base)
}

// attrIsOurs makes attributes that are not what the backend had a change, as the content
// is one already.
func (v *Tx) attrIsOurs(x table.Ino, had providers.Attr) {
	if n := v.table.Inode(x); n != nil && attrs.TakeMode(n.Mode, had) != n.Mode {
		v.table.Edit(x).AttrGen++
	}
}

// setBackBelow says that the backend had nothing below a directory either: directories
// without entries are noted here, and in no revision.
func (v *Tx) setBackBelow(dir table.Ino) {
	below := map[string]*table.Remote{}
	v.table.Names(dir, "", func(name string, rec table.Name) bool {
		if rec.Remote != nil {
			below[name] = rec.Remote
		}
		return true
	})
	for _, name := range slices.Sorted(maps.Keys(below)) {
		if base := below[name]; base.Kind == providers.KindDir {
			v.setBackBelow(base.Ino)
		}
		v.SetRemote(table.Link{Dir: dir, Name: name}, nil)
	}
}

package cache

import (
	"errors"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// What a listing leaves out.
//
// Some stores list entries without what only a look at each one tells
// (Capabilities.ListComplete): attributes, metadata, and whether a file is a
// symbolic link. To ask for each would cost a request per entry. So an inode of
// which that was not told is vague. It looks as a new file would, until its
// content is read, whose answer tells the rest, or until somebody opens it for
// writing: what is written carries all attributes with it, so they are asked for.

// vague reports whether an entry of a listing may be more than it says.
func (v *Volume) vague(info *providers.Info) bool {
	return !v.caps.ListComplete && info.Kind == providers.KindFile && info.Attr.Valid == 0
}

// recall gives an entry of a listing the kind that it is known to have: a
// version is what it was.
func (v *Volume) recall(rec table.Name, info *providers.Info) {
	if b := rec.Base; b != nil && b.Kind == providers.KindSymlink && v.vague(info) && b.Version.Matches(info.Version) {
		info.Kind = b.Kind
	}
}

// told takes what the answer to a read says of an inode beside its content.
// errMoved says that it is no file.
func (v *Volume) told(x table.Ino, at providers.Locator, info providers.Info) error {
	if v.caps.ListComplete {
		return nil
	}
	v.mu.Lock()
	n := v.table.Inode(x)
	learned := n == nil || !n.Vague && isSymlink(n) == (info.Kind == providers.KindSymlink)
	v.mu.Unlock()
	if learned {
		return nil
	}
	return v.update(func() error {
		n := v.table.Inode(x)
		if n == nil {
			return nil
		}
		if isSymlink(n) != (info.Kind == providers.KindSymlink) {
			return errMoved // which has the name looked at
		}
		for _, l := range n.Homes {
			rec, _ := v.table.Name(l.Dir, l.Name)
			if home, ok := v.home(l); ok && home == at && rec.Base != nil && rec.Base.Version.Matches(info.Version) {
				v.define(x, n.AttrGen == rec.Base.AttrGen, info)
			}
		}
		return nil
	})
}

// define says what a vague inode really is like, unless its attributes were
// changed here. mu is held, in an update.
func (v *Volume) define(x table.Ino, ours bool, info providers.Info) {
	n := v.table.Edit(x)
	n.Vague = false
	if !ours {
		return
	}
	fresh := v.inodeOf(info)
	n.Metadata = info.Metadata
	if n.Mode == fresh.Mode && n.UID == fresh.UID && n.GID == fresh.GID && n.Mtime == fresh.Mtime {
		return
	}
	n.Mode, n.UID, n.GID = fresh.Mode, fresh.UID, fresh.GID
	if n.Gen == missingGen(n) || n.State == table.None { // the time of a change of ours is right
		n.Mtime = fresh.Mtime
	}
	n.Ctime = v.now()
	v.later(func() { v.notify.AttrChanged(ino(x)) })
}

// clarify asks what a vague inode is, for whoever is about to write it. A
// backend that does not answer does not keep anybody from it: then it stays what
// it looks like.
func (v *Volume) clarify(op *fs.Op, x table.Ino) error {
	v.mu.Lock()
	n := v.table.Inode(x)
	var at providers.Locator
	ok := n != nil && n.Vague && len(n.Homes) > 0 && v.puller.failing.IsZero()
	if ok {
		at, ok = v.home(n.Homes[0])
	}
	v.mu.Unlock()
	if !ok {
		return nil
	}
	w := v.wait(op, mostWait)
	defer w.close()
	info, err := v.stat(w, at)
	switch {
	case err == nil:
		err = v.told(x, at, *info)
	case isElsewhere(err):
		err = errMoved
	default:
		return nil
	}
	if errors.Is(err, errMoved) {
		_, err = v.moved(w, x, nil, v.whereabouts(x), err)
	}
	return err
}

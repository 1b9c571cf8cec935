package cache

import (
	"context"
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
// Of an entry with Untold, which may be a directory, only the rest is vague.

// vague reports whether an entry of a listing may be more than it says.
func (v *Volume) vague(info *providers.Info) bool {
	return !v.caps.ListComplete && (info.Untold != 0 || info.Kind == providers.KindFile && info.Attr.Valid == 0)
}

// recall gives an entry of a listing the kind that it is known to have: a
// version is what it was.
func (v *Volume) recall(rec table.Name, info *providers.Info) {
	if b := rec.Base; b != nil && b.Kind == providers.KindSymlink && v.vague(info) && b.Version.Matches(info.Version) {
		info.Kind = b.Kind
	}
}

// errOvertaken says that a change of ours of attributes has arrived since the backend
// was asked what they are.
var errOvertaken = errors.New("attributes have changed meanwhile")

// attrsThere is the state of attributes that the backend is known to have of an
// inode at a place; 0: of none.
func (v *Volume) attrsThere(x table.Ino, at providers.Locator) (gen uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.Inode(x)
	if n == nil || !n.Vague {
		return 0
	}
	for _, l := range n.Homes {
		if rec, _ := v.table.Name(l.Dir, l.Name); rec.Base != nil {
			if home, ok := v.home(l); ok && home == at {
				return rec.Base.AttrGen
			}
		}
	}
	return 0
}

// told takes what the answer to a read says of an inode beside its content. asked is
// attrsThere from before: a chmod may have been quicker. Then the answer may be
// older, and is not used (errOvertaken). errMoved says that it is no file.
func (v *Volume) told(x table.Ino, at providers.Locator, asked uint64, info providers.Info) error {
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
			if home, ok := v.home(l); !ok || home != at || rec.Base == nil || !sameState(rec.Base, &info) {
				continue
			}
			if rec.Base.AttrGen != asked {
				return errOvertaken
			}
			v.define(x, n.AttrGen == asked, rec.Base.Gen, info)
		}
		return nil
	})
}

// sameState reports whether an entry is in the state that a name was known to
// have; of a directory that is all that there is to know.
func sameState(b *table.Base, info *providers.Info) bool {
	if b.Kind == providers.KindDir {
		return info.Kind == providers.KindDir
	}
	return b.Version.Matches(info.Version)
}

// define says what a vague inode really is like, with a state of content, but for
// attributes that were changed here. mu is held, in an update.
func (v *Volume) define(x table.Ino, ours bool, gen uint64, info providers.Info) {
	v.takeMetadata(x, gen, info.Metadata)
	n := v.table.Edit(x)
	n.Vague = false
	if !ours {
		if len(sentXattrs(n.Xattrs)) == 0 { // of a vague inode none was changed
			v.takeXattrs(n, &info)
		}
		return
	}
	fresh := v.inodeOf(info)
	if n.Mode == fresh.Mode && n.UID == fresh.UID && n.GID == fresh.GID && n.Mtime == fresh.Mtime && sameXattrs(n, fresh) {
		return
	}
	n.Mode, n.UID, n.GID = fresh.Mode, fresh.UID, fresh.GID
	v.takeXattrs(n, &info)
	if n.Gen == missingGen(n) || n.State == table.None { // the time of a change of ours is right
		n.Mtime = fresh.Mtime
	}
	n.Ctime = v.stamp()
	v.later(func() { v.notifier().AttrChanged(ino(x)) })
}

// reveal asks what a vague inode is before all of its attributes are sent: who
// wrote may not have had an answer.
func (e *engine) reveal(ctx context.Context, x table.Ino) error {
	at, ok := e.v.vagueAt(x)
	if !ok {
		return nil
	}
	asked := e.v.attrsThere(x, at)
	info, err := e.v.p.Stat(ctx, at)
	if err == nil {
		err = e.v.told(x, at, asked, info)
	}
	if errors.Is(err, errOvertaken) {
		return errAgain
	}
	if errors.Is(err, errMoved) || isElsewhere(err) {
		return nil // the condition of what is sent decides
	}
	return err
}

// vagueAt is where the backend has a vague inode.
func (v *Volume) vagueAt(x table.Ino) (at providers.Locator, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := v.table.Inode(x); n != nil && n.Vague && len(n.Homes) > 0 {
		return v.home(n.Homes[0])
	}
	return at, false
}

// clarify asks what a vague inode is, for whoever is about to write it. A
// backend that does not answer does not keep anybody from it: then it stays what
// it looks like.
func (v *Volume) clarify(op *fs.Op, x table.Ino) error {
	at, ok := v.vagueAt(x)
	if !ok || v.isFailing() {
		return nil
	}
	w := v.wait(op, v.lookFor(mostWait))
	defer w.close()
	for {
		was := v.whereabouts(x)
		asked := v.attrsThere(x, at)
		info, err := v.stat(w, at)
		switch {
		case err == nil:
			err = v.told(x, at, asked, *info)
		case isElsewhere(err):
			err = errMoved
		default:
			return nil
		}
		doubtful := errors.Is(err, errOvertaken) || errors.Is(err, errMoved)
		before := at
		switch at, ok = v.vagueAt(x); {
		case ok && (at != before || errors.Is(err, errOvertaken)):
			continue // a change of ours was under way
		case !ok && doubtful:
			return nil // it has told what it is
		case !doubtful:
			return err
		}
		elsewhere, err := v.moved(w, x, nil, was, err)
		at, ok = v.vagueAt(x)
		switch {
		case !elsewhere:
			return err
		case !ok:
			return nil
		}
	}
}

// isFailing reports whether the backend has not answered of late.
func (v *Volume) isFailing() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.puller.failing.IsZero()
}

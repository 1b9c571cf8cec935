package cache

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// What a listing leaves out.
//
// Some stores list entries without what only a look at each one tells
// (Capabilities.ListComplete): attributes, metadata, and whether a file is a
// symbolic link. To ask for each would cost a request per entry. So an inode of
// which that was not told has unknown attributes. It looks as a new file would, until its
// content is read, whose answer tells the rest, or until somebody opens it for
// writing: what is written carries all attributes with it, so they are asked for.
// Of an entry with Untold, which may be a directory, only the rest is unknown.

// keepKnownKind gives an entry of a listing the kind that it is known to have: a
// version is what it was.
func (v *Volume) keepKnownKind(rec table.Name, info *providers.Info) {
	if b := rec.Remote; b != nil && b.Kind == providers.KindSymlink && v.attrs().Unknown(info) && b.Version.Matches(info.Version) {
		info.Kind = b.Kind
	}
}

// errOvertaken says that a change of ours of attributes has arrived since the backend
// was asked what they are.
var errOvertaken = errors.New("attributes have changed meanwhile")

// remoteAttrGen is the state of attributes that the backend is known to have of an
// inode at a place; 0: of none.
func (v *Volume) remoteAttrGen(x table.Ino, at providers.Locator) (gen uint64) {
	locked := v.lock()
	defer locked.unlock()
	n := locked.table.Inode(x)
	if n == nil || !n.AttrsUnknown {
		return 0
	}
	for _, l := range n.RemoteLinks {
		if rec, _ := locked.table.Name(l.Dir, l.Name); rec.Remote != nil {
			if home, ok := locked.RemotePath(l); ok && home == at {
				return rec.Remote.AttrGen
			}
		}
	}
	return 0
}

// attrsFetched takes what the answer to a read says of an inode beside its content. asked is
// attrsThere from before: a chmod may have been quicker. Then the answer may be
// older, and is not used (errOvertaken). files.ErrVersionGone says that it is no file.
func (v *Volume) attrsFetched(x table.Ino, at providers.Locator, asked uint64, info providers.Info) error {
	if v.caps.ListComplete {
		return nil
	}
	locked := v.lock()
	n := locked.table.Inode(x)
	learned := n == nil || !n.AttrsUnknown && n.IsSymlink() == (info.Kind == providers.KindSymlink)
	locked.unlock()
	if learned {
		return nil
	}
	return v.update(func(v *Tx) error {
		n := v.table.Inode(x)
		if n == nil {
			return nil
		}
		if n.IsSymlink() != (info.Kind == providers.KindSymlink) {
			return files.ErrVersionGone // which has the name looked at
		}
		for _, l := range n.RemoteLinks {
			rec, _ := v.table.Name(l.Dir, l.Name)
			if home, ok := v.RemotePath(l); !ok || home != at || rec.Remote == nil || !sameState(rec.Remote, &info) {
				continue
			}
			if rec.Remote.AttrGen != asked {
				return errOvertaken
			}
			v.setFetchedAttrs(x, n.AttrGen == asked, rec.Remote.ContentVersion, info)
		}
		return nil
	})
}

// sameState reports whether an entry is in the state that a name was known to
// have; of a directory that is all that there is to know.
func sameState(b *table.Remote, info *providers.Info) bool {
	if b.Kind == providers.KindDir {
		return info.Kind == providers.KindDir
	}
	return b.Version.Matches(info.Version)
}

// setFetchedAttrs says what an inode with unknown attributes really is like, with a
// state of content, but for attributes that were changed here.
func (v *Tx) setFetchedAttrs(x table.Ino, ours bool, gen uint64, info providers.Info) {
	v.exec.TakeMetadata(v.Tx, x, gen, info.Metadata)
	n := v.table.Edit(x)
	n.AttrsUnknown = false
	if !ours {
		if len(attrs.Sent(n.Xattrs)) == 0 { // of an inode with unknown attributes none was changed
			v.attrs().TakeXattrs(n, &info)
		}
		return
	}
	fresh := v.local.InodeOf(info)
	if n.Mode == fresh.Mode && n.UID == fresh.UID && n.GID == fresh.GID && n.Mtime == fresh.Mtime && attrs.SameSent(n, fresh) {
		return
	}
	n.Mode, n.UID, n.GID = fresh.Mode, fresh.UID, fresh.GID
	v.attrs().TakeXattrs(n, &info)
	if n.ContentVersion == tree.MissingVersion(n) || n.State == table.None { // the time of a change of ours is right
		n.Mtime = fresh.Mtime
	}
	n.Ctime = v.local.Stamp()
	v.local.TellAttr(x)
}

// FetchAttrs implements upload.Names. It asks what an inode with unknown attributes is before
// all of its attributes are sent: who wrote may not have had an answer.
func (u uploading) FetchAttrs(ctx context.Context, x table.Ino) error {
	at, ok := u.v.attrsUnknownAt(x)
	if !ok {
		return nil
	}
	asked := u.v.remoteAttrGen(x, at)
	info, err := u.v.p.Stat(ctx, at)
	if err == nil {
		err = u.v.attrsFetched(x, at, asked, info)
	}
	if errors.Is(err, errOvertaken) {
		return upload.ErrAgain
	}
	if errors.Is(err, files.ErrVersionGone) || files.IsElsewhere(err) {
		return nil // the condition of what is sent decides
	}
	return err
}

// attrsUnknownAt is where the backend has an inode with unknown attributes.
func (v *Volume) attrsUnknownAt(x table.Ino) (at providers.Locator, ok bool) {
	locked := v.lock()
	defer locked.unlock()
	if n := locked.table.Inode(x); n != nil && n.AttrsUnknown && len(n.RemoteLinks) > 0 {
		return locked.RemotePath(n.RemoteLinks[0])
	}
	return at, false
}

// fetchAttrsToWrite asks what an inode with unknown attributes is, for whoever is about to write it. A
// backend that does not answer does not keep anybody from it: then it stays what
// it looks like.
func (v *Volume) fetchAttrsToWrite(op *fs.Op, x table.Ino) error {
	at, ok := v.attrsUnknownAt(x)
	if !ok || v.belief.IsFailing() {
		return nil
	}
	w := v.wait(op, v.lookFor(listing.MostWait))
	defer w.close()
	for {
		was := v.hydrator.Whereabouts(x)
		asked := v.remoteAttrGen(x, at)
		info, err := v.merger.Stat(w, at)
		switch {
		case err == nil:
			err = v.attrsFetched(x, at, asked, *info)
		case files.IsElsewhere(err):
			err = files.ErrVersionGone
		default:
			return nil
		}
		doubtful := errors.Is(err, errOvertaken) || errors.Is(err, files.ErrVersionGone)
		before := at
		switch at, ok = v.attrsUnknownAt(x); {
		case ok && (at != before || errors.Is(err, errOvertaken)):
			continue // a change of ours was under way
		case !ok && doubtful:
			return nil // it has told what it is
		case !doubtful:
			return err
		}
		err = v.hydrator.FindVersion(w, &files.GoneError{Ino: x, Was: was, Cause: err})
		switch at, ok = v.attrsUnknownAt(x); {
		case err != nil:
			return v.staleOnce(err)
		case !ok:
			return nil
		}
	}
}

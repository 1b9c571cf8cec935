package merge

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// Facts that a listing leaves out.
//
// Some stores list entries without the facts that only a look at each one tells
// (Capabilities.ListComplete): attributes, metadata, and whether a file is a symbolic link. To ask
// for each would cost a request per entry. So the inode of such an entry has unknown attributes.
// It looks like a new file, until its content is read, whose answer tells the rest, or until a
// program opens it for writing: written content carries all attributes with it, so they are asked
// for. Of an entry with Untold, which may be a directory, only the rest is unknown.

// KeepKnownKind gives an entry of a listing its known kind: the kind of a version never changes.
func (v *Merger) KeepKnownKind(rec table.Name, info *providers.Info) {
	if b := rec.Remote; b != nil && b.Kind == providers.KindSymlink && v.o.Side.Attributes.Unknown(info) && b.Version.Matches(info.Version) {
		info.Kind = b.Kind
	}
}

// ErrOvertaken says that a change of attributes of ours has arrived since the remote was asked for
// them.
var ErrOvertaken = errors.New("attributes have changed meanwhile")

// AttrGen is the state of the attributes of an inode that the remote is known to have at a place,
// or 0.
func (v *Merger) AttrGen(x table.Ino, at providers.Locator) (gen uint64) {
	locked := v.lock()
	defer locked.unlock()
	n := locked.Inode(x)
	if n == nil || !n.AttrsUnknown {
		return 0
	}
	for _, l := range n.RemoteLinks {
		if rec := locked.Record(l); rec.Remote != nil {
			if home, ok := locked.RemotePath(l); ok && home == at {
				return rec.Remote.AttrGen
			}
		}
	}
	return 0
}

// AttrsFetched takes over the attributes of an inode that came with the answer to a read. asked is
// AttrGen from before the read: a chmod may have been quicker. Then the answer may be older, and
// is not used (ErrOvertaken). files.ErrVersionGone: only one of the two is a symbolic link.
func (v *Merger) AttrsFetched(x table.Ino, at providers.Locator, asked uint64, info providers.Info) error {
	if v.o.Capabilities.ListComplete {
		return nil
	}
	locked := v.lock()
	n := locked.Inode(x)
	learned := n == nil || !n.AttrsUnknown && n.IsSymlink() == (info.Kind == providers.KindSymlink)
	locked.unlock()
	if learned {
		return nil
	}
	return v.update(func(v *Tx) error {
		n := v.Inode(x)
		if n == nil {
			return nil
		}
		if n.IsSymlink() != (info.Kind == providers.KindSymlink) {
			return files.ErrVersionGone // the caller then looks at the name
		}
		for _, l := range n.RemoteLinks {
			rec := v.Record(l)
			if home, ok := v.RemotePath(l); !ok || home != at || rec.Remote == nil || !sameState(rec.Remote, &info) {
				continue
			}
			if rec.Remote.AttrGen != asked {
				return ErrOvertaken
			}
			v.setFetchedAttrs(x, n.AttrGen == asked, rec.Remote.ContentVersion, info)
		}
		return nil
	})
}

// sameState reports whether an entry is in the known state of a name; a directory has no state but
// its kind.
func sameState(b *table.Remote, info *providers.Info) bool {
	if b.Kind == providers.KindDir {
		return info.Kind == providers.KindDir
	}
	return b.Version.Matches(info.Version)
}

// setFetchedAttrs gives an inode with unknown attributes its real ones, with a state of content,
// but for attributes that were changed locally.
func (v *Tx) setFetchedAttrs(x table.Ino, ours bool, gen uint64, info providers.Info) {
	v.o.Executor.TakeMetadata(v.Tx.Tx, x, gen, info.Metadata)
	n := v.Edit(x)
	n.AttrsUnknown = false
	if !ours {
		if len(attrs.Sent(n.Xattrs)) == 0 { // none was set locally
			v.o.Side.Attributes.TakeXattrs(n, &info)
		}
		return
	}
	fresh := v.InodeOf(info)
	if n.Mode == fresh.Mode && n.UID == fresh.UID && n.GID == fresh.GID && n.Mtime == fresh.Mtime && attrs.SameSent(n, fresh) {
		return
	}
	n.Mode, n.UID, n.GID = fresh.Mode, fresh.UID, fresh.GID
	v.o.Side.Attributes.TakeXattrs(n, &info)
	if n.ContentVersion == tree.MissingVersion(n) || n.State == table.None { // else a local change set it
		n.Mtime = fresh.Mtime
	}
	n.Ctime = v.Stamp()
	v.TellAttr(x)
}

// FetchAttrs implements upload.Names: it asks for the unknown attributes of an inode before all of
// them are sent: the open for writing may have had no answer.
func (v *Merger) FetchAttrs(ctx context.Context, x table.Ino) error {
	at, ok := v.attrsUnknownAt(x)
	if !ok {
		return nil
	}
	asked := v.AttrGen(x, at)
	info, err := v.o.Provider.Stat(ctx, at)
	if err == nil {
		err = v.AttrsFetched(x, at, asked, info)
	}
	if errors.Is(err, ErrOvertaken) {
		return upload.ErrAgain
	}
	if errors.Is(err, files.ErrVersionGone) || files.IsElsewhere(err) {
		return nil // the condition of what is sent decides
	}
	return err
}

// attrsUnknownAt is the remote place of an inode with unknown attributes.
func (v *Merger) attrsUnknownAt(x table.Ino) (at providers.Locator, ok bool) {
	locked := v.lock()
	defer locked.unlock()
	if n := locked.Inode(x); n != nil && n.AttrsUnknown && len(n.RemoteLinks) > 0 {
		return locked.RemotePath(n.RemoteLinks[0])
	}
	return at, false
}

// HasUnknownAttrs reports whether FetchAttrsToWrite would ask the remote.
func (v *Merger) HasUnknownAttrs(x table.Ino) bool {
	_, ok := v.attrsUnknownAt(x)
	return ok
}

// FetchAttrsToWrite asks for the unknown attributes of an inode that a program is about to write.
// A remote that does not answer does not keep the program from it: the inode then stays as it
// looks.
func (v *Merger) FetchAttrsToWrite(ctx context.Context, x table.Ino) error {
	for at, ok := v.attrsUnknownAt(x); ok; {
		was := v.o.Hydrator.Whereabouts(x)
		asked := v.AttrGen(x, at)
		info, err := v.Stat(ctx, at)
		switch {
		case err == nil:
			err = v.AttrsFetched(x, at, asked, *info)
		case files.IsElsewhere(err):
			err = files.ErrVersionGone
		default:
			return nil
		}
		overtaken, before := errors.Is(err, ErrOvertaken), at
		doubtful := overtaken || errors.Is(err, files.ErrVersionGone)
		switch at, ok = v.attrsUnknownAt(x); {
		case ok && (at != before || overtaken):
			continue // a change of ours was under way
		case !ok && doubtful:
			return nil // its attributes are known by now
		case !doubtful:
			return err
		}
		if err := v.o.Hydrator.FindVersion(ctx, &files.GoneError{Ino: x, Was: was, Cause: err}); err != nil {
			return err
		}
		at, ok = v.attrsUnknownAt(x)
	}
	return nil
}

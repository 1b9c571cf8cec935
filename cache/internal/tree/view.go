package tree

import (
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// Record is the table's record of a name; zero: none.
func (v *View) Record(l table.Link) table.Name {
	rec, _ := v.Name(l.Dir, l.Name)
	return rec
}

// IsDirty reports whether the two sides of a name differ.
func (v *View) IsDirty(l table.Link) bool { return v.Record(l).Seq != 0 }

// KindOf is the kind of a name's inode, or of its remote side if it has no local one.
func (v *View) KindOf(rec table.Name) providers.Kind {
	switch n := v.Inode(rec.Ino); {
	case n == nil && rec.Remote != nil:
		return rec.Remote.Kind
	case n != nil && n.IsDir():
		return providers.KindDir
	}
	return providers.KindFile
}

// LocalPathOf is one local path of an inode; false when it has no name.
func (v *View) LocalPathOf(ino table.Ino) (providers.Locator, bool) {
	if ino == table.Root {
		return providers.Locator{}, true
	}
	n := v.Inode(ino)
	if n == nil || len(n.Links) == 0 {
		return providers.Locator{}, false
	}
	return v.LocalPath(n.Links[0])
}

// LocalPath is where a name is in the local tree; false when it is below a directory that
// was removed.
func (v *View) LocalPath(l table.Link) (providers.Locator, bool) {
	return v.climb(l, func(n *table.Inode) []table.Link { return n.Links })
}

// PathFor is where a person would look for a name: its local path, or, below a directory
// that was removed, its remote one.
func (v *View) PathFor(l table.Link) string {
	if at, ok := v.LocalPath(l); ok {
		return at.String()
	}
	if at, ok := v.RemotePath(l); ok {
		return at.String()
	}
	return l.Name
}

// RemotePath is where a name is at the remote; false when the remote does not have the
// directory.
func (v *View) RemotePath(l table.Link) (providers.Locator, bool) {
	return v.climb(l, func(n *table.Inode) []table.Link {
		if _, taker := Partners(n); taker != 0 && v.Inode(taker) != nil {
			return v.Inode(taker).RemoteLinks // which is at its place
		}
		return n.RemoteLinks
	})
}

// RemotePathOf is where the remote has a directory; false when it does not.
func (v *View) RemotePathOf(dir table.Ino) (providers.Locator, bool) {
	if dir == table.Root {
		return providers.Locator{}, true
	}
	n := v.Inode(dir)
	if n == nil || len(n.RemoteLinks) == 0 {
		return providers.Locator{}, false
	}
	return v.RemotePath(n.RemoteLinks[0])
}

// DirAtRemotePath is the directory that the remote is known to have at a path.
func (v *View) DirAtRemotePath(at providers.Locator) (dir table.Ino, ok bool) {
	dir = table.Root
	for _, name := range at.Parts() {
		rec := v.Record(table.Link{Dir: dir, Name: name})
		if rec.Remote == nil || rec.Remote.Kind != providers.KindDir || rec.Remote.Ino == 0 {
			return 0, false
		}
		dir = rec.Remote.Ino
	}
	return dir, v.Inode(dir) != nil
}

// climb goes from a name to the root, by the names that up gives.
func (v *View) climb(l table.Link, up func(*table.Inode) []table.Link) (providers.Locator, bool) {
	names := []string{l.Name}
	for l.Dir != table.Root {
		n := v.Inode(l.Dir)
		if n == nil || len(up(n)) == 0 {
			return providers.Locator{}, false
		}
		l = up(n)[0]
		names = append(names, l.Name)
	}
	slices.Reverse(names)
	at, err := providers.ParseLocator(strings.Join(names, "/"))
	return at, err == nil
}

// Above are the directories from the root to that of a name, and the names that lead to
// it; false when it is below a directory that was removed.
func (v *View) Above(l table.Link) (dirs []table.Ino, names []string, ok bool) {
	for {
		dirs, names = append(dirs, l.Dir), append(names, l.Name)
		if l.Dir == table.Root {
			break
		}
		n := v.Inode(l.Dir)
		if n == nil || len(n.Links) == 0 {
			return nil, nil, false
		}
		l = n.Links[0]
	}
	slices.Reverse(dirs)
	slices.Reverse(names)
	return dirs, names, true
}

// IsBelow reports whether dir is top, or lies below it locally.
func (v *View) IsBelow(dir, top table.Ino) bool {
	for dir != top && dir != table.Root {
		n := v.Inode(dir)
		if n == nil || len(n.Links) == 0 {
			return false
		}
		dir = n.Links[0].Dir
	}
	return dir == top
}

// IsNowhere reports whether a directory is neither local nor remote.
func (v *View) IsNowhere(dir table.Ino) bool {
	n := v.Inode(dir)
	return n == nil || dir != table.Root && len(n.Links)+len(n.RemoteLinks) == 0 && n.From == ""
}

// HasRemoteNames reports whether the remote is known to have an entry in a directory.
func (v *View) HasRemoteNames(dir table.Ino) (found bool) {
	v.Names(dir, "", func(_ string, rec table.Name) bool {
		found = rec.Remote != nil
		return !found
	})
	return found
}

// KnownRemoteDirs are the directories of the remote whose names are known, from the root
// down. One may be known below one that is not: it was made or moved there locally, or a
// name was put beside it.
func (v *View) KnownRemoteDirs() (known []table.Ino) {
	for all, i := []table.Ino{table.Root}, 0; i < len(all); i++ {
		if v.Inode(all[i]).Loaded {
			known = append(known, all[i])
		}
		v.Names(all[i], "", func(_ string, rec table.Name) bool {
			if b := rec.Remote; b != nil && b.Kind == providers.KindDir && v.Inode(b.Ino) != nil {
				all = append(all, b.Ino)
			}
			return true
		})
	}
	return known
}

// StaysLocal reports whether no name of an inode goes to the remote.
func (v *View) StaysLocal(n *table.Inode) bool {
	for _, l := range n.Links {
		if !v.Record(l).Local {
			return false
		}
	}
	return len(n.Links) > 0
}

// IsShared reports whether a directory is the remote's, or may be: all names below a
// local-only directory are local-only.
func (v *View) IsShared(dir table.Ino) bool {
	n := v.Inode(dir)
	if n == nil || len(n.Links) == 0 {
		return dir == table.Root
	}
	return !v.Record(n.Links[0]).Local
}

// IsGone reports whether no local name leads to an inode any more: then its content may be
// gone too.
func (v *View) IsGone(ino table.Ino) bool {
	n := v.Inode(ino)
	return (n == nil || len(n.Links) == 0) && v.Err() == nil
}

// OriginOf is the remote version of which an inode has the content.
func (v *View) OriginOf(ino table.Ino) (table.Origin, bool) {
	n := v.Inode(ino)
	if n == nil {
		return table.Origin{}, false
	}
	for _, l := range n.RemoteLinks {
		if b := v.Record(l).Remote; b != nil && b.Ino == ino && b.ContentVersion == n.ContentVersion && b.Kind == providers.KindFile {
			return table.Origin{Version: b.Version, Digest: b.Digest, ContentVersion: b.ContentVersion}, true
		}
	}
	return table.Origin{}, false
}

// OriginAt is where the remote has the content of an inode's missing blocks. A remote link
// counts when it holds the same state as the local side: its version may be newer than the
// one that was noted, if only attributes changed.
func (v *View) OriginAt(ino table.Ino) (at providers.Locator, version providers.Version, ok bool) {
	n := v.Inode(ino)
	if n == nil {
		return at, version, false
	}
	missing := MissingVersion(n)
	for _, l := range n.RemoteLinks {
		b := v.Record(l).Remote
		if b == nil || b.Ino != ino || b.ContentVersion != missing {
			continue
		}
		if at, ok = v.RemotePath(l); ok {
			return at, b.Version, true
		}
	}
	return at, version, false
}

// RemoteOf is the remote side of a name whose remote content and attributes equal the
// inode's local ones.
func RemoteOf(info providers.Info, ino table.Ino, n *table.Inode) *table.Remote {
	return &table.Remote{Ino: ino, Kind: info.Kind, Version: info.Version, Digest: info.Digest, ContentVersion: n.ContentVersion, AttrGen: n.AttrGen}
}

// MissingVersion is the content version of an inode's missing blocks.
func MissingVersion(n *table.Inode) uint64 {
	if n.State == table.None {
		return n.ContentVersion
	}
	return n.Origin.ContentVersion
}

// Attempted reports whether a change of a name, or the move of its remote entry, is under
// way; but for the moves of names that are known to come too late.
func (v *View) Attempted(rec table.Name, late map[table.Link]bool) bool {
	if rec.Attempt != nil && rec.Seq != 0 {
		return true
	}
	if rec.Remote == nil || rec.Remote.Ino == rec.Ino {
		return false
	}
	n := v.Inode(rec.Remote.Ino)
	if n == nil {
		return false
	}
	if n.From != "" {
		return true
	}
	for _, other := range n.Links {
		if to := v.Record(other); to.Attempt != nil && to.Seq != 0 && !late[other] {
			return true
		}
	}
	return false
}

// Moving reports whether a directory, or one above it, may be at another remote path than
// is known: then it is unknown whether entries listed under the old path are its own.
func (v *View) Moving(dir table.Ino) bool {
	for dir != table.Root {
		n := v.Inode(dir)
		if n == nil || len(n.RemoteLinks) == 0 {
			return false
		}
		if n.From != "" {
			return true // names are handed over to it, or from it
		}
		if v.Attempted(v.Record(n.RemoteLinks[0]), nil) {
			return true
		}
		dir = n.RemoteLinks[0].Dir
	}
	return false
}

// Partners reads Inode.From of a directory that hands its names over to another, or takes
// them from one: the other, as giver or as taker; 0: there is none.
func Partners(n *table.Inode) (giver, taker table.Ino) {
	if n == nil || n.From == "" {
		return 0, 0
	}
	ino, _ := strconv.ParseUint(n.From[1:], 10, 64)
	if n.From[0] == '<' {
		return ino, 0
	}
	return 0, ino
}

// SetName stores the record of a name, and says which inode it was taken from; 0: none.
// That inode may have no dirty name left.
func (t *Tx) SetName(l table.Link, rec table.Name) (from table.Ino) {
	if old := t.Record(l); old.Ino != 0 && old.Ino != rec.Ino {
		from = old.Ino
		t.unnamed = append(t.unnamed, from)
	}
	t.writer.SetName(l.Dir, l.Name, rec)
	return from
}

// CheckName refuses strings that are not a single file name. The kernel does not send such
// names, but other programs do, and they would lead elsewhere.
func CheckName(name string) error {
	switch {
	case len(name) > providers.MaxName:
		return syscall.ENAMETOOLONG
	case name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00"):
		return syscall.EINVAL
	}
	return nil
}

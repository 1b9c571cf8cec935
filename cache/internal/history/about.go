package history

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// About begins a record about an inode under a name.
func About(change, why string, l table.Link, ino table.Ino, n *table.Inode) *Record {
	r := &Record{Change: change, Why: why, Dir: l.Dir, Name: l.Name, Ino: ino,
		Mode: n.Mode, Gen: n.ContentVersion, Birth: n.Birth, Base: VersionText(n.Origin.Version)}
	if n.IsRegular() {
		r.Size = n.Size
	}
	if n.IsSymlink() {
		r.Target = n.Target
	}
	return r
}

// IsOfHere reports whether an inode was made locally, and never was at the remote. An inode that
// came from the remote may have lost its remote links in the same transaction.
func IsOfHere(n *table.Inode) bool {
	return !n.Pulled && len(n.RemoteLinks) == 0 && n.Origin.Version.IsZero()
}

// VersionText is the form of a remote version in a record; "": none.
func VersionText(ver providers.Version) string {
	switch {
	case ver.IsZero():
		return ""
	case ver.ETag != "":
		return ver.ETag
	}
	return fmt.Sprintf("%d-%d", ver.Modified, ver.Size)
}

// NoteCommit adds a revision to the records of a name that are older than until, as the one that
// has their content.
func NoteCommit(tx Writer, l table.Link, until uint64, revision providers.Revision) {
	for id := HeadOf(tx, l).ID; id != 0; {
		r := Get(tx, id)
		if r == nil || r.Commit != "" || r.Why == WhyPulled {
			return
		}
		if id < until {
			r.Commit = string(revision)
			Put(tx, id, r)
		}
		id = r.Back
	}
}

// Skipped is a request that was not carried out.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	// Was is the path of a file that had another name at that time; to remove the file would not
	// bring it back.
	Was string `json:"was,omitempty"`
}

// Below reports whether a path is another or below it; "" is the root.
func Below(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && path != "" && (rest == "" || rest[0] == '/' || dir == "")
}

// Tree is the part of the tree that records are compared with.
type Tree interface {
	Inode(ino table.Ino) *table.Inode
	LocalPath(l table.Link) (providers.Locator, bool)
}

// IsCurrent reports whether a file still is as the record left it.
func (r *Record) IsCurrent(v Tree) bool {
	n := v.Inode(r.Ino)
	return r.Change != Ended && r.Mode&syscall.S_IFMT == syscall.S_IFREG &&
		n != nil && len(n.Links) > 0 && n.ContentVersion == r.Gen && !n.Writing
}

// Where is the path of the file of a record, or its last one.
func (r *Record) Where(v Tree) string {
	if n := v.Inode(r.Ino); n != nil && len(n.Links) > 0 && (r.Change != Ended || r.Stays) {
		if at, ok := v.LocalPath(n.Links[0]); ok {
			return at.String()
		}
	}
	if at, ok := v.LocalPath(r.Link()); ok {
		return at.String()
	}
	return r.Path
}

package offline

import (
	"slices"
	"time"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/recovery"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// Unsaved is one change that the remote does not have.
type Unsaved struct {
	Path   string    `json:"path"`
	Change string    `json:"change"` // created, changed, renamed, deleted, attributes, unknown
	Kind   string    `json:"kind"`   // file, dir, symlink, other
	Size   int64     `json:"size"`
	Time   time.Time `json:"time"`
	// Suspect content may have lost bytes when the power was lost.
	Suspect  bool   `json:"suspect,omitempty"`
	Conflict bool   `json:"conflict,omitempty"`
	Reason   string `json:"reason,omitempty"` // why it was held back

	ino    table.Ino
	target string // of a symbolic link
}

// UnsavedAt describes the difference under a name.
func UnsavedAt(v *tree.View, l table.Link) Unsaved {
	rec := v.Record(l)
	u := Unsaved{Path: v.PathFor(l), Change: "deleted", Kind: "file", ino: rec.Ino}
	if rec.Held != nil {
		u.Conflict, u.Reason = rec.Held.Conflict, rec.Held.Reason
	}
	n := v.Inode(rec.Ino)
	if n == nil {
		return u
	}
	u.Size, u.Time, u.Suspect, u.target = n.Size, n.Mtime.Time(), n.Suspect, n.Target
	switch {
	case n.IsDir():
		u.Kind, u.Size = "dir", 0
	case n.IsSymlink():
		u.Kind = "symlink"
	case !n.IsRegular():
		u.Kind = "other"
	}
	u.Change = changeOf(rec, n)
	return u
}

// changeOf names the kind of the difference.
func changeOf(rec table.Name, n *table.Inode) string {
	elsewhere := len(n.RemoteLinks) > 0
	switch {
	case rec.Remote == nil && elsewhere:
		return "renamed"
	case rec.Remote == nil:
		return "created"
	case rec.Remote.Ino != rec.Ino && elsewhere:
		return "renamed"
	case rec.Remote.Ino != rec.Ino || rec.Remote.ContentVersion != n.ContentVersion:
		return "changed"
	case rec.Remote.AttrGen != n.AttrGen:
		return "attributes"
	}
	return "unknown"
}

// eachUnsaved visits the changes that the remote lacks: the dirty names, and files that were
// open for writing when the last session ended.
func eachUnsaved(v *tree.View, visit func(Unsaved)) {
	power := recovery.PowerLost(v)
	listed := map[table.Ino]bool{}
	v.Dirty(0, func(_ uint64, l table.Link) bool {
		u := UnsavedAt(v, l)
		if n := v.Inode(u.ino); n != nil && n.IsRegular() {
			listed[u.ino] = true
			u.Suspect = u.Suspect || power && (n.Writing || n.Synced != n.ContentVersion && u.Change != "renamed")
		}
		visit(u)
		return true
	})
	for _, ino := range files.DirtyIntents(v) {
		n := v.Inode(ino)
		if n == nil || len(n.Links) == 0 || listed[ino] {
			continue
		}
		u := UnsavedAt(v, n.Links[0])
		u.Change, u.Suspect = "changed", u.Suspect || power
		visit(u)
	}
}

// Accept marks suspect content as good, see cache.Volume.Accept. It returns the paths of that
// content.
func Accept(tx *tree.Tx, paths ...string) (accepted []string) {
	tx.Dirty(0, func(_ uint64, l table.Link) bool {
		rec := tx.Record(l)
		at, ok := tx.LocalPath(l)
		n := tx.Inode(rec.Ino)
		if n == nil || !n.Suspect || !ok || !isChosen(at.String(), paths) {
			return true
		}
		tx.ContentChanged(rec.Ino, n.Size, n.Mtime) // an upload under way has the old version
		tx.Edit(rec.Ino).Suspect = false
		rec.Held = nil
		tx.SetName(l, rec)
		tx.Touch(l)
		accepted = append(accepted, at.String())
		return true
	})
	return accepted
}

func isChosen(path string, paths []string) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool { return history.Below(path, p) })
}

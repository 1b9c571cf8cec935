// Package describe serves the state of an inode in wsmount's own extended attributes, which
// programs can read. It knows the tree, and why names are held back.
package describe

import (
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
)

// A Describer describes the inodes of a working copy.
type Describer struct {
	Tree     *tree.Tree
	Provider string         // name of the remote's kind
	Rules    revision.Rules // decide which names of a revision the tree has
	Holds    Holds
}

// Holds know why names are not sent.
type Holds interface {
	Failure(v *tree.View, l table.Link) (err error, final bool)
	Of(v *tree.View, l table.Link) pending.HeldBack
}

var _ Holds = (*upload.Holds)(nil)

// Describe implements fs.Describer: "provider", "state", "version", "etag", "revision" and
// "reason" of an inode. The state is "clean", "remote" (clean, the content not all local),
// "unsaved", "held" and "conflict" (unsaved, reason says why it stays so), "suspect" (see
// cache.Recover) or "local" (never sent).
func (d *Describer) Describe(_ *fs.Op, ino fs.Ino, what string) (text string, ok bool) {
	v := d.Tree.Lock()
	defer d.Tree.Unlock()
	n := v.Inode(table.Ino(ino))
	if n == nil {
		return "", false
	}
	switch what {
	case "provider":
		return d.Provider, true
	case "state":
		text, _ = d.state(v, n)
	case "reason":
		_, text = d.state(v, n)
	case "revision":
		text = string(revision.StandsOn(v, d.Rules))
	default:
		text = remote(v, table.Ino(ino), n, what)
	}
	return text, text != ""
}

// remote is the "version" or "etag" of the remote content that an inode is based on.
func remote(v *tree.View, ino table.Ino, n *table.Inode, what string) string {
	for _, l := range n.RemoteLinks {
		r := v.Record(l).Remote
		if r == nil || r.Ino != ino || r.Version.IsZero() {
			continue
		}
		switch what {
		case "etag":
			return r.Version.ETag
		case "version":
			return fmt.Sprintf("%s;%d;%d", r.Version.ETag, r.Version.Modified, r.Version.Size)
		}
	}
	return ""
}

// state gives the state and the reason. Of several names the worst counts.
func (d *Describer) state(v *tree.View, n *table.Inode) (state, reason string) {
	local := len(n.Links) > 0
	dirty := false
	for _, l := range n.Links {
		rec := v.Record(l)
		local = local && rec.Local
		if rec.Seq == 0 {
			continue
		}
		dirty = true
		if err, final := d.Holds.Failure(v, l); err != nil || rec.Held != nil {
			h := d.Holds.Of(v, l)
			switch {
			case h.Conflict:
				return "conflict", h.Reason
			case final || rec.Held != nil:
				state = "held"
			}
			reason = h.Reason
		}
	}
	switch {
	case n.Suspect:
		return "suspect", upload.ErrSuspect.Error()
	case local:
		return "local", "excluded, or of a kind that the remote cannot have"
	case state != "":
		return state, reason
	case dirty || n.Writing:
		return "unsaved", reason
	case n.IsRegular() && n.State != table.Whole && n.Size > 0:
		return "remote", ""
	}
	return "clean", ""
}

package cache

import (
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
)

// Describe implements fs.Describer: "provider", "state", "version", "etag",
// "revision" and "reason" of an inode. The state is "clean", "remote" (clean,
// the content not all here), "unsaved", "held" and "conflict" (unsaved, reason
// says why it stays so), "suspect" (see Recover) or "local" (never sent).
func (v *Volume) Describe(_ *fs.Op, ino fs.Ino, what string) (string, bool) {
	locked := v.lock()
	defer locked.unlock()
	n := locked.table.Inode(table.Ino(ino))
	if n == nil {
		return "", false
	}
	switch what {
	case "provider":
		return v.o.Provider, true
	case "state":
		state, _ := locked.describe(n)
		return state, true
	case "reason":
		_, reason := locked.describe(n)
		return reason, reason != ""
	case "revision":
		r := revision.StandsOn(locked.table, v.o.shown())
		return string(r), r != ""
	}
	return locked.describeRemote(table.Ino(ino), n, what)
}

func (v *View) describeRemote(ino table.Ino, n *table.Inode, what string) (string, bool) {
	for _, l := range n.RemoteLinks {
		rec, _ := v.table.Name(l.Dir, l.Name)
		if rec.Remote == nil || rec.Remote.Ino != ino || rec.Remote.Version.IsZero() {
			continue
		}
		version := rec.Remote.Version
		switch what {
		case "etag":
			return version.ETag, version.ETag != ""
		case "version":
			return fmt.Sprintf("%s;%d;%d", version.ETag, version.Modified, version.Size), true
		}
	}
	return "", false
}

// describe gives the state and the reason. Of several names the worst counts.
func (v *View) describe(n *table.Inode) (state, reason string) {
	local := len(n.Links) > 0
	dirty := false
	for _, l := range n.Links {
		rec, _ := v.table.Name(l.Dir, l.Name)
		local = local && rec.Local
		if rec.Seq == 0 {
			continue
		}
		dirty = true
		if err, final := v.holds.Failure(v.View, l); err != nil || rec.Held != nil {
			h := v.holds.Of(v.View, l)
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
		return "local", "excluded, or of a kind that the backend cannot have"
	case state != "":
		return state, reason
	case dirty || n.Writing:
		return "unsaved", reason
	case n.IsRegular() && n.State != table.Whole && n.Size > 0:
		return "remote", ""
	}
	return "clean", ""
}

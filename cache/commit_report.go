package cache

import (
	"errors"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// CommitReport says what a Commit did.
type CommitReport struct {
	Revision  providers.Revision // "" where the backend has none
	Committed bool               // something was sent
	Changes   int                // names that were sent
	HeldBack  []HeldBack
	Conflicts []string // paths that another had changed too: held back, or decided by Policy.Conflict
	Pushed    bool
	PushError error // the commit is there, and was not pushed
}

// add takes in what the next commit did.
func (r *CommitReport) add(next CommitReport) {
	next.Committed = next.Committed || r.Committed
	next.Changes += r.Changes
	next.Conflicts = names(r.Conflicts, next.Conflicts)
	*r = next
}

// HeldBack is a change that the backend does not have, and why.
type HeldBack struct {
	Path     string
	Reason   string
	Conflict bool
}

func (h HeldBack) isPending() bool { return h.Reason == onItsWay }

// onItsWay is the reason of what nothing is known to keep back.
const onItsWay = "on its way, or waits for what it depends on"

// heldBack says why a name was not sent.
func (e *engine) heldBack(v *View, l table.Link, rec table.Name) HeldBack {
	h := HeldBack{Path: v.PathFor(l), Reason: onItsWay}
	if err, _ := e.failure(v, l); err != nil {
		h.Reason, h.Conflict = err.Error(), errors.Is(err, providers.ErrConflict)
	}
	if rec.Held != nil {
		h.Reason, h.Conflict = rec.Held.Reason, h.Conflict || rec.Held.Conflict
	}
	n := v.table.Inode(rec.Ino)
	switch {
	case v.pending.IsBeingWritten(v.View, rec):
		h.Reason = "a program is writing it"
	case n != nil && n.Suspect:
		h.Reason = upload.ErrSuspect.Error()
	}
	return h
}

// reportOf says what has become of names.
func (v *Volume) reportOf(asked map[table.Link]uint64) CommitReport {
	locked := v.lock()
	defer locked.unlock()
	r := CommitReport{Revision: revision.Committed(locked.table)}
	for l, limit := range asked {
		rec, _ := locked.table.Name(l.Dir, l.Name)
		if rec.Seq == 0 || rec.Seq > limit {
			r.Changes++
			continue
		}
		h := v.engine.heldBack(locked, l, rec)
		r.HeldBack = append(r.HeldBack, h)
		if h.Conflict {
			r.Conflicts = append(r.Conflicts, h.Path)
		}
	}
	r.Committed = r.Changes > 0
	return r
}

// unheard tells the Commits that wait which of the names that they asked for are in
// conflict: what is decided at once is not held back, and yet they are to say so. It gives
// the paths that none of them asked for. It is part of the update that decides.
func unheard(v *View, all []clash) (paths []string) {
	for _, clash := range all {
		if !v.committer.conflict(clash.Link, clash.path) {
			paths = append(paths, clash.path)
		}
	}
	return paths
}

// names are those of both lists, in order, each once.
func names(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

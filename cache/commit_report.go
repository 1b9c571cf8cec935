package cache

import (
	"errors"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// CommitReport says what a Commit did.
type CommitReport = pending.Report

// HeldBack is a change that the remote does not have, and why.
type HeldBack = pending.HeldBack

// heldBack says why a name was not sent.
func (e *engine) heldBack(v *View, l table.Link, rec table.Name) HeldBack {
	h := HeldBack{Path: v.PathFor(l), Reason: pending.OnItsWay}
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
		r.HoldBack(v.engine.heldBack(locked, l, rec))
	}
	r.Committed = r.Changes > 0
	return r
}

// unheard tells the Commits that wait which of the names that they asked for are in
// conflict: what is decided at once is not held back, and yet they are to say so. It gives
// the paths that none of them asked for. It is part of the update that decides.
func unheard(v *View, all []clash) (paths []string) {
	for _, clash := range all {
		waits, sets := v.pending.Conflict(clash.Link, clash.path), v.committer.Conflict(clash.path)
		if !waits && !sets {
			paths = append(paths, clash.path)
		}
	}
	return paths
}

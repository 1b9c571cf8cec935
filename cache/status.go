package cache

import (
	"errors"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/offline"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// Status says how far the remote and the working copy are apart, and why.
type Status struct {
	Inodes       int           // that the kernel knows
	Queued       int           // names that differ from the remote
	Unsaved      int           // files among them whose content the remote lacks
	UnsavedBytes int64         // bytes in them
	Oldest       time.Duration // age of the oldest change that the remote lacks
	InFlight     []Transfer
	Held         []HeldBack    // the first of them: see HeldCount
	HeldCount    int           // names held back, conflicts too
	Conflicts    int           // of those
	Retrying     int           // names that failed and will be tried again soon
	Unreachable  time.Duration // since the remote last answered, while it fails; 0: it does not
	LastError    string        // of the names that are tried again, or why the remote is unreachable

	Halted   []MassDelete       // wait for Confirm
	Stale    bool               // the tree could not be checked at the remote in time
	Hidden   int                // entries of the remote that are excluded locally
	Revision providers.Revision // that the tree is based on; "" where the remote has none
	Unpushed *Unpushed          // commits that the remote does not have; nil: none
	Problems []Problem
	Failing  []Failing // activities in the background, and requests, until each has succeeded
}

// Transfer is a change that is being sent.
type Transfer struct {
	Path       string
	What       string // "write", "rename", "delete" and so on
	Sent, Size int64  // bytes of content
	For        time.Duration
}

// Status reports the state of the working copy. It does no I/O, and its cost grows with the names
// that are being sent, retried or held back, not with all unsaved ones.
func (v *Volume) Status() Status {
	locked := v.lock()
	defer locked.unlock()
	now := v.o.Now()
	files, size := v.pending.Unsaved(locked.View)
	s := Status{Inodes: locked.ReferenceCount(), Queued: locked.DirtyCount(), Unsaved: files, UnsavedBytes: size,
		Halted: locked.massDelete.All(), Stale: v.belief.IsFailing(), Hidden: rules.Hidden(locked),
		Revision: revision.StandsOn(locked, v.o.shown()), Unpushed: revision.UnpushedOf(locked),
		Problems: v.chores.Problems()}
	if s.Queued == 0 { // nothing goes to the remote that could fail or succeed
		v.chores.Succeeded(chores.Upload)
		v.chores.Succeeded(chores.Commit)
	}
	s.Failing = v.chores.Failures()
	if since, any := v.pending.Oldest(locked.View); any {
		s.Oldest = now.Sub(since)
	}
	var last error
	if s.Unreachable, last = v.send.Backoff().Unreachable(locked.View, now); last != nil {
		s.LastError = last.Error() // between two tries no name has failed
	}
	locked.addJobs(&s)
	if err, _ := v.committer.Stopped(locked.View); err != nil {
		s.LastError = err.Error()
	}
	return s
}

// addJobs adds the names with jobs to a Status.
func (v *View) addJobs(s *Status) {
	now := v.o.Now()
	for _, t := range v.send.Jobs().Running(v.View) {
		s.InFlight = append(s.InFlight, Transfer{Path: v.PathFor(t.Link), What: t.Op.Verb.String(),
			Sent: t.Sent.Now(), Size: t.Op.Size, For: now.Sub(t.Since)})
	}
	for t := range v.send.Jobs().All(v.View) {
		switch t.State {
		case upload.Resting:
			s.Retrying++
			s.LastError = t.Err.Error()
		case upload.Held:
			s.HeldCount++
			if errors.Is(t.Err, providers.ErrConflict) {
				s.Conflicts++
			}
			if len(s.Held) < pending.MostShown {
				s.Held = append(s.Held, v.holds.Of(v.View, t.Link))
			}
		}
	}
}

// Unsent lists the changes that the remote does not have, the oldest first and at most limit of
// them, and says how many there are.
func (v *Volume) Unsent(limit int) (list []Unsaved, total int) {
	locked := v.lock()
	defer locked.unlock()
	locked.Dirty(0, func(_ uint64, l table.Link) bool {
		list = append(list, offline.UnsavedAt(locked.View, l))
		return len(list) < limit
	})
	return list, locked.DirtyCount()
}

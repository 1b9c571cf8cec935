package daemon

import (
	"context"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/answers"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/syncpolicy"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/policy"
	"github.com/wsmount/wsmount/providers"
)

// maxListed bounds each list of a working copy's status.
const maxListed = 20

// describe puts the state of a working copy into the status of its part.
func (w *workingCopy) describe(s *control.Part) {
	st := w.Status()
	s.Inodes = st.Inodes
	s.Unsaved = control.Unsaved{Files: st.Unsaved, Names: st.Queued, Bytes: st.UnsavedBytes}
	if st.Oldest > 0 {
		s.Unsaved.Oldest = w.syncer.now().Add(-st.Oldest)
	}
	s.HeldBack, s.Conflicts = st.HeldCount, st.Conflicts
	s.ConflictCopies = len(w.conflictCopies())
	h, a := w.HistoryUsage(), w.answers.Summary()
	s.Reachable = a.Unreachable.IsZero() && !answers.IsAway(w.freshness.Stale())
	s.Events = w.syncer.outcomes.List()
	s.Copy = &control.Copy{LastPull: a.Pulled, LastPush: a.Pushed, CredentialFailures: a.CredentialFailures, CredentialsExpire: a.CredentialsExpire,
		Content: w.ContentUsage(), StateDir: w.dir, Policy: w.syncer.text(), WriteBack: w.noWait, Revision: string(st.Revision),
		Retrying: st.Retrying, LastError: st.LastError, PutOff: w.freshness.PutOff(),
		Unreachable: st.Unreachable.Seconds(), Stale: st.Stale || w.freshness.Stale() != nil, Excluded: st.Hidden,
		Away: a.Away, Patience: w.patience.Seconds(), HistoryVersions: h.Versions, HistoryBytes: h.Bytes, Requests: w.requests(), Clone: w.clone(), Failing: w.failing()}
	listChanges(s.Copy, st)
	w.syncer.branches.describe(s.Copy)
	w.syncer.retries.describe(s.Copy, st.Unpushed)
}

// conflictCopies are the copies that a replication of the store has left, as far as they
// are found within a second.
func (w *workingCopy) conflictCopies() []providers.Locator {
	if w.replicas == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	found, err := w.replicas.ConflictCopies(ctx)
	if err != nil {
		w.syncer.log.Warn("copies that a replication left were not all found", "error", err)
	}
	return found
}

// clone is how much of a cloned store is local; nil for a store that is not cloned.
func (w *workingCopy) clone() *control.Clone {
	if w.cloner == nil {
		return nil
	}
	c := w.cloner.Clone()
	return &control.Clone{Kind: c.Kind, Missing: c.Missing, Fetching: c.Fetching, Paused: c.Paused, Error: c.Error, Failing: c.Failing}
}

// listChanges lists the uploads under way, the held back changes, and the halts.
func listChanges(c *control.Copy, st cache.Status) {
	for _, t := range st.InFlight[:min(len(st.InFlight), maxListed)] {
		c.InFlight = append(c.InFlight, control.Transfer{Path: t.Path, What: t.What, Sent: t.Sent, Size: t.Size, Seconds: t.For.Seconds()})
	}
	for _, h := range st.Held[:min(len(st.Held), maxListed)] {
		c.Held = append(c.Held, control.Held{Path: h.Path, Reason: h.Reason, Conflict: h.Conflict})
	}
	for _, h := range st.Halted {
		c.Halted = append(c.Halted, haltText(h))
	}
}

func haltText(h cache.MassDelete) string { return haltVerb(h) + ": " + h.Reason }

// haltVerb is the command whose --confirm allows the halted deletions.
func haltVerb(h cache.MassDelete) string {
	if h.Commit {
		return control.VerbCommit
	}
	return control.VerbPull
}

// text says in one line when this workspace is pulled, committed and pushed.
func (k *syncer) text() string {
	text := syncpolicy.Text(k.sync, k.copy.noWait && !k.writeThrough)
	if k.sync.Mode == mountspec.ModePullPush && !k.decide(policy.Commit).Allow {
		text += "; commits held back by policy"
	}
	if k.sync.Mode == mountspec.ModePullPush && !k.decide(policy.Push).Allow {
		text += "; pushes held back by policy"
	}
	return text
}

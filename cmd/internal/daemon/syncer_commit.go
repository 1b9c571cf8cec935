package daemon

import (
	"context"
	"fmt"
	"strings"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/commits"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/mountspec/policy"
	"github.com/wsmount/wsmount/providers"
)

// commit sends the changes.
func (k *syncer) commit(ctx context.Context, w words, out *control.EventResult) error {
	if err := k.allowed(policy.Commit); err != nil {
		if queued := k.copy.Status().Queued; queued > 0 {
			out.HeldBack += queued
			k.log.Warn("nothing is committed", "workspace", k.name, "changes", queued, "err", err)
		}
		return nil
	}
	o := cache.CommitOptions{}
	if w.message != "" {
		o.Message = commits.Spoken + w.message
	}
	undo, err := k.beginNames()
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	k.author.Summarize(w.summary)
	k.report.beginCommit()
	report, err := k.copy.Commit(ctx, o)
	k.report.endCommit(report)
	if err == nil && !report.Committed {
		err = undo()
	}
	k.author.Summarize("")
	k.report.committed(report, out)
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if report.Pushed {
		out.Pushed++
	}
	if report.PushError != nil {
		return fmt.Errorf("push: %w", report.PushError)
	}
	return nil
}

// beginNames is beginCommit for a store that takes no change sets: names sent one by one
// because of one request count as one commit. Change sets ask for each by themselves.
func (k *syncer) beginNames() (undo func() error, err error) {
	if _, sets := providers.As[providers.Committer](k.copy.provider); sets {
		return func() error { return nil }, nil
	}
	return k.beginCommit()
}

// commitTaken is called with each commit that a store of revisions has taken. Its
// initiator pushes it; commits by the working copy itself are pushed by tick.
func (k *syncer) commitTaken(r providers.Revision) {
	k.branches.changed()
	k.report.commitTaken(r)
}

// heldBack names the changes that a commit has left, with the reasons.
func (k *syncer) heldBack() error {
	s := k.copy.Status()
	var names []string
	for _, h := range s.Held[:min(len(s.Held), 3)] {
		names = append(names, h.Path+" ("+h.Reason+")")
	}
	more := ""
	if s.HeldCount > len(names) {
		more = fmt.Sprintf(" and %d more", s.HeldCount-len(names))
	}
	return fmt.Errorf("held back: %s%s", strings.Join(names, ", "), more)
}

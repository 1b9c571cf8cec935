package daemon

import (
	"context"
	"fmt"
	"strings"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/policy"
	"github.com/wsmount/wsmount/providers"
)

// commit sends what has changed. message is a person's own words, summary what
// the manifest's template is filled with.
func (k *syncer) commit(ctx context.Context, message, summary string, out *control.EventResult) error {
	if err := k.allowed(policy.Commit); err != nil {
		if queued := k.copy.Status().Queued; queued > 0 {
			out.HeldBack += queued
			k.log.Warn("nothing is committed", "workspace", k.name, "changes", queued, "err", err)
		}
		return nil
	}
	o := cache.CommitOptions{}
	if message != "" {
		o.Message = spoken + message
	}
	k.begin(summary)
	report, err := k.copy.Commit(ctx, o)
	own := k.end()
	if report.Committed && own {
		k.emit(mountspec.EventCommitCompleted, map[string]string{"ref": string(report.Revision)})
	}
	k.committed(report, out)
	if err != nil {
		return fmt.Errorf("%s: commit: %w", k.name, err)
	}
	if report.Pushed {
		out.Pushed++
	}
	if report.PushError != nil {
		return fmt.Errorf("%s: push: %w", k.name, report.PushError)
	}
	return nil
}

// begin and end bracket a commit of this syncer's own. end reports whether
// nobody has told of it: a store that takes no sets has no commits to tell of.
func (k *syncer) begin(summary string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.summary, k.quiet = summary, true
}

func (k *syncer) end() (untold bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	untold = k.quiet
	k.summary, k.quiet = "", false
	return untold
}

// compose names a commit of files.
func (k *syncer) compose(files []string, count int) (c composed) {
	k.mu.Lock()
	v := mountspec.Vars{Operator: k.operator, Summary: k.summary, Workspace: k.name, Turn: k.turn, Conversation: k.talk,
		Files: files, Count: count, Date: k.now()}
	k.mu.Unlock()
	primary, more, _ := mountspec.Authors(k.r.Identity)
	if chosen, ok := k.identity(v.Operator); ok {
		primary, v.Operator = chosen, chosen.Name
	}
	if v.Operator == "" {
		v.Operator = primary.Name
	}
	for _, p := range more {
		if p.Email != "" {
			c.others = append(c.others, identity(p))
		}
	}
	if primary.Email != "" {
		c.author = identity(primary)
	}
	for _, t := range []providers.Trailer{{Name: "Wsmount-Turn", Value: v.Turn}, {Name: "Wsmount-Conversation", Value: v.Conversation}} {
		if t.Value != "" {
			c.trailers = append(c.trailers, t)
		}
	}
	c.message = k.template.Expand(v)
	return c
}

// sent is told of each commit that a store of revisions has taken. Who made it
// pushes it; those of the working copy itself are pushed by tryAgain.
func (k *syncer) sent(r providers.Revision) {
	k.mu.Lock()
	k.quiet, k.unlooked = false, true
	k.mu.Unlock()
	k.emit(mountspec.EventCommitCompleted, map[string]string{"ref": string(r)})
}

// heldBack says what a commit has left, and why.
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
	return fmt.Errorf("%s: held back: %s%s", k.name, strings.Join(names, ", "), more)
}

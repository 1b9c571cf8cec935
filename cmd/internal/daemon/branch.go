package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers"
)

// Where commits go by AIP-35's branch_policy. A conversation begins a branch where
// the tracked branch is; the turns of a conversation go on from one another, each
// on a branch of its own, so that no turn loses what the one before it made. Which
// branch it is, the store keeps: after a remount it is the same one until an event
// names another conversation.

// brancher is the store's side that has branches.
func (k *syncer) brancher() (b providers.Brancher, ok bool) {
	if k.readOnly || k.sync.Mode != mountspec.ModePullPush {
		return nil, false
	}
	return providers.As[providers.Brancher](k.copy.provider)
}

// branchName is the branch for a conversation and a turn, each of which may be
// unknown, when commits go to the branch on ("": none of ours). goesOn says that it
// is one of the same conversation.
func (k *syncer) branchName(on, talk, turn string) (name string, goesOn bool) {
	if !hasBranches(k.sync) {
		return "", false // back to the tracked one, if the policy was another
	}
	if talk == "" && on != "" && (turn == "" || k.sync.Push.Branch == mountspec.BranchPerConversation) {
		return on, true
	}
	if k.sync.Push.Branch == mountspec.BranchPerConversation {
		name, _ = mountspec.BranchForConversation(orElse(talk, k.unnamed)) // which has an id
		return name, false
	}
	before, _, isTurn := cutLast(on, "/")
	isTurn = isTurn && strings.HasPrefix(on, "wsmount/t/")
	turnName := orElse(turn, k.now().UTC().Format("20060102T150405"))
	if talk == "" && isTurn {
		return before + "/" + mountspec.CleanID(turnName), true
	}
	name, _ = mountspec.BranchForTurn(orElse(talk, k.unnamed), turnName)
	now, _, _ := cutLast(name, "/")
	if goesOn = isTurn && now == before; goesOn && turn == "" {
		return on, true
	}
	return name, goesOn
}

// cutLast is strings.Cut around the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// rebranch goes to the branch that an event's conversation and turn name. What
// came before is committed and pushed to its own branch first, as far as policy
// does that by itself; what is left is said.
func (k *syncer) rebranch(ctx context.Context, vars map[string]string, out *control.EventResult) error {
	b, ok := k.brancher()
	if !ok {
		return nil
	}
	all, err := b.Branches(ctx)
	if err != nil {
		k.copy.Ended(cache.ActivityBranch, err)
		return fmt.Errorf("%s: branch: %w", k.name, err)
	}
	name, goesOn := k.branchName(all.On, vars["conversationId"], vars["turnId"])
	if name == all.On {
		return nil
	}
	// Commits of a branch do not go to the tracked one because of this.
	o := cache.BranchOptions{GoOn: goesOn, Stay: name == ""}
	if !goesOn && all.On != "" {
		o.Leave = k.closeBranch(ctx, out)
	}
	report, err := k.copy.Branch(ctx, name, o)
	if err != nil {
		return fmt.Errorf("%s: %w", k.name, err)
	}
	k.pulled(report.Pull, out)
	if !report.Moved {
		if report.WentOn != "" {
			out.Notes = append(out.Notes, fmt.Sprintf("%s: commits still go to branch %s: %s", k.name, all.On, report.WentOn))
		}
		return nil
	}
	k.log.Info("commits go to another branch", "workspace", k.name, "branch", name, "was", all.On, "revision", report.Revision)
	if report.WentOn != "" && all.On != "" {
		note := fmt.Sprintf("%s: branch %s goes on from %s and has its commits too: %s", k.name, name, all.On, report.WentOn)
		k.log.Warn("a branch did not begin where the tracked one is", "workspace", k.name, "branch", name, "from", all.On, "reason", report.WentOn)
		out.Notes = append(out.Notes, note)
	}
	return nil
}

// closeTime is how long the last push of a branch may take before the next one
// goes on from it.
const closeTime = 20 * time.Second

// closeBranch sends what there is to the branch that it belongs to. It reports
// whether the remote has refused it: then it stays on its branch, listed, and is
// not in the way of the next.
func (k *syncer) closeBranch(ctx context.Context, out *control.EventResult) (refused bool) {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	if k.sync.Commit.On.Resolve() != mountspec.EventManual && k.copy.Status().Queued > 0 {
		if err := k.commit(ctx, "", "", out); err != nil {
			k.log.Warn("a branch is left with changes that are not committed", "workspace", k.name, "err", err)
			out.Notes = append(out.Notes, err.Error())
		}
	}
	if k.sync.Push.On.Resolve() == mountspec.EventManual || k.copy.Status().Unpushed == nil {
		return false
	}
	err := k.push(ctx, out)
	if err != nil {
		k.log.Warn("a branch is left with commits that are not pushed", "workspace", k.name, "err", err)
		out.Notes = append(out.Notes, err.Error())
	}
	return errors.Is(err, providers.ErrPermission)
}

// look keeps what status shows of the branches.
func (k *syncer) look() {
	b, ok := providers.As[providers.Brancher](k.copy.provider)
	if !ok {
		return
	}
	all, err := b.Branches(k.ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.branches, k.unlooked = all, false
	}
}

// lookAgain is look if a commit was made meanwhile.
func (k *syncer) lookAgain() {
	k.mu.Lock()
	stale := k.unlooked
	k.mu.Unlock()
	if stale {
		k.look()
	}
}

// listBranches puts them into the status, with what is known of unpushed commits.
func (k *syncer) listBranches(c *control.Copy, u *cache.Unpushed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c.PushFails, c.PullsFails = k.pushFails(u), k.pullRetry.fails()
	if u != nil {
		c.Unpushed, c.UnpushedCommits, c.UnpushedSince = true, u.Commits, u.Since
	}
	if c.Branch = k.branches.On; c.Branch == "" {
		c.Branch = k.branches.Tracked
	}
	for _, b := range k.branches.Unmerged[:min(len(k.branches.Unmerged), maxListed)] {
		c.Branches = append(c.Branches, control.Branch{Name: b.Name, Revision: string(b.Revision), Commits: b.Commits, Pushed: b.Pushed,
			PRURL: b.URL, PRWanted: b.Wanted, Refused: b.Refused.Code, RefusedSays: b.Refused.Says, RefusedSince: b.Refused.Since})
	}
}

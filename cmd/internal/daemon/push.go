package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/syncpolicy"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/policy"
	"github.com/wsmount/wsmount/providers"
)

var errNoPulls = errors.New("the workspace's policy opens no pull requests")

// push sends the commits to the branch that they go to, and opens a pull request
// from it. Conflicts that hold changes back are reported too.
func (k *syncer) push(ctx context.Context, pr syncpolicy.PullRequest, out *control.EventResult) error {
	if pr == syncpolicy.Require {
		if err := k.hasPulls(); err != nil {
			return err
		}
	}
	defer k.report.unresolved(k.gate.ctx, out)
	if err := k.allowed(policy.Push); err != nil {
		if k.copy.Status().Unpushed != nil {
			out.HeldBack++
			k.log.Warn("nothing is pushed", "workspace", k.name, "err", err)
			k.retries.pushed(err)
		}
		return nil
	}
	branch, err := k.target(ctx, out)
	if err != nil {
		k.retries.pushed(err)
		return fmt.Errorf("push: %w", err)
	}
	if k.copy.Status().Unpushed == nil {
		return k.pushTo(ctx, branch, pr, out)
	}
	undo, err := k.begin(policy.Push)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	if err := k.audit.Write(k.auditPush(branch, "")); err != nil {
		return fmt.Errorf("push: %w", errors.Join(err, undo()))
	}
	before := out.Pushed
	if err = k.pushTo(ctx, branch, pr, out); out.Pushed == before { // nothing was pushed: no count
		err = errors.Join(err, undo())
	}
	return err
}

// pushTo pushes to the branch that commits go to, and reports it with its pull request.
func (k *syncer) pushTo(ctx context.Context, branch string, pr syncpolicy.PullRequest, out *control.EventResult) error {
	held := k.report.hold()
	result, err := k.copy.Push(ctx, providers.PushOptions{})
	k.report.release()
	k.retries.pushed(err)
	k.report.pushed(result, out)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	switch {
	case branch != "" && pr == syncpolicy.Attempt:
		k.propose(ctx, branch, result.Pushed, out)
	case branch != "" && pr == syncpolicy.Require:
		if out.PRURL, err = k.openPull(ctx, branch); err != nil {
			err = fmt.Errorf("pull request: %w", err)
		}
	}
	if pushed := held.taken(); pushed.Pushed {
		pushed.URL = out.PRURL
		k.report.pushCompleted(pushed)
	}
	if err == nil && pr == syncpolicy.Require && out.PRURL == "" {
		out.Notes = append(out.Notes, fmt.Sprintf("%s: there is nothing to merge from %s", k.name, cmp.Or(branch, "its branch")))
	}
	return err
}

// hasPulls refuses a request for a pull request if the policy or the store has none.
func (k *syncer) hasPulls() error {
	if !syncpolicy.HasPulls(k.sync) {
		return fmt.Errorf("sync.push.pr_policy is %s: %w", cmp.Or(string(k.sync.Push.PR), "none"), errNoPulls)
	}
	if _, ok := k.branches.brancher(); !ok {
		return errNoPulls
	}
	return nil
}

// auditPush is the record of a push, with its pull request if there is one.
func (k *syncer) auditPush(branch, url string) audit.Push {
	l := k.r.Location
	return audit.Push{Workspace: k.name, Principal: k.r.Principal, Remote: l.Endpoint + "/" + l.Bucket, Branch: branch, PullRequest: url}
}

// target is the branch that a push goes to; "" for the tracked one. If the policy
// wants another branch, it has to exist first: nothing goes to the tracked branch
// instead, except the first commits of an empty repository.
func (k *syncer) target(ctx context.Context, out *control.EventResult) (string, error) {
	b, ok := k.branches.brancher()
	if !ok {
		return "", nil
	}
	all, err := b.Branches(ctx)
	if err == nil && all.On == "" && syncpolicy.HasBranches(k.sync) {
		if err = k.rebranch(ctx, nil, out); err == nil {
			all, err = b.Branches(ctx)
		}
	}
	if err == nil && all.On == "" && all.Tip != "" && syncpolicy.HasBranches(k.sync) {
		err = fmt.Errorf("there is no branch for this conversation yet: %w", providers.ErrUnavailable)
	}
	return all.On, err
}

// proposeTime is how long the API may take to answer for one pull request.
const proposeTime = 30 * time.Second

// propose finds or opens the pull request from a branch that was pushed. A failure
// is no failure of the push: it is reported, and tried again.
func (k *syncer) propose(ctx context.Context, branch string, pushed bool, out *control.EventResult) {
	b, ok := k.branches.brancher()
	if !ok {
		return
	}
	if all, err := b.Branches(ctx); err == nil && !pushed {
		for _, known := range all.Unmerged {
			if known.Name == branch && known.URL != "" {
				out.PRURL = known.URL
				return
			}
		}
	}
	url, err := k.openPull(ctx, branch)
	if err != nil {
		k.log.Warn("a pull request cannot be opened", "workspace", k.name, "branch", branch, "err", err)
		out.Notes = append(out.Notes, fmt.Sprintf("%s: no pull request from %s yet: %v", k.name, branch, err))
		return
	}
	out.PRURL = cmp.Or(url, out.PRURL)
}

// proposeMissing opens the pull requests that could not be opened before.
func (k *syncer) proposeMissing(ctx context.Context, out *control.EventResult) error {
	if k.allowed(policy.Push) != nil {
		return nil
	}
	for _, branch := range k.branches.withoutPull() {
		k.propose(ctx, branch, true, out)
	}
	return nil
}

// pullsMissing reports whether a branch lacks its pull request. If none lacks one,
// the failing activity ends.
func (k *syncer) pullsMissing() bool {
	missing := len(k.branches.withoutPull()) > 0
	if !missing {
		k.copy.Ended(cache.ActivityPullRequest, nil)
	}
	return missing
}

// openPull finds or opens a pull request, and notes the result. The url is empty if
// there is nothing to merge.
func (k *syncer) openPull(ctx context.Context, branch string) (url string, err error) {
	b, ok := k.branches.brancher()
	if !ok {
		return "", errNoPulls
	}
	ctx, cancel := context.WithTimeout(ctx, proposeTime)
	defer cancel()
	url, err = b.Propose(ctx, branch, providers.PullRequest{})
	k.retries.proposed(err)
	k.copy.Ended(cache.ActivityPullRequest, err)
	if err == nil && url != "" {
		k.log.Info("a pull request is open", "workspace", k.name, "branch", branch, "url", url)
		k.report.write(k.auditPush(branch, url))
	}
	return url, err
}

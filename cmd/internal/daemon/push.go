package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/policy"
	"github.com/wsmount/wsmount/providers"
)

// push sends what was committed to the branch that commits go to, and opens a pull
// request from it if policy does that by itself.
func (k *syncer) push(ctx context.Context, out *control.EventResult) error {
	_, err := k.pushHeld(ctx, out, func(branch string, pushed bool) error {
		if k.sync.Push.PR == mountspec.PRAuto {
			k.propose(ctx, branch, pushed, out)
		}
		return nil
	})
	return err
}

var errNoPulls = errors.New("the workspace's policy opens no pull requests")

// pushTold is push for a person, who asks for a pull request or not.
func (k *syncer) pushTold(ctx context.Context, pr bool, out *control.EventResult) error {
	switch {
	case !pr:
		return k.push(ctx, out)
	case !hasPulls(k.sync):
		return fmt.Errorf("%s: sync.push.pr_policy is %s: %w", k.name, orElse(string(k.sync.Push.PR), "none"), errNoPulls)
	}
	b, ok := k.brancher()
	if !ok {
		return fmt.Errorf("%s: %w", k.name, errNoPulls)
	}
	branch, err := k.pushHeld(ctx, out, func(branch string, _ bool) (err error) {
		ctx, cancel := context.WithTimeout(ctx, proposeTime)
		defer cancel()
		out.PRURL, err = b.Propose(ctx, branch, providers.PullRequest{})
		k.proposed(branch, out.PRURL, err)
		return err
	})
	if err == nil && out.PRURL == "" {
		out.Notes = append(out.Notes, fmt.Sprintf("%s: there is nothing to merge from %s", k.name, orElse(branch, "its branch")))
	}
	return err
}

// heldPush keeps what a push did until it is told with its pull request.
type heldPush struct {
	mu     sync.Mutex
	result providers.PushResult
}

func (h *heldPush) take(r providers.PushResult) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.result = r
}

func (h *heldPush) taken() providers.PushResult {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.result
}

// pushHeld pushes, and calls then with the branch that is at the remote now. What
// conflicts keep from going is told, too.
func (k *syncer) pushHeld(ctx context.Context, out *control.EventResult, then func(branch string, pushed bool) error) (branch string, err error) {
	defer k.unresolved(out)
	if err := k.allowed(policy.Push); err != nil {
		if k.copy.Status().Unpushed != nil {
			out.HeldBack++
			k.log.Warn("nothing is pushed", "workspace", k.name, "err", err)
			k.tried(err)
		}
		return "", nil
	}
	branch, err = k.target(ctx, out)
	if err != nil {
		k.tried(err)
		return "", fmt.Errorf("%s: push: %w", k.name, err)
	}
	if k.copy.Status().Unpushed != nil {
		l := k.r.Location
		if err := k.audit.Write(audit.Push{Workspace: k.name, Principal: k.r.Principal, Remote: l.Endpoint + "/" + l.Bucket, Branch: branch}); err != nil {
			return branch, fmt.Errorf("%s: push: %w", k.name, err)
		}
	}
	held := &heldPush{}
	k.hold(held)
	result, err := k.copy.Push(ctx, providers.PushOptions{})
	k.hold(nil)
	k.tried(err)
	k.pushed(result, out)
	if err != nil {
		return branch, fmt.Errorf("%s: push: %w", k.name, err)
	}
	if branch != "" {
		err = then(branch, result.Pushed)
	}
	if told := held.taken(); told.Pushed {
		told.URL = out.PRURL
		k.tellPush(told)
	}
	if err != nil {
		return branch, fmt.Errorf("%s: pull request: %w", k.name, err)
	}
	return branch, nil
}

func (k *syncer) hold(h *heldPush) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = h
}

// target is the branch that a push goes to; "" for the tracked one. Where policy
// wants another, that has to be there first: nothing goes to the tracked branch
// instead, but for the first commits of an empty repository.
func (k *syncer) target(ctx context.Context, out *control.EventResult) (string, error) {
	b, ok := k.brancher()
	if !ok {
		return "", nil
	}
	all, err := b.Branches(ctx)
	if err == nil && all.On == "" && hasBranches(k.sync) {
		if err = k.rebranch(ctx, nil, out); err == nil {
			all, err = b.Branches(ctx)
		}
	}
	if err == nil && all.On == "" && all.Tip != "" && hasBranches(k.sync) {
		err = fmt.Errorf("there is no branch for this conversation yet: %w", providers.ErrUnavailable)
	}
	return all.On, err
}

// proposeTime is how long the API may take to answer for one pull request.
const proposeTime = 30 * time.Second

// propose finds or opens the pull request from a branch that was pushed. That it
// cannot is no failure of the push: it is said, and tried again.
func (k *syncer) propose(ctx context.Context, branch string, pushed bool, out *control.EventResult) {
	b, ok := k.brancher()
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
	ctx, cancel := context.WithTimeout(ctx, proposeTime)
	defer cancel()
	url, err := b.Propose(ctx, branch, providers.PullRequest{})
	k.proposed(branch, url, err)
	if err != nil {
		k.log.Warn("a pull request cannot be opened", "workspace", k.name, "branch", branch, "err", err)
		out.Notes = append(out.Notes, fmt.Sprintf("%s: no pull request from %s yet: %v", k.name, branch, err))
		return
	}
	if url != "" {
		out.PRURL = url
	}
}

// proposed notes what became of an attempt to have a pull request.
func (k *syncer) proposed(branch, url string, err error) {
	k.mu.Lock()
	k.pullRetry.ended(k.now(), err)
	k.mu.Unlock()
	k.copy.Ended(cache.ActivityPullRequest, err)
	if err != nil || url == "" {
		return
	}
	k.log.Info("a pull request is open", "workspace", k.name, "branch", branch, "url", url)
	l := k.r.Location
	err = k.audit.Write(audit.Push{Workspace: k.name, Principal: k.r.Principal, Remote: l.Endpoint + "/" + l.Bucket, Branch: branch, PullRequest: url})
	if err != nil {
		k.log.Error("the audit log cannot be written", "err", err)
	}
}

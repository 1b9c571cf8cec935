package memoryrepo

import (
	"context"
	"fmt"

	"github.com/wsmount/wsmount/providers"
)

// Push implements providers.Pusher.
func (r *Repository) Push(ctx context.Context, opts providers.PushOptions) (providers.PushResult, error) {
	return do(ctx, r, providers.MethodPush, providers.Locator{}, func() (providers.PushResult, error) {
		r.remote.mu.Lock()
		defer r.remote.mu.Unlock()
		own := opts.Branch == "" && r.on != r.branch
		if opts.Branch == "" {
			opts.Branch = r.on
		}
		if r.head == "" {
			return providers.PushResult{}, fmt.Errorf("nothing was committed: %w", providers.ErrNotExist)
		}
		if opts.PullRequest != nil && opts.Branch == r.branch {
			return providers.PushResult{}, fmt.Errorf("a pull request from the tracked branch to itself: %w", providers.ErrInvalid)
		}
		if own && len(r.unmerged(r.head)) == 0 {
			return providers.PushResult{Revision: r.head}, nil
		}
		result := providers.PushResult{Revision: r.head, Pushed: r.remote.branches[opts.Branch] != r.head}
		if result.Pushed {
			if err := r.mayPush(opts); err != nil {
				return providers.PushResult{}, err
			}
			r.remote.branches[opts.Branch] = r.head
		}
		if opts.Branch == r.branch {
			r.known = r.head
		} else {
			l := r.lineOf(opts.Branch)
			l.theirs, l.pushed = r.head, r.head
		}
		if opts.PullRequest != nil {
			result.URL = r.remote.pull(opts.Branch, r.branch)
			r.lineOf(opts.Branch).url = result.URL
		}
		return result, nil
	})
}

// mayPush returns an error unless the remote's branch may go to the head.
func (r *Repository) mayPush(opts providers.PushOptions) error {
	theirs, there := r.remote.branches[opts.Branch]
	switch {
	case opts.Lease != "" && theirs == opts.Lease:
		return nil
	case opts.Lease != "":
		return fmt.Errorf("%s is at %q and not at %q: %w", opts.Branch, theirs, opts.Lease, providers.ErrConflict)
	case !there && opts.Branch == r.branch && r.known != "":
		return fmt.Errorf("%s was deleted: %w", opts.Branch, providers.ErrConflict)
	case there && !r.remote.revisions.history(r.head)[theirs]:
		return fmt.Errorf("%s is at %q, which is not in our history: %w", opts.Branch, theirs, providers.ErrConflict)
	}
	return nil
}

// pull finds or opens the pull request from one branch to another.
func (r *Remote) pull(from, to string) string {
	if r.pulls[from] == "" {
		r.pulls[from] = fmt.Sprintf("memory:pull/%d/%s...%s", len(r.pulls)+1, to, from)
	}
	return r.pulls[from]
}

// Fetch implements providers.Syncer.
func (r *Repository) Fetch(ctx context.Context) (providers.Revision, error) {
	return do(ctx, r, providers.MethodFetch, providers.Locator{}, func() (providers.Revision, error) {
		r.remote.mu.Lock()
		defer r.remote.mu.Unlock()
		r.learnTracked()
		r.putAway()
		if r.on != r.branch {
			if theirs := r.onward(); theirs != "" {
				return theirs, nil
			}
		}
		if r.known == "" {
			return "", fmt.Errorf("branch %s: %w", r.branch, providers.ErrNotExist)
		}
		return r.known, nil
	})
}

// Adopt implements providers.Syncer.
func (r *Repository) Adopt(ctx context.Context, from, to providers.Revision) error {
	_, err := do(ctx, r, providers.MethodAdopt, providers.Locator{}, func() (struct{}, error) {
		return struct{}{}, r.adopt(from, to)
	})
	return err
}

// adopt is the verb of Adopt.
func (r *Repository) adopt(from, to providers.Revision) error {
	switch {
	case r.mustHave(to) != nil:
		return r.mustHave(to)
	case r.head == to:
		return nil
	case r.head != from:
		return fmt.Errorf("the head is %q and not %q: %w", r.head, from, providers.ErrConflict)
	}
	r.remote.mu.Lock()
	defer r.remote.mu.Unlock()
	r.show(to)
	return nil
}

// Base implements providers.Syncer.
func (r *Repository) Base(ctx context.Context, a, b providers.Revision) (providers.Revision, error) {
	return do(ctx, r, providers.MethodBase, providers.Locator{}, func() (providers.Revision, error) {
		if err := r.mustHave(a, b); err != nil {
			return "", err
		}
		r.remote.mu.Lock()
		defer r.remote.mu.Unlock()
		return r.remote.revisions.base(a, b), nil
	})
}

package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/gather"
	"github.com/wsmount/wsmount/providers/git/internal/notes"
	"github.com/wsmount/wsmount/providers/git/internal/refs"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
)

// Push implements providers.Pusher.
func (p *Provider) Push(ctx context.Context, opts providers.PushOptions) (providers.PushResult, error) {
	return do(ctx, p, providers.MethodPush, providers.Locator{}, func() (providers.PushResult, error) {
		now := p.head.now.Load()
		head, own := now.commit, opts.Branch == "" && now.branch != p.origin.branch
		if opts.Branch == "" {
			opts.Branch = now.branch
		}
		switch {
		case !refs.ValidBranch(opts.Branch):
			return providers.PushResult{}, fmt.Errorf("branch %q: %w", opts.Branch, providers.ErrInvalid)
		case head.IsZero():
			return providers.PushResult{}, fmt.Errorf("nothing was committed: %w", providers.ErrNotExist)
		case opts.PullRequest != nil && opts.Branch == p.origin.branch:
			return providers.PushResult{}, fmt.Errorf("a pull request from the tracked branch to itself: %w", providers.ErrInvalid)
		case opts.PullRequest != nil && p.o.Pulls == nil:
			return providers.PushResult{}, errNoPulls
		}
		if own {
			if merged, err := p.origin.isMerged(head); err != nil || merged {
				return providers.PushResult{Revision: revision(head)}, err
			}
		}
		result := providers.PushResult{Revision: revision(head)}
		pushed, err := pusher{p.origin}.push(ctx, opts, head)
		if err != nil {
			return providers.PushResult{}, gone(err)
		}
		result.Pushed = pushed
		if opts.PullRequest != nil {
			result.URL, err = pusher{p.origin}.propose(ctx, opts.Branch, *opts.PullRequest)
		}
		return result, err
	})
}

// pusher is the remote of a clone, for pushes.
type pusher struct{ *origin }

func (p pusher) push(ctx context.Context, opts providers.PushOptions, head id) (pushed bool, err error) {
	// LFS objects go before the commits that name them, and take longer than a server waits.
	if err := p.repo.large.upload(ctx, opts, head); err != nil {
		return false, err
	}
	t, err := p.alone(ctx)
	if err != nil {
		return false, err
	}
	defer t.end()
	s, err := p.remote.AskPush(ctx)
	if err != nil {
		return false, p.unasked(opts.Branch, err)
	}
	defer s.Close()
	theirs, _ := s.Branch(opts.Branch)
	if theirs == head {
		return false, p.pushed(opts.Branch, head)
	}
	if err := p.mayPush(opts, head, theirs); err != nil {
		return false, err
	}
	pack, err := p.pack(head, s.Tips())
	if err != nil {
		return false, err
	}
	if err := s.Send(ctx, opts.Branch, head, told(pack, opts.Sent)); err != nil {
		if err := p.after(ctx, opts.Branch, head, theirs, err); err != nil {
			return false, err
		}
	}
	return true, p.pushed(opts.Branch, head)
}

// unasked notes that the remote takes no pushes at all, if that is the reason of err.
func (p pusher) unasked(branch string, err error) error {
	var asked *remote.Error
	if errors.As(err, &asked) && asked.Code == providers.RefusedService {
		return errors.Join(err, p.refused(branch, asked.Code, asked))
	}
	return err
}

// told is a body that calls sent with the number of bytes as they go.
func told(body io.ReadCloser, sent func(int)) io.ReadCloser {
	if sent == nil {
		return body
	}
	return span{&outgoing{body, sent}, body}
}

type outgoing struct {
	r    io.Reader
	sent func(int)
}

func (t *outgoing) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	if n > 0 {
		t.sent(n)
	}
	return n, err
}

// mayPush says whether the remote's branch may go to the head.
func (p pusher) mayPush(opts providers.PushOptions, head, theirs id) error {
	known, err := p.repo.refs.Get(originRef(p.branch))
	switch {
	case err != nil:
		return err
	case opts.Lease != "" && revision(theirs) == opts.Lease:
		return nil
	case opts.Lease != "":
		return fmt.Errorf("%s is at %q and not at %q: %w", opts.Branch, revision(theirs), opts.Lease, providers.ErrConflict)
	case theirs.IsZero() && opts.Branch == p.branch && !known.IsZero():
		return fmt.Errorf("%s was deleted: %w", opts.Branch, providers.ErrConflict)
	case theirs.IsZero():
		return nil
	}
	ours := false
	if p.repo.hasCommit(theirs) {
		if ours, err = p.repo.isAncestor(theirs, head); err != nil {
			return err
		}
	}
	if !ours {
		return fmt.Errorf("%s is at %q, which is not in our history: %w", opts.Branch, revision(theirs), providers.ErrConflict)
	}
	return nil
}

// after tells the outcome of a push that failed, from the remote's branch.
func (p pusher) after(ctx context.Context, branch string, head, before id, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	s, err := p.remote.Ask(ctx)
	if err != nil {
		return cause
	}
	defer s.Close()
	var refused *remote.RefusedError
	var asked *remote.Error
	switch is, _ := s.Branch(branch); {
	case is == head:
		return nil
	case is != before:
		return fmt.Errorf("%s has moved on to %q: %w", branch, revision(is), providers.ErrConflict)
	case errors.As(cause, &refused):
		err := p.refused(branch, refused.Code(), refused)
		return errors.Join(&remote.Error{Kind: providers.ErrPermission, Code: refused.Code(), Err: refused}, err)
	case errors.As(cause, &asked) && errors.Is(asked.Kind, providers.ErrTooLarge): // by a proxy
		return errors.Join(cause, p.refused(branch, providers.RefusedSize, asked))
	}
	return cause
}

// refused notes that the remote did not take a branch.
func (p pusher) refused(branch, code string, why error) error {
	refusal := providers.Refusal{Code: code, Says: why.Error(), Since: p.o.Now()}
	return p.notes.Change(branch, func(n *notes.Note) { n.Refuse(refusal) })
}

// pushed notes the branch's new commit.
func (p pusher) pushed(branch string, head id) error {
	ref := originRef(branch)
	was, err := p.repo.refs.Get(ref)
	if err == nil && was != head {
		err = p.forget(ref, was, head)
	}
	if err != nil {
		return err
	}
	if err := p.notes.Change(branch, func(n *notes.Note) { n.Pushed, n.Refused = head.String(), nil }); err != nil {
		return err
	}
	m := p.head.hold()
	defer m.release()
	_ = p.repo.large.sweep(m) // objects that stay go the next time
	return nil
}

// pack has the objects that a server with the branches tips lacks.
func (p pusher) pack(head id, tips []id) (io.ReadCloser, error) {
	commits, err := p.repo.newCommits(head, tips)
	if err != nil {
		return nil, err
	}
	slices.Reverse(commits)
	return p.repo.pack(commits)
}

// pack is that of package gather, without objects that came from the server.
func (r *repository) pack(commits []id) (io.ReadCloser, error) {
	return gather.Pack(r.objects, commits, r.partial.IsPromised)
}

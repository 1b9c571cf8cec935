package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
)

// tracked is where the tracked branch was when we last heard of it.
func (p *Provider) tracked() (id, error) { return p.repo.refs.Get(originRef(p.branch)) }

// isMerged reports whether the tracked branch has a commit.
func (p *Provider) isMerged(c id) (bool, error) {
	tracked, err := p.tracked()
	if err != nil || tracked.IsZero() || c.IsZero() {
		return false, err
	}
	return p.repo.isAncestor(c, tracked)
}

// isOver reports whether nothing of a branch waits to be merged: all is, or all
// was pushed and the branch deleted at the remote by who decided about it.
func (p *Provider) isOver(branch string, tip id) (bool, error) {
	if over, err := p.isMerged(tip); err != nil || over {
		return over, err
	}
	theirs, err := p.repo.refs.Get(originRef(branch))
	return theirs.IsZero() && p.noted(branch).Pushed == tip.String(), err
}

// Branches implements providers.Brancher.
func (p *Provider) Branches(ctx context.Context) (providers.Branches, error) {
	return do(ctx, p, providers.MethodBranches, providers.Locator{}, func() (providers.Branches, error) {
		tip, err := p.tracked()
		if err != nil {
			return providers.Branches{}, err
		}
		all := providers.Branches{Tracked: p.branch, Tip: revision(tip)}
		if on := p.on(); on != p.branch {
			all.On = on
		}
		refs, err := p.repo.refs.List(headRef(""))
		if err != nil {
			return all, err
		}
		for _, ref := range slices.Sorted(maps.Keys(refs)) {
			b, list, err := p.branchAt(strings.TrimPrefix(ref, headRef("")), refs[ref], tip)
			if err != nil {
				return all, err
			}
			if list {
				all.Unmerged = append(all.Unmerged, b)
			}
		}
		return all, nil
	})
}

// branchAt describes a branch, and says whether it is to be listed.
func (p *Provider) branchAt(name string, at, tracked id) (b providers.Branch, list bool, err error) {
	n := p.noted(name)
	b = providers.Branch{Name: name, Revision: revision(at), URL: n.URL, Wanted: n.Wanted}
	if n.Refused != nil {
		b.Refused = *n.Refused
	}
	if name == p.branch {
		return b, n.Refused != nil, nil
	}
	if over, err := p.isOver(name, at); err != nil || over {
		return b, false, err
	}
	theirs, err := p.repo.refs.Get(originRef(name))
	if err != nil {
		return b, false, err
	}
	b.Pushed = theirs == at
	if !b.Pushed && !theirs.IsZero() && p.repo.hasCommit(theirs) {
		if b.Pushed, err = p.repo.isAncestor(at, theirs); err != nil {
			return b, false, err
		}
	}
	commits, err := p.repo.newCommits(at, []id{tracked})
	b.Commits = len(commits)
	return b, err == nil, err
}

// Begin implements providers.Brancher.
func (p *Provider) Begin(ctx context.Context, branch string, ask bool) (providers.Revision, error) {
	return do(ctx, p, providers.MethodBegin, providers.Locator{}, func() (providers.Revision, error) {
		if branch != "" && !validBranch(branch) {
			return "", fmt.Errorf("branch %q: %w", branch, providers.ErrInvalid)
		}
		if ask {
			if err := p.learnBoth(ctx, branch); err != nil {
				return "", gone(err)
			}
		}
		if branch == "" {
			c, err := p.tracked()
			return revision(c), err
		}
		c, err := p.beginning(branch)
		return revision(c), err
	})
}

// beginning is where a branch begins, as far as is known.
func (p *Provider) beginning(branch string) (id, error) {
	ours, err := p.repo.refs.Get(headRef(branch))
	if err != nil {
		return id{}, err
	}
	theirs, err := p.repo.refs.Get(originRef(branch))
	if err != nil {
		return id{}, err
	}
	c := ours
	if !theirs.IsZero() && p.repo.hasCommit(theirs) {
		if c.IsZero() {
			c = theirs
		} else if behind, err := p.repo.isAncestor(ours, theirs); err != nil {
			return id{}, err
		} else if behind {
			c = theirs
		}
	}
	if !c.IsZero() {
		if over, err := p.isOver(branch, c); err != nil || !over {
			return c, err
		}
	}
	return p.tracked()
}

// Start implements providers.Brancher.
func (p *Provider) Start(ctx context.Context, branch string, from, to providers.Revision) error {
	_, err := do(ctx, p, providers.MethodStart, providers.Locator{}, func() (none struct{}, err error) {
		if branch == p.branch || branch != "" && !validBranch(branch) {
			return none, fmt.Errorf("branch %q: %w", branch, providers.ErrInvalid)
		}
		branch = orDefault(branch, p.branch)
		if to == "" && from == "" {
			return none, nil
		}
		next, err := p.commitOf(to)
		if err != nil {
			return none, err
		}
		if branch == p.on() {
			return none, p.adopt(from, next)
		}
		return none, p.start(branch, from, next)
	})
	return err
}

// start is Start of another branch. Until HEAD names it, nothing has happened:
// the line in outcomes comes to nothing, and a branch that is where it was not
// before is not looked at.
func (p *Provider) start(branch string, from providers.Revision, to id) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	head := p.now.Load().commit
	switch {
	case p.closed.Load():
		return providers.ErrClosed
	case revision(head) != from:
		return fmt.Errorf("the head is %q and not %q: %w", revision(head), from, providers.ErrConflict)
	}
	was, err := p.repo.refs.Get(headRef(branch))
	if err != nil {
		return err
	}
	if err := p.repo.leave(was, to, head); err != nil {
		return err
	}
	o := outcome{From: head.String(), To: to.String()}
	if head != to {
		if err := p.repo.note(o); err != nil {
			return err
		}
	}
	if err := p.repo.refs.Update(headRef(branch), was, to); err != nil {
		return err
	}
	if err := p.repo.refs.SetHead(branch); err != nil {
		return err
	}
	return p.showOn(branch, to)
}

// learnBoth brings the tracked branch and another here, if the remote has them.
func (p *Provider) learnBoth(ctx context.Context, branch string) error {
	s, err := p.remote.Ask(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	tracked, err := p.learn(ctx, s)
	if err != nil && !errors.Is(err, errNoBranch) {
		return err
	}
	end, err := p.alone(ctx)
	if err != nil {
		return err
	}
	defer end()
	if theirs, there := s.Branch(branch); there {
		return p.bring(ctx, branch, theirs)
	}
	return p.putAway(s, tracked)
}

// bring learns that a branch of our own is at a commit, with all that it needs.
// alone is held.
func (p *Provider) bring(ctx context.Context, branch string, theirs id) error {
	ref := originRef(branch)
	was, err := p.repo.refs.Get(ref)
	if err != nil || was == theirs {
		return err
	}
	known := p.repo.hasCommit(theirs)
	moved, err := p.repo.partial.moving(known)
	defer moved()
	if err != nil {
		return err
	}
	if !known {
		s, err := p.remote.Ask(ctx) // one session is for one fetch
		if err != nil {
			return err
		}
		defer s.Close()
		now, there := s.Branch(branch)
		if !there {
			return nil // it went meanwhile: the next time tells
		}
		if theirs = now; !p.repo.hasCommit(theirs) {
			if err := p.receive(ctx, s, theirs, was); err != nil {
				return err
			}
		}
	}
	return p.forget(ref, was, theirs)
}

// learnOwn is learn while commits go to a branch of our own: it says where to go
// on from, which is the tracked branch unless something was pushed that it lacks.
func (p *Provider) learnOwn(ctx context.Context, s *remote.Session, tracked id) (id, error) {
	end, err := p.alone(ctx)
	if err != nil {
		return id{}, err
	}
	defer end()
	if err := p.putAway(s, tracked); err != nil {
		return id{}, err
	}
	up, err := p.upstream(s, tracked)
	if err != nil {
		return id{}, err
	}
	theirs, there := s.Branch(up)
	if there {
		if err := p.bring(ctx, up, theirs); err != nil {
			return id{}, err
		}
		if theirs, err = p.repo.refs.Get(originRef(up)); err != nil {
			return id{}, err
		}
		merged, err := p.isMerged(theirs)
		if err != nil {
			return id{}, err
		}
		there = !merged && !theirs.IsZero()
	}
	switch {
	case there:
		return theirs, nil
	case tracked.IsZero():
		return id{}, errNoBranch
	}
	return tracked, nil
}

// upstream is the branch that the head was pushed to: the one it is on, or, if
// that is new, the one it was on before.
func (p *Provider) upstream(s *remote.Session, tracked id) (string, error) {
	now := p.now.Load()
	if _, there := s.Branch(now.branch); there {
		return now.branch, nil
	}
	refs, err := p.repo.refs.List(originRef(""))
	if err != nil {
		return "", err
	}
	tips := map[id]string{}
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		name := strings.TrimPrefix(ref, originRef(""))
		if _, there := s.Branch(name); there && name != p.branch {
			tips[refs[ref]] = name
		}
	}
	if len(tips) == 0 || now.commit.IsZero() {
		return now.branch, nil
	}
	commits, err := p.repo.newCommits(now.commit, []id{tracked})
	for _, c := range commits {
		if name, known := tips[c]; known {
			return name, err
		}
	}
	return now.branch, err
}

// putAway forgets the branches of our own that the remote has no more, and ends
// those of which nothing waits to be merged. What they had stays.
func (p *Provider) putAway(s *remote.Session, tracked id) error {
	refs, err := p.repo.refs.List(originRef(""))
	if err != nil {
		return err
	}
	for ref, was := range refs {
		name := strings.TrimPrefix(ref, originRef(""))
		if _, there := s.Branch(name); !there && name != p.branch {
			if err := p.forget(ref, was, id{}); err != nil {
				return err
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if refs, err = p.repo.refs.List(headRef("")); err != nil {
		return err
	}
	for ref, tip := range refs {
		name := strings.TrimPrefix(ref, headRef(""))
		if name == p.branch || name == p.on() {
			continue
		}
		over, err := p.isOver(name, tip)
		if err != nil {
			return err
		}
		if over {
			if err := p.end(name, tip, tracked); err != nil {
				return err
			}
		}
	}
	return nil
}

// end takes away the name of a branch that is over.
func (p *Provider) end(name string, tip, tracked id) error {
	if err := p.repo.leave(tip, tracked, p.now.Load().commit); err != nil {
		return err
	}
	if err := p.repo.refs.Update(headRef(name), tip, id{}); err != nil {
		return err
	}
	return p.note(name, func(n *note) { *n = note{} })
}

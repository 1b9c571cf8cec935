package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/notes"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
)

// tracked is the tracked branch's commit, as of the last answer.
func (g *origin) tracked() (id, error) { return g.repo.refs.Get(originRef(g.branch)) }

// unpushed counts the commits of the head that the remote is not known to have.
func (g *origin) unpushed() (int, error) {
	theirs, err := g.repo.refs.List(originRef(""))
	known, at := knownOf(theirs, g.notes), g.head.now.Load().commit
	if err != nil || at.IsZero() || slices.Contains(known, at) {
		return 0, err
	}
	commits, err := g.repo.newCommits(at, known)
	return len(commits), err
}

// knownOf are the commits that a remote is known to have, by its branches or a noted push.
func knownOf(theirs map[string]id, noted *notes.Notes) []id {
	known := slices.Collect(maps.Values(theirs))
	for _, pushed := range noted.Pushed() {
		if plumbing.IsHash(pushed) {
			known = append(known, plumbing.NewHash(pushed))
		}
	}
	return known
}

// isMerged reports whether the tracked branch has a commit.
func (g *origin) isMerged(c id) (bool, error) {
	tracked, err := g.tracked()
	if err != nil || tracked.IsZero() || c.IsZero() {
		return false, err
	}
	return g.repo.isAncestor(c, tracked)
}

// isOver reports whether no commit of a branch waits to be merged: all are merged, or all were
// pushed and the branch was then deleted on the remote.
func (g *origin) isOver(branch string, tip id) (bool, error) {
	if over, err := g.isMerged(tip); err != nil || over {
		return over, err
	}
	theirs, err := g.repo.refs.Get(originRef(branch))
	return theirs.IsZero() && g.notes.Of(branch).Pushed == tip.String(), err
}

// branchAt describes a branch, and reports whether it is to be listed.
func (g *origin) branchAt(name string, at, tracked id) (b providers.Branch, list bool, err error) {
	n := g.notes.Of(name)
	b = providers.Branch{Name: name, Revision: revision(at), URL: n.URL, Wanted: n.Wanted}
	if n.Refused != nil {
		b.Refused = *n.Refused
	}
	if name == g.branch {
		return b, n.Refused != nil, nil
	}
	if over, err := g.isOver(name, at); err != nil || over {
		return b, false, err
	}
	theirs, err := g.repo.refs.Get(originRef(name))
	commits, missing := g.repo.newCommits(at, []id{tracked})
	unpushed, unread := g.repo.newCommits(at, []id{tracked, theirs})
	b.Commits, b.Pushed = len(commits), len(unpushed) == 0
	err = firstError(err, missing, unread)
	return b, err == nil, err
}

// beginning is the commit at which a branch begins, as far as is known.
func (g *origin) beginning(branch string) (id, error) {
	if branch == "" {
		return g.tracked()
	}
	ours, oursErr := g.repo.refs.Get(headRef(branch))
	theirs, err := g.repo.refs.Get(originRef(branch))
	if err = firstError(oursErr, err); err != nil {
		return id{}, err
	}
	c := ours
	if !theirs.IsZero() && g.repo.hasCommit(theirs) {
		if c.IsZero() {
			c = theirs
		} else if behind, err := g.repo.isAncestor(ours, theirs); err != nil {
			return id{}, err
		} else if behind {
			c = theirs
		}
	}
	if !c.IsZero() {
		if over, err := g.isOver(branch, c); err != nil || !over {
			return c, err
		}
	}
	return g.tracked()
}

// learnBoth fetches the tracked branch and another, if the remote has them.
func (g *origin) learnBoth(ctx context.Context, branch string) error {
	s, err := g.remote.Ask(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	tracked, err := g.learn(ctx, s)
	if err != nil && !errors.Is(err, errNoBranch) {
		return err
	}
	t, err := g.alone(ctx)
	if err != nil {
		return err
	}
	defer t.end()
	if theirs, there := s.Branch(branch); there {
		return t.bring(ctx, branch, theirs)
	}
	return t.putAway(s, tracked)
}

// bring fetches the commit of a branch of our own, with its objects, and records it.
func (t talking) bring(ctx context.Context, branch string, theirs id) error {
	ref := originRef(branch)
	was, err := t.repo.refs.Get(ref)
	if err != nil || was == theirs {
		return err
	}
	known := t.repo.hasCommit(theirs)
	moved, err := t.repo.partial.Moving(known)
	defer moved()
	if err != nil {
		return err
	}
	if !known {
		s, err := t.remote.Ask(ctx) // one session is for one fetch
		if err != nil {
			return err
		}
		defer s.Close()
		now, there := s.Branch(branch)
		if !there {
			return nil // it was deleted meanwhile: the next fetch tells
		}
		if theirs = now; !t.repo.hasCommit(theirs) {
			if err := t.receive(ctx, s, theirs, was); err != nil {
				return err
			}
		}
	}
	return t.forget(ref, was, theirs)
}

// learnOwn is learn while commits go to a branch of our own: it gives the commit to go on from,
// which is the tracked branch's unless commits were pushed that it lacks.
func (g *origin) learnOwn(ctx context.Context, s *remote.Session, tracked id) (id, error) {
	t, err := g.alone(ctx)
	if err != nil {
		return id{}, err
	}
	defer t.end()
	if err := t.putAway(s, tracked); err != nil {
		return id{}, err
	}
	up, err := g.upstream(s, tracked)
	if err != nil {
		return id{}, err
	}
	theirs, there := s.Branch(up)
	if there {
		if err := t.bring(ctx, up, theirs); err != nil {
			return id{}, err
		}
		if theirs, err = g.repo.refs.Get(originRef(up)); err != nil {
			return id{}, err
		}
		merged, err := g.isMerged(theirs)
		if err != nil {
			return id{}, err
		}
		there = !merged && !theirs.IsZero()
	}
	switch {
	case there:
		return theirs, nil
	case tracked.IsZero():
		return id{}, providers.Kinded(fmt.Errorf("%s has no branch %s", g.o.URL, up), errNoBranch)
	}
	return tracked, nil
}

// upstream is the branch that the head was pushed to: the one it is on, or, if
// that is new, the one it was on before.
func (g *origin) upstream(s *remote.Session, tracked id) (string, error) {
	now := g.head.now.Load()
	if _, there := s.Branch(now.branch); there {
		return now.branch, nil
	}
	refs, err := g.repo.refs.List(originRef(""))
	if err != nil {
		return "", err
	}
	tips := map[id]string{}
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		name := strings.TrimPrefix(ref, originRef(""))
		if _, there := s.Branch(name); there && name != g.branch {
			tips[refs[ref]] = name
		}
	}
	if len(tips) == 0 || now.commit.IsZero() {
		return now.branch, nil
	}
	commits, err := g.repo.newCommits(now.commit, []id{tracked})
	for _, c := range commits {
		if name, known := tips[c]; known {
			return name, err
		}
	}
	return now.branch, err
}

// putAway forgets the branches of our own that the remote has no more, and ends those of which no
// commit waits to be merged. Their commits stay.
func (t talking) putAway(s *remote.Session, tracked id) error {
	refs, err := t.repo.refs.List(originRef(""))
	if err != nil {
		return err
	}
	for ref, was := range refs {
		name := strings.TrimPrefix(ref, originRef(""))
		if _, there := s.Branch(name); !there && name != t.branch {
			if err := t.forget(ref, was, id{}); err != nil {
				return err
			}
		}
	}
	m := t.head.hold()
	defer m.release()
	if refs, err = t.repo.refs.List(headRef("")); err != nil {
		return err
	}
	for ref, tip := range refs {
		name := strings.TrimPrefix(ref, headRef(""))
		if name == t.branch || name == t.on() {
			continue
		}
		over, err := t.isOver(name, tip)
		if err != nil {
			return err
		}
		if over {
			if err := t.endBranch(m, name, tip, tracked); err != nil {
				return err
			}
		}
	}
	return nil
}

// endBranch removes the name of a branch that is over.
func (t talking) endBranch(m moving, name string, tip, tracked id) error {
	if err := t.repo.leave(tip, tracked, m.now.Load().commit); err != nil {
		return err
	}
	if err := t.repo.refs.Update(headRef(name), tip, id{}); err != nil {
		return err
	}
	return t.notes.Change(name, func(n *notes.Note) { *n = notes.Note{} })
}

package git

import (
	"context"
	"fmt"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/notes"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
)

// origin is the remote of a clone, with the known state of its branches: refs/remotes/origin, as
// git has it, and notes.
type origin struct {
	o      Options
	repo   *repository
	remote *remote.Remote
	branch string // that is tracked
	notes  *notes.Notes
	head   *head // nil while the clone is made

	pool *shared       // while the clone is made, if clones share anything
	talk chan struct{} // holds a token while a reference of the remote is learnt
}

// A talking is the remote during a fetch or push, until end: there is one at a time.
type talking struct{ *origin }

// alone waits until no other fetch or push is under way. The error is ctx's.
func (g *origin) alone(ctx context.Context) (talking, error) {
	select {
	case g.talk <- struct{}{}:
		return talking{g}, nil
	case <-ctx.Done():
		return talking{}, ctx.Err()
	}
}

func (t talking) end() { <-t.talk }

// on is the branch that commits go to: the tracked one, or one of our own.
func (g *origin) on() string {
	if g.head == nil {
		return g.branch
	}
	return g.head.on()
}

// errNoBranch says that the remote has no such branch.
var errNoBranch = fmt.Errorf("the remote has no such branch: %w", providers.ErrNotExist)

// haves is the number of commits that a server is told of in a fetch.
const haves = 256

// learn fetches the tracked branch, as a session saw it.
func (g *origin) learn(ctx context.Context, s *remote.Session) (id, error) {
	t, err := g.alone(ctx)
	if err != nil {
		return id{}, err
	}
	defer t.end()
	ref := originRef(g.branch)
	was, err := g.repo.refs.Get(ref)
	if err != nil {
		return id{}, err
	}
	theirs, there := s.Branch(g.branch)
	if !there {
		if !was.IsZero() {
			err = g.forget(ref, was, id{})
		}
		return id{}, firstError(err, providers.Kinded(fmt.Errorf("%s has no branch %s", g.o.URL, g.branch), errNoBranch))
	}
	if was == theirs {
		return theirs, nil
	}
	known := g.repo.hasCommit(theirs)
	moved, err := g.repo.partial.Moving(known)
	defer moved()
	if err == nil && !known {
		err = g.receive(ctx, s, theirs, was)
	}
	if err != nil {
		return id{}, err
	}
	return theirs, g.forget(ref, was, theirs)
}

// receive fetches a commit with all that it needs.
func (g *origin) receive(ctx context.Context, s *remote.Session, theirs, was id) error {
	head, err := g.repo.refs.Get(headRef(g.on()))
	if err != nil {
		return err
	}
	have, err := g.repo.recent(haves, was, head)
	switch {
	case err != nil:
	case len(have) == 0:
		err = g.receiveFirst(ctx, s, theirs)
	default:
		err = g.fetchMore(ctx, s, remote.Want{Commit: theirs, Haves: have, Blobless: g.repo.partial.MayMiss() && s.Filters()})
	}
	if err != nil {
		return err
	}
	if _, err := g.repo.viewOf(theirs); err != nil {
		return fmt.Errorf("the server did not send what it said: %w", err)
	}
	return nil
}

// fetchMore fetches the wanted commit, and marks the clone before one without blobs.
func (g *origin) fetchMore(ctx context.Context, s *remote.Session, w remote.Want) error {
	if !w.Blobless {
		return s.Fetch(ctx, w, g.repo.objects.Receive)
	}
	if err := g.repo.partial.Without(); err != nil {
		return err
	}
	return s.Fetch(ctx, w, g.repo.objects.ReceivePromised)
}

// forget moves the record of a branch. Commits that the remote has lost stay local.
func (g *origin) forget(ref string, was, is id) error {
	head, err := g.repo.refs.Get(headRef(g.on()))
	if err != nil {
		return err
	}
	if err := g.repo.leave(was, is, head); err != nil {
		return err
	}
	return g.repo.refs.Update(ref, was, is)
}

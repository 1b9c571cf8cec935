package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// Send resolves an open set first, then makes and sends one, for a request (nil: no commit was
// asked for). It is called between Begin and End.
func (c *Committer) Send(ctx context.Context, r *Request, due uint64) (pending.Report, error) {
	if err := c.resolveLast(ctx); err != nil {
		return pending.Report{}, err
	}
	if err := c.o.Guard.Secrets.Wait(ctx); err != nil {
		return pending.Report{}, err
	}
	defer c.o.Kept.End()
	losses := map[string]int{} // of one name in a row, not of the set: others may change many names
	for {
		s, u, err := c.makeSet(ctx, due)
		if err != nil {
			return pending.Report{}, err
		}
		for _, n := range s.Stopped {
			c.o.Holds.Hold(n.Link, n.Err)
		}
		report := c.leftOut(s)
		if len(s.Order) == 0 {
			return report, nil
		}
		report.Changes = len(s.Order)
		// A set that the remote gets must be known locally after a loss of power too, or it would
		// look like another writer's change.
		if err := c.o.Tree.Sync(); err != nil {
			return report, err
		}
		report.Revision, report.Committed, err = c.commitOne(ctx, s, u, r)
		if err == nil || providers.MayHaveHappened(err) {
			return report, err
		}
		at := culprit(err)
		if losses[at] >= maxTries {
			return report, err
		}
		losses[at]++
		if err = c.refused(ctx, s, err); err != nil {
			return report, err
		}
	}
}

// resolveLast settles the previous set.
func (c *Committer) resolveLast(ctx context.Context) error {
	head := c.o.Head.Move()
	defer head.Release()
	return c.settle(ctx, head)
}

// commitOne sends a set and notes its outcome.
func (c *Committer) commitOne(ctx context.Context, s *Set, u Unresolved, r *Request) (providers.Revision, bool, error) {
	head := c.o.Head.Move()
	defer head.Release()
	if stale, err := c.outdated(ctx, head, s, u.Op); stale {
		return "", false, errors.Join(err, upload.ErrAgain)
	}
	err := c.hydrateRemoved(ctx, s)
	if err == nil {
		s.content, err = s.Open(ctx, c.bodies())
	}
	if err != nil {
		return "", false, errors.Join(err, c.drop(u))
	}
	defer s.content.Close()
	result := providers.CommitResult{}
	if len(s.Changes) > 0 {
		if result, err = c.o.Remote.Commit(ctx, c.changeSet(s, u, r)); err != nil {
			if providers.MayHaveHappened(err) {
				return "", false, err
			}
			return "", false, errors.Join(s.content.Cause(err), c.drop(u))
		}
	}
	return result.Revision, result.Committed, c.note(u, result, result.Committed)
}

// changeSet is a set in terms of the remote.
func (c *Committer) changeSet(s *Set, u Unresolved, r *Request) providers.ChangeSet {
	v := c.o.Tree.Lock()
	merging := revision.Merging(v)
	c.o.Tree.Unlock()
	change := providers.ChangeSet{Changes: s.Changes, Op: u.Op, Message: s.Message(), Merge: merging}
	if r != nil {
		change.Author, change.CoAuthors, change.Trailers = r.about.Author, r.about.CoAuthors, r.about.Trailers
		if r.about.Message != "" {
			change.Message = r.about.Message
		}
	}
	return change
}

// bodies are the dependencies for reading the content of sets.
func (c *Committer) bodies() BodyOptions {
	return BodyOptions{
		Tree: c.o.Tree, IsOpen: c.o.Open.IsOpen, Guard: c.o.Guard, Moving: c.o.Monitor.Moving, Log: c.o.Log,
		Pack: func(ctx context.Context, p *Planned) (*upload.Payload, error) {
			return c.o.Kept.Pack(ctx, p, c.o.Executor.Pack)
		},
		Found: func(ino table.Ino, f Finding) {
			c.o.Tree.Lock()
			defer c.o.Tree.Unlock()
			c.found[ino] = f
		},
		Progress: func(done, total int) { c.o.Monitor.Progress(Sending, done, total) },
	}
}

// hydrateRemoved fetches the whole content of files that lost their name while a program still
// reads them, before the remote loses it too. No name can be looked at before the outcome of the
// set is known.
func (c *Committer) hydrateRemoved(ctx context.Context, s *Set) error {
	for _, p := range s.Order {
		if !p.Last {
			continue
		}
		if err := c.o.Content.HydrateNameless(ctx, p.Rec.Remote.Ino, p.Link.Name); err != nil {
			return err
		}
	}
	return nil
}

// outdated reports whether a pull came between the making of a set and its sending: one that ended
// has resolved the set, and after one that did not, or a crash, the table must first be brought up
// to date with the head.
func (c *Committer) outdated(ctx context.Context, head revision.Moving, s *Set, op string) (stale bool, err error) {
	v := c.o.Tree.Lock()
	first := v.Record(s.Order[0].Link).Attempt // resolving a set ends all its attempts
	c.o.Tree.Unlock()
	switch is, err := c.o.Revisions.IsSynced(ctx, head.Held); {
	case err != nil:
		return true, err
	case is:
		return first == nil || first.Op != op, nil
	}
	return true, c.settle(ctx, head)
}

// refused decides what to do about a set that was not taken: the name that caused it is looked at,
// or held back. nil: try again with the rest.
func (c *Committer) refused(ctx context.Context, s *Set, cause error) error {
	var body *BodyError
	if errors.As(cause, &body) {
		if err := c.o.Content.Unsendable(ctx, body.Link, body.Err); err == upload.ErrAgain { // never wrapped
			return nil
		}
	}
	if c.o.Passes(cause) || providers.MayHaveHappened(cause) || errors.Is(cause, upload.ErrAgain) {
		return cause
	}
	if body != nil {
		c.o.Holds.Hold(body.Link, body.Err)
		if g := pending.RefusalOf(cause); g != nil && g.Secret {
			s.content.SearchAll(ctx)
		}
		return nil
	}
	names := s.About(cause)
	if len(names) == 0 {
		return cause
	}
	for _, p := range names {
		err := c.refusedName(ctx, s, p, cause)
		switch {
		case err == nil:
		case c.o.Passes(err):
			return err
		default:
			c.o.Holds.Hold(p.Link, err)
		}
	}
	return nil
}

// refusedName looks at a name for which a set was refused. An error says why it is held back.
func (c *Committer) refusedName(ctx context.Context, s *Set, p *Planned, cause error) error {
	lost := upload.IsLost(cause) // another change came first
	switch {
	case errors.Is(cause, providers.ErrTooLarge) && p.Index >= 0 && s.Changes[p.Index].Body.Size > c.o.Guard.MaxFile:
		return c.o.Guard.TooLarge(s.Changes[p.Index].Body.Size) // until it has changed
	case p.Ino == 0 && errors.Is(cause, providers.ErrNotEmpty):
		if err := c.o.Executor.Resurrect(p.Link, cause); !errors.Is(err, upload.ErrAgain) {
			return err
		}
		return nil
	case !lost:
		return cause
	}
	if p.Index >= 0 && !s.Changes[p.Index].From.IsRoot() {
		// The remote entry that the content was to be taken from may be gone.
		for _, l := range c.remoteLinks(p.Ino) {
			if err := c.o.Names.PreconditionFailed(ctx, l, cause); err != nil {
				return err
			}
		}
	}
	return c.o.Names.PreconditionFailed(ctx, p.Link, cause)
}

// remoteLinks are the remote's names of an inode at the moment.
func (c *Committer) remoteLinks(ino table.Ino) (all []table.Link) {
	v := c.o.Tree.Lock()
	defer c.o.Tree.Unlock()
	if n := v.Inode(ino); n != nil {
		all = slices.Clone(n.RemoteLinks)
	}
	return all
}

// culprit is the place that an error is about, or the name; "" of none.
func culprit(err error) string {
	var body *BodyError
	if errors.As(err, &body) {
		return fmt.Sprint(body.Link)
	}
	var at *providers.Error
	if !errors.As(err, &at) {
		return ""
	}
	return at.Locator.String()
}

// leftOut lists the names that a set has to leave out, as far as they still differ.
func (c *Committer) leftOut(s *Set) (r pending.Report) {
	look := func(names []table.Link) {
		v := c.o.Tree.Lock()
		defer c.o.Tree.Unlock()
		for _, l := range names {
			if v.IsDirty(l) {
				r.HoldBack(c.o.Holds.Of(v, l))
			}
		}
		r.Revision = revision.Committed(v)
	}
	look(nil)
	for piece := range slices.Chunk(s.Left, PieceSize) {
		look(piece)
	}
	return r
}

package revision

import (
	"context"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// Pull fetches the remote's present revision, and brings the working copy to it. Unpushed local
// commits are no obstacle: they are made anew on top of it, or their changes become changes of
// this working copy again. The remote must be a Store.
func (f *Follower) Pull(w Waiting) (PullReport, error) {
	if err := f.knowUpstream(w); err != nil {
		return PullReport{}, err
	}
	had := f.recorded(Upstream)
	var to providers.Revision
	err := f.o.Host.Retry(w, func(ctx context.Context) (err error) {
		to, err = f.store.Fetch(ctx)
		return err
	})
	if errors.Is(err, providers.ErrNotExist) && had == "" {
		f.o.Chores.Succeeded(chores.Pull) // it has answered
		return PullReport{Skipped: "the remote has no such branch yet"}, nil
	}
	if errors.Is(err, providers.ErrNotExist) {
		err = fmt.Errorf("%w any more: a push makes it again, with all that is committed; if it was renamed, give its new name in the manifest of the storage", err)
		f.o.Chores.Ended(chores.Pull, err)
		return PullReport{Skipped: err.Error()}, nil
	}
	if err != nil {
		return PullReport{}, err
	}
	w.Moved()
	head := f.o.Head.Move()
	defer head.Release()
	return f.advance(w, head, had, to)
}

// advance moves the head to a revision that was fetched, from a remote whose last known revision
// was had.
func (f *Follower) advance(w Waiting, head Moving, had, to providers.Revision) (PullReport, error) {
	if err := f.o.Host.Resolve(w, head); err != nil {
		return PullReport{}, err
	}
	from, err := f.store.Head(w)
	if err != nil {
		return PullReport{}, err
	}
	report, err := f.sync(w, head)
	if err == nil && from == to && f.recorded(Upstream) != to {
		err = f.setUpstream(w, to)
	}
	if err != nil || from == to {
		report.Revision = from
		return report, err
	}
	base := providers.Revision("")
	if from != "" {
		if base, err = f.baseOf(w, from, to, had); err != nil {
			return PullReport{}, err
		}
	}
	theirs, adopt := to, f.adopt
	switch base {
	case to:
		report.Revision = from // only the local commits went on
		return report, nil
	case from:
	default:
		ours := from
		if from, to, err = f.diverged(w, head, rewinding{From: from, Base: base, To: base}, to); err != nil {
			return PullReport{}, err
		}
		if report.TakenBack = from != ours; to != theirs {
			adopt = f.adoptMadeAnew
		}
	}
	more, err := adopt(w, head, f.store, from, to)
	if err == nil {
		err = f.setUpstream(w, theirs)
	}
	report.Add(more)
	return report, err
}

// diverged joins local unpushed commits with a revision that does not have them. It returns where
// the head is then and where it is to go: to the local commits made anew on top of theirs, if
// possible, else to theirs, with the local commits' changes as changes of this working copy again.
func (f *Follower) diverged(w Waiting, head Moving, r rewinding, theirs providers.Revision) (from, to providers.Revision, err error) {
	if r.Base == "" {
		r.To = theirs
	} else if !f.o.MergeCommits {
		to, err := f.rebased(w, r.Base, r.From, theirs)
		if err != nil || to != "" {
			return r.From, to, err
		}
	}
	merging := providers.Revision("") // the commits are about to be taken back
	if f.o.MergeCommits {
		merging = r.From
	}
	if err := f.record(SetMerging, merging); err != nil {
		return "", "", err
	}
	return r.To, theirs, f.rewind(w, head, r)
}

// rebased is the local revisions made anew on top of theirs; "" when that is impossible, because
// both have changed the same.
func (f *Follower) rebased(w Waiting, base, from, onto providers.Revision) (to providers.Revision, err error) {
	s, ok := providers.As[providers.Rebaser](f.o.Provider)
	if !ok {
		return "", nil
	}
	err = f.o.Host.Retry(w, func(ctx context.Context) (err error) {
		to, err = s.Rebase(ctx, base, from, onto, f.o.Combine)
		return err
	})
	switch {
	case errors.Is(err, providers.ErrConflict), errors.Is(err, providers.ErrUnsupported):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("rebase: %w", err)
	case to == onto: // others had made the same changes
		err = f.o.Host.Update(f.backlog.TookBack)
	}
	return to, err
}

// An adopter makes the store show another revision.
type adopter interface {
	Adopt(ctx context.Context, from, to providers.Revision) error
}

// adopt is goTo for a pulled revision.
func (f *Follower) adopt(w Waiting, head Moving, s adopter, from, to providers.Revision) (PullReport, error) {
	return f.goTo(w, head, s, from, to, Gone)
}

// goTo makes the store show a revision, and the working copy with it. Before that it checks
// whether the change would halt.
func (f *Follower) goTo(w Waiting, head Moving, s adopter, from, to providers.Revision, d Deletions) (PullReport, error) {
	then, err := f.store.At(w, to)
	if err != nil {
		return PullReport{}, err
	}
	defer then.Close()
	known := from
	if from != f.Synced() {
		known = ""
	}
	c, err := f.compare(w, then, known, to)
	if err != nil {
		return PullReport{}, err
	}
	defer c.End()
	if err := c.Check(head.Held, d); err != nil {
		return PullReport{}, err
	}
	if err := f.o.Host.Update(func(tx *tree.Tx) error {
		Comes(tx, f.o.Now().UnixNano())
		return PassedBy(tx, from)
	}); err != nil {
		return PullReport{}, err
	}
	if err := f.o.Host.Retry(w, func(ctx context.Context) error { return s.Adopt(ctx, from, to) }); err != nil {
		return PullReport{}, fmt.Errorf("adopt: %w", err)
	}
	r, err := c.Apply(head.Held, to, d)
	r.Revision = to
	return r, err
}

// adoptMadeAnew is adopt for local commits that were made anew. A push that begins before the head
// is at them, or ends after, has not sent them.
func (f *Follower) adoptMadeAnew(w Waiting, head Moving, s adopter, from, to providers.Revision) (PullReport, error) {
	if err := f.o.Host.Update(f.backlog.Remade); err != nil {
		return PullReport{}, err
	}
	r, err := f.adopt(w, head, s, from, to)
	return r, errors.Join(err, f.o.Host.Update(f.backlog.Remade))
}

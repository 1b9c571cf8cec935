package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/providers"
)

// revisions is a store of whole revisions, with a remote.
type revisions struct {
	providers.Syncer
	providers.Snapshotter
	providers.Committer
}

// syncer is the backend's side that pulls whole revisions, if it has one.
func (v *Volume) syncer() (s revisions, ok bool) {
	var all [3]bool
	s.Syncer, all[0] = providers.As[providers.Syncer](v.p)
	s.Snapshotter, all[1] = providers.As[providers.Snapshotter](v.p)
	s.Committer, all[2] = providers.As[providers.Committer](v.p)
	return s, all == [3]bool{true, true, true}
}

// pullRevision brings the revision here that the remote has now. Ours that were
// not pushed are no obstacle: what they changed becomes a change of this
// working copy again, on top of theirs.
func (v *Volume) pullRevision(w *waiting, s revisions) (PullReport, error) {
	if err := v.knowUpstream(w, s); err != nil {
		return PullReport{}, err
	}
	had := recorded(v, revision.Upstream)
	var to providers.Revision
	err := v.retry(w, func(ctx context.Context) (err error) {
		to, err = s.Fetch(ctx)
		return err
	})
	if errors.Is(err, providers.ErrNotExist) {
		v.fails(chores.Pull, nil) // it has answered
		return PullReport{Skipped: "the remote has no such branch"}, nil
	}
	if err != nil {
		return PullReport{}, fmt.Errorf("fetch: %w", err)
	}
	w.moved()
	head := v.head.Move()
	defer head.Release()
	return v.advance(w, head, s, had, to)
}

// advance moves the head to a revision that was fetched, of a remote that was known
// to have another before it was asked.
func (v *Volume) advance(w *waiting, head revision.Moving, s revisions, had, to providers.Revision) (PullReport, error) {
	// What a set whose outcome is open did is in the head, or never will be.
	if err := v.resolveOpenSet(w, head); err != nil {
		return PullReport{}, err
	}
	from, err := s.Head(w)
	if err != nil {
		return PullReport{}, err
	}
	report, err := v.syncWith(w, head, s)
	if err == nil && from == to && recorded(v, revision.Upstream) != to {
		err = v.setUpstream(w, to)
	}
	if err != nil || from == to {
		report.Revision = from
		return report, err
	}
	base := providers.Revision("")
	if from != "" {
		if base, err = v.baseOf(w, s, from, to, had); err != nil {
			return PullReport{}, err
		}
	}
	theirs, adopt := to, v.adoptRevision
	switch base {
	case to:
		report.Revision = from // only ours went on
		return report, nil
	case from:
	default:
		ours := from
		if from, to, err = v.diverged(w, head, s, rewinding{From: from, Base: base, To: base}, to); err != nil {
			return PullReport{}, err
		}
		if report.TakenBack = from != ours; to != theirs {
			adopt = v.adoptMadeAnew
		}
	}
	more, err := adopt(w, head, s, from, to)
	if err == nil {
		err = v.setUpstream(w, theirs)
	}
	report.add(more)
	return report, err
}

// diverged brings what was committed here and not pushed together with a revision
// that does not have it, and returns where the head is then and where it is to go:
// to our commits made anew on top of theirs, if that can be, else to theirs, with
// what ours changed a change of this working copy again.
func (v *Volume) diverged(w *waiting, head revision.Moving, s revisions, r rewinding, theirs providers.Revision) (from, to providers.Revision, err error) {
	if r.Base == "" {
		r.To = theirs
	} else if !v.o.Policy.MergeCommits {
		to, err := v.rebased(w, r.Base, r.From, theirs)
		if err != nil || to != "" {
			return r.From, to, err
		}
	}
	merging := providers.Revision("") // it is about to be taken back
	if v.o.Policy.MergeCommits {
		merging = r.From
	}
	if err := v.record(func(tx revision.Writer) { revision.SetMerging(tx, merging) }); err != nil {
		return "", "", err
	}
	return r.To, theirs, v.rewind(w, head, s, r)
}

// rebased is our revisions made anew on top of theirs; "" when that cannot be,
// because both have changed the same.
func (v *Volume) rebased(w *waiting, base, from, onto providers.Revision) (to providers.Revision, err error) {
	s, ok := providers.As[providers.Rebaser](v.p)
	if !ok {
		return "", nil
	}
	err = v.retry(w, func(ctx context.Context) (err error) {
		to, err = s.Rebase(ctx, base, from, onto, v.o.Policy.Conflict.CombineTexts)
		return err
	})
	switch {
	case errors.Is(err, providers.ErrConflict), errors.Is(err, providers.ErrUnsupported):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("rebase: %w", err)
	case to == onto: // others had made the same changes
		err = v.update((*Tx).noneUnpushed)
	}
	return to, err
}

// adoptRevision makes the store show a revision, and the working copy with it.
// What would halt is found out before.
func (v *Volume) adoptRevision(w *waiting, head revision.Moving, s revisions, from, to providers.Revision) (PullReport, error) {
	tree, err := s.At(w, to)
	if err != nil {
		return PullReport{}, err
	}
	defer tree.Close()
	mine := v.beginObservation()
	defer v.endObservation(mine)
	level := from
	if from != v.syncedRevision() {
		level = ""
	}
	all, err := v.gatherTo(w, tree, level, to)
	if err != nil {
		return PullReport{}, err
	}
	if _, err := v.applyAll(w, head.Held, tree, all, mine, applying{dry: true}); err != nil {
		return PullReport{}, err
	}
	if err := v.update(func(v *Tx) error {
		revision.Comes(v.table, v.now())
		return revision.PassedBy(v.table, from)
	}); err != nil {
		return PullReport{}, err
	}
	if err := v.retry(w, func(ctx context.Context) error { return s.Adopt(ctx, from, to) }); err != nil {
		return PullReport{}, fmt.Errorf("adopt: %w", err)
	}
	r, err := v.applyAll(w, head.Held, tree, all, mine, applying{level: to})
	r.Revision = to
	return r, err
}

// adoptMadeAnew is adoptRevision for commits of ours that were made anew. A push that
// begins before the head is there, or ends after, has not sent them.
func (v *Volume) adoptMadeAnew(w *waiting, head revision.Moving, s revisions, from, to providers.Revision) (PullReport, error) {
	if err := v.update((*Tx).anotherLine); err != nil {
		return PullReport{}, err
	}
	r, err := v.adoptRevision(w, head, s, from, to)
	return r, errors.Join(err, v.update((*Tx).anotherLine))
}

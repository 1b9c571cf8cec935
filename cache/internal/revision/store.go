package revision

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Store is a clone: a store of whole revisions that can compare them, and that can fetch those of
// others.
type Store struct {
	providers.Syncer
	providers.Snapshotter
	providers.Committer
	providers.Differ
}

// StoreOf is the Store interface of p, if p has it.
func StoreOf(p providers.Provider) (s Store, ok bool) {
	var all [4]bool
	s.Syncer, all[0] = providers.As[providers.Syncer](p)
	s.Snapshotter, all[1] = providers.As[providers.Snapshotter](p)
	s.Committer, all[2] = providers.As[providers.Committer](p)
	s.Differ, all[3] = providers.As[providers.Differ](p)
	return s, all == [4]bool{true, true, true, true}
}

// Begins is the revision that a working copy begins with, and when it was made.
func (s Store) Begins(ctx context.Context) (head providers.Revision, made time.Time, err error) {
	if head, err = s.Head(ctx); err != nil || head == "" {
		return head, made, err
	}
	found, err := s.Find(ctx, string(head))
	if errors.Is(err, providers.ErrNotExist) {
		err = nil
	}
	return head, found.Time, err
}

// entries are all entries of a revision, as the differences from an empty one.
func (s Store) entries(w Waiting, r providers.Revision) (all []providers.Difference, err error) {
	at, err := s.At(w, r)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	for info, err := range providers.All(w, at, providers.Locator{}, providers.ListOptions{Recursive: true}) {
		if err != nil {
			return nil, err
		}
		w.Moved()
		all = append(all, providers.Difference{Locator: info.Locator, Is: &info})
	}
	slices.SortFunc(all, func(a, b providers.Difference) int { return a.Locator.Compare(b.Locator) })
	return all, nil
}

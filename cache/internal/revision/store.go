package revision

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Store is a clone: a store of whole revisions, and what it can fetch of those of others.
type Store struct {
	providers.Syncer
	providers.Snapshotter
	providers.Committer
}

// StoreOf is what p can do as such a store, if it is one.
func StoreOf(p providers.Provider) (s Store, ok bool) {
	var all [3]bool
	s.Syncer, all[0] = providers.As[providers.Syncer](p)
	s.Snapshotter, all[1] = providers.As[providers.Snapshotter](p)
	s.Committer, all[2] = providers.As[providers.Committer](p)
	return s, all == [3]bool{true, true, true}
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

// entries are all of a revision; "" has nothing.
type entries map[providers.Locator]providers.Info

func (s Store) treeOf(w Waiting, r providers.Revision) (entries, error) {
	all := entries{}
	if r == "" {
		return all, nil
	}
	at, err := s.At(w, r)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	return all, all.collect(w, at, providers.Locator{}, at.Capabilities().RecursiveList)
}

// collect takes what is in a directory, and below.
func (t entries) collect(w Waiting, p providers.Provider, dir providers.Locator, recursive bool) error {
	var dirs []providers.Locator
	for info, err := range providers.All(w, p, dir, providers.ListOptions{Recursive: recursive}) {
		if err != nil {
			return err
		}
		w.Moved()
		t[info.Locator] = info
		if info.Kind == providers.KindDir && !recursive {
			dirs = append(dirs, info.Locator)
		}
	}
	for _, below := range dirs {
		if err := t.collect(w, p, below, false); err != nil {
			return err
		}
	}
	return nil
}

// to is where two revisions differ, parents first.
func (t entries) to(is entries) (diffs []providers.Difference) {
	for at, info := range is {
		old, ok := t[at]
		switch {
		case !ok:
			diffs = append(diffs, providers.Difference{Locator: at, Is: &info})
		case old.Kind != info.Kind || old.Kind != providers.KindDir && !old.Version.Matches(info.Version):
			diffs = append(diffs, providers.Difference{Locator: at, Was: &old, Is: &info})
		}
	}
	for at, old := range t {
		if _, ok := is[at]; !ok {
			diffs = append(diffs, providers.Difference{Locator: at, Was: &old})
		}
	}
	slices.SortFunc(diffs, func(a, b providers.Difference) int { return a.Locator.Compare(b.Locator) })
	return diffs
}

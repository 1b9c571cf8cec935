package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// recorded is what the table says of revisions.
func recorded[T any](v *Volume, get func(revision.Reader) T) T {
	locked := v.lock()
	defer locked.unlock()
	return get(locked.table)
}

// record changes what the table says of revisions.
func (v *Volume) record(set func(revision.Writer)) error {
	return v.update(func(v *Tx) error {
		set(v.table)
		return nil
	})
}

// shown says which names of a revision the table has.
func (o *Options) shown() revision.Rules { return revision.RulesOf(o.IgnoreFile, o.Exclude) }

// syncedRevision is the revision that the table has; "" when that is not known.
func (v *Volume) syncedRevision() providers.Revision {
	return recorded(v, func(r revision.Reader) providers.Revision { return revision.Synced(r, v.o.shown()) })
}

// begins is the revision that a working copy begins with, and when it was made.
func begins(ctx context.Context, s revisions) (head providers.Revision, made time.Time, err error) {
	if head, err = s.Head(ctx); err != nil || head == "" {
		return head, made, err
	}
	found, err := s.Find(ctx, string(head))
	if errors.Is(err, providers.ErrNotExist) {
		err = nil
	}
	return head, found.Time, err
}

// isSynced reports whether what the table says of the remote is its head.
func (v *Volume) isSynced(ctx context.Context, _ revision.Held, s revisions) (bool, error) {
	head, err := s.Head(ctx)
	return err == nil && head == v.syncedRevision(), err
}

// syncWith makes it so: after an advance that did not end, or a crash between
// what the store noted and what the table did.
func (v *Volume) syncWith(w *waiting, head revision.Moving, s revisions) (PullReport, error) {
	if err := v.rewound(w, head); err != nil {
		return PullReport{}, err
	}
	if is, err := v.isSynced(w, head.Held, s); err != nil || is {
		return PullReport{}, err
	}
	to, err := s.Head(w)
	if err != nil {
		return PullReport{}, err
	}
	mine := v.beginObservation()
	defer v.endObservation(mine)
	all, err := v.gatherTo(w, v.p, v.syncedRevision(), to)
	if err != nil {
		return PullReport{}, err
	}
	return v.applyAll(w, head.Held, v.p, all, mine, applying{level: to})
}

// gatherTo is what differs between the names that the table has, which are those
// of the revision from, and a revision that tree shows: found from the two where
// the provider can, else by listing all that is known. "" is not known.
func (v *Volume) gatherTo(w *waiting, tree providers.Provider, from, to providers.Revision) ([]*remoteDir, error) {
	d, ok := providers.As[providers.Differ](v.p)
	if !ok || from == "" || to == "" {
		return v.gatherAll(w, tree)
	}
	var diffs []providers.Difference
	err := v.retry(w, func(ctx context.Context) (err error) {
		diffs, err = d.Differences(ctx, from, to)
		return err
	})
	if errors.Is(err, providers.ErrNotExist) { // it was thrown away
		return v.gatherAll(w, tree)
	}
	if err != nil {
		return nil, fmt.Errorf("differences: %w", err)
	}
	return v.gatherThese(w, tree, diffs)
}

// gatherThese makes what differs between two revisions into what differs from
// the table. Directories of which something is not shown are listed: what stood
// in its way may have gone.
func (v *Volume) gatherThese(w *waiting, tree providers.Provider, diffs []providers.Difference) ([]*remoteDir, error) {
	known := map[providers.Locator]*remoteDir{}
	for i := range diffs {
		h, err := v.knownAt(known, diffs[i].Locator.Parent())
		if err != nil {
			return nil, err
		}
		if h != nil {
			h.difference(diffs[i])
		}
	}
	whole := map[*remoteDir]bool{}
	locked := v.lock()
	hiding := rules.Hiding(locked)
	locked.unlock()
	for _, dir := range hiding {
		h, err := v.newListing(dir)
		if err != nil && !errors.Is(err, fs.ErrStale) {
			return nil, err
		}
		if h != nil && !h.first {
			known[h.at] = h
			whole[h] = true
		}
	}
	var all, list []*remoteDir
	for _, h := range known {
		switch {
		case h == nil:
		case whole[h] || h.hidden > 0:
			list = append(list, h)
		default:
			all = append(all, h)
		}
	}
	list, err := v.gatherEach(w, tree, list)
	all = append(all, list...)
	slices.SortFunc(all, func(a, b *remoteDir) int { return a.at.Compare(b.at) })
	return all, err
}

// knownAt is the listing of the directory that the backend has at a path; nil if
// its names are not known.
func (v *Volume) knownAt(known map[providers.Locator]*remoteDir, at providers.Locator) (*remoteDir, error) {
	if h, ok := known[at]; ok {
		return h, nil
	}
	known[at] = nil
	locked := v.lock()
	dir, ok := locked.DirAtRemotePath(at)
	locked.unlock()
	if !ok {
		return nil, nil
	}
	h, err := v.newListing(dir)
	if errors.Is(err, fs.ErrStale) {
		return nil, nil
	}
	if err == nil && h != nil && !h.first {
		known[at] = h
	}
	return known[at], err
}

// difference takes what another revision has of one name.
func (h *remoteDir) difference(d providers.Difference) {
	locked := h.v.lock()
	defer locked.unlock()
	if d.Is != nil {
		h.entry(locked, d.Is)
		return
	}
	l := table.Link{Dir: h.dir, Name: d.Locator.Name()}
	if rec, _ := locked.table.Name(l.Dir, l.Name); rec.Remote != nil {
		h.diffs = append(h.diffs, news{l: l})
	}
}

// differences are where two revisions differ, parents first, however the
// provider can say it; "" has nothing.
func (v *Volume) differences(w *waiting, s revisions, from, to providers.Revision) (diffs []providers.Difference, err error) {
	if d, ok := providers.As[providers.Differ](v.p); ok && from != "" && to != "" {
		err = v.retry(w, func(ctx context.Context) (err error) {
			diffs, err = d.Differences(ctx, from, to)
			return err
		})
		return diffs, err
	}
	was, err := treeOf(w, s, from)
	if err != nil {
		return nil, err
	}
	is, err := treeOf(w, s, to)
	if err != nil {
		return nil, err
	}
	for at, info := range is {
		old, ok := was[at]
		switch {
		case !ok:
			diffs = append(diffs, providers.Difference{Locator: at, Is: &info})
		case differs(old, info):
			diffs = append(diffs, providers.Difference{Locator: at, Was: &old, Is: &info})
		}
	}
	for at, old := range was {
		if _, ok := is[at]; !ok {
			diffs = append(diffs, providers.Difference{Locator: at, Was: &old})
		}
	}
	slices.SortFunc(diffs, func(a, b providers.Difference) int { return a.Locator.Compare(b.Locator) })
	return diffs, nil
}

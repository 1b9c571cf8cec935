package listing

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// batch is how many new names a first listing puts into the table at once, so that the lock is
// never held long however large a directory is.
const batch = 512

// remoteDir is the result of a listing of one directory.
type remoteDir struct {
	of    *Listings
	dir   table.Ino
	at    providers.Locator // where it was listed
	start time.Time

	first  bool                // the directory was not known
	clean  bool                // and no name in it was when the listing began
	seen   map[uint64]struct{} // hashes of the names listed; nil when clean
	seed   maphash.Seed
	diffs  []merge.News
	hidden int
	tree   *Walk // that has brought all below; nil: the directory alone
}

const elsewherePause = 5 * time.Millisecond

// errElsewhere says that a directory was renamed, or forgotten, while it was
// listed.
var errElsewhere = errors.New("the directory has moved")

// List makes the remote's names in a directory known.
func (ls *Listings) List(w revision.Waiting, dir table.Ino) error {
	for {
		head, err := ls.o.Head.Hold(w)
		if err != nil {
			return waiting.Cause(w, err)
		}
		err = ls.ListOnce(w, head, dir)
		head.Release()
		if !errors.Is(err, errElsewhere) {
			return err
		}
		if err := waiting.Sleep(w, elsewherePause); err != nil { // a rename of ours is under way
			return err
		}
	}
}

// ListOnce is List, but returns errElsewhere for a directory that moves meanwhile.
func (ls *Listings) ListOnce(w revision.Waiting, head revision.Held, dir table.Ino) (err error) {
	mine, end := ls.o.Tree.Observe()
	defer end()
	h, err := ls.newListing(dir)
	if err != nil || h == nil {
		return err
	}
	began := time.Now()
	defer func() {
		if h.tree != nil {
			h.adoptTree(w, head, err)
		}
	}()
	err = h.gather(w, ls.o.Provider, mine)
	v := ls.o.Tree.Lock()
	ls.answered(v, time.Since(began), waiting.Cause(w, err))
	ls.o.Tree.Unlock()
	switch {
	case merge.NotThere(err) && !h.still():
		return errElsewhere
	case merge.NotThere(err):
		err = ls.vanished(w, head, dir, err)
	case err != nil:
		return fmt.Errorf("list: %w", err)
	default:
		err = h.apply(w, head, mine)
	}
	if merge.IsUndecided(err) && !h.first {
		return errors.Join(err, ls.o.Update(func(tx *tree.Tx) error { // not to be asked for all the time
			if n := tx.Edit(dir); n != nil {
				n.Listed = h.start.UnixNano()
			}
			return nil
		}))
	}
	return err
}

// newListing is an empty one; nil for a directory that the remote does not
// have.
func (ls *Listings) newListing(dir table.Ino) (h *remoteDir, err error) {
	err = ls.o.Update(func(tx *tree.Tx) error {
		n := tx.Inode(dir)
		if n == nil {
			return fs.ErrStale
		}
		at, ok := tx.RemotePathOf(dir)
		if !ok {
			tx.Edit(dir).Loaded = true // all of its names are local
			return nil
		}
		h = &remoteDir{of: ls, dir: dir, at: at, start: ls.o.Belief.Now(), first: !n.Loaded, clean: !tx.HasNames(dir), seed: maphash.MakeSeed()}
		return nil
	})
	return h, err
}

// reset begins a listing. An attempt that broke off may have brought names into the table which
// are gone by now.
func (h *remoteDir) reset() {
	if h.first {
		v := h.of.o.Tree.Lock()
		h.clean = !v.HasNames(h.dir)
		h.of.o.Tree.Unlock()
	}
	h.diffs, h.hidden, h.seen = nil, 0, nil
	if !h.clean || !h.first {
		h.seen = map[uint64]struct{}{}
	}
}

// adopt makes the directory known by entries that a recursive listing, begun at start, has brought
// of it. mine is that listing.
func (h *remoteDir) adopt(w revision.Waiting, head revision.Held, start time.Time, entries []providers.Info, mine *tree.Observation) error {
	h.start = start
	h.reset()
	for left := entries; len(left) > 0; {
		n := min(len(left), batch)
		if err := h.page(w, left[:n], mine); err != nil {
			return err
		}
		left = left[n:]
	}
	h.missing()
	return h.apply(w, head, mine)
}

// gather lists the directory. Names of a first listing go into the table as they come; no program
// sees them before it is complete. Differences of a later one are kept, to be applied in one step.
func (h *remoteDir) gather(w revision.Waiting, p providers.Provider, mine *tree.Observation) (err error) {
	done := false
	if mine != nil && h.mayBeSmall() {
		done, err = h.gatherTree(w, mine)
	}
	if !done {
		err = h.gatherPages(w, p, mine)
	}
	if errors.Is(err, providers.ErrNotExist) && (h.at.IsRoot() || !h.of.o.Capabilities.EmptyDirs) {
		err = nil // a directory without entries
	}
	if err == nil {
		err = h.verifyImpliedDirs(w, p)
	}
	if err == nil {
		h.missing()
	}
	return err
}

// gatherPages lists the directory alone.
func (h *remoteDir) gatherPages(w revision.Waiting, p providers.Provider, mine *tree.Observation) error {
	var got pending.Reach
	return h.of.o.Waits.Retry(w, func(ctx context.Context) error {
		h.reset()
		got.Again()
		opts := providers.ListOptions{}
		for {
			page, err := p.List(ctx, h.at, opts)
			if err = providers.PageError(opts, err); err != nil {
				h.of.failed(err)
				return err
			}
			waiting.Progressed(w, &got, 1)
			if err := h.page(w, page.Entries, mine); err != nil {
				return err
			}
			if opts.Token = page.Next; opts.Token == "" {
				return nil
			}
		}
	})
}

// failed notes that a listing was not answered, before it is tried again.
func (ls *Listings) failed(err error) {
	v := ls.o.Tree.Lock()
	defer ls.o.Tree.Unlock()
	ls.answered(v, 0, err)
}

// page takes the differences of one page.
func (h *remoteDir) page(w revision.Waiting, entries []providers.Info, mine *tree.Observation) error {
	v := h.of.o.Tree.Lock()
	for i := range entries {
		h.entry(v, &entries[i])
	}
	h.of.o.Tree.Unlock()
	if !h.first || len(h.diffs) < batch {
		return nil
	}
	return h.flush(w, mine, nil)
}

// entry takes one entry if it differs.
func (h *remoteDir) entry(v *tree.View, info *providers.Info) {
	l := table.Link{Dir: h.dir, Name: info.Locator.Name()}
	border := h.of.o.Border
	if info.Kind == providers.KindUnknown || tree.CheckName(l.Name) != nil {
		h.hidden++
		return
	}
	if h.seen != nil {
		h.seen[maphash.String(h.seed, l.Name)] = struct{}{}
	}
	rec, _ := v.Name(l.Dir, l.Name)
	h.of.o.Merger().KeepKnownKind(rec, info)
	if rec.Local && leavesThere(border, rec, info) {
		return
	}
	if border.Excluded(info.Locator, info.Kind) || rec.Local && !border.OnlyIgnored(v, l, rec) || h.of.o.StandsAside(v, l, rec) {
		h.hidden++
		if rec.Remote != nil {
			h.diffs = append(h.diffs, merge.News{Link: l, Hide: true})
		}
		return
	}
	if merge.Unchanged(rec, info) || !h.of.dirNews(v, rec, info) {
		return
	}
	h.diffs = append(h.diffs, merge.News{Link: l, Info: info})
}

// leavesThere reports whether an entry is the remote's until our deletion of it arrives: a name
// that stays local has taken its place.
func leavesThere(border *rules.Border, rec table.Name, r *providers.Info) bool {
	b := rec.Remote
	return b != nil && !border.Excluded(r.Locator, r.Kind) && (merge.Unchanged(rec, r) || b.Kind == providers.KindDir && r.Kind == b.Kind)
}

// dirNews reports whether an entry that is not unchanged is worth a look: a directory that is
// still there is not, but for its attributes.
func (ls *Listings) dirNews(v *tree.View, rec table.Name, r *providers.Info) bool {
	b := rec.Remote
	if b == nil || b.Kind != providers.KindDir || r.Kind != providers.KindDir {
		return true
	}
	n := v.Inode(b.Ino)
	if n == nil || n.AttrGen != b.AttrGen {
		return false
	}
	return ls.o.Attributes.Differs(n, r)
}

// missing finds the names that the remote had and does not have any more.
func (h *remoteDir) missing() {
	if h.seen == nil {
		return
	}
	v := h.of.o.Tree.Lock()
	defer h.of.o.Tree.Unlock()
	v.Names(h.dir, "", func(name string, rec table.Name) bool {
		if _, ok := h.seen[maphash.String(h.seed, name)]; !ok && rec.Remote != nil {
			h.diffs = append(h.diffs, merge.News{Link: table.Link{Dir: h.dir, Name: name}})
		}
		return true
	})
	h.seen = nil
}

// flush applies the gathered differences, and more with them.
func (h *remoteDir) flush(ctx context.Context, mine *tree.Observation, more func(*merge.Tx, *merge.Merge) error) error {
	m := h.of.o.Merger().New(ctx, h.of.o.Provider)
	m.Mine, m.First = mine, h.first && h.clean
	diffs := h.diffs
	h.diffs = nil
	return m.Run(func(tx *merge.Tx) error {
		if !h.holds(tx.View) {
			return errElsewhere
		}
		for _, d := range diffs {
			m.Take(tx, d)
		}
		if more != nil {
			return more(tx, m)
		}
		return nil
	})
}

// still is holds for a caller without the lock.
func (h *remoteDir) still() bool {
	v := h.of.o.Tree.Lock()
	defer h.of.o.Tree.Unlock()
	return h.holds(v)
}

// holds reports whether the directory still is the one that was listed: in its place, with no
// rename of ours under way, and known if it was known.
func (h *remoteDir) holds(v *tree.View) bool {
	n := v.Inode(h.dir)
	at, ok := v.RemotePathOf(h.dir)
	return n != nil && ok && at == h.at && (h.first || n.Loaded) && !v.Moving(h.dir)
}

// apply applies the rest, and notes that the directory is known now.
func (h *remoteDir) apply(ctx context.Context, head revision.Held, mine *tree.Observation) error {
	return h.flush(ctx, mine, func(tx *merge.Tx, m *merge.Merge) error {
		if err := m.CheckPull(tx, head); err != nil {
			return err
		}
		h.listed(tx, m)
		return nil
	})
}

// listed notes that a directory is known as of the listing.
func (h *remoteDir) listed(tx *merge.Tx, m *merge.Merge) {
	dir := m.ShownAs(h.dir)
	n := tx.Edit(dir)
	if n == nil {
		return
	}
	n.Loaded, n.Listed = true, h.start.UnixNano()
	rules.SetHidden(tx, dir, h.hidden)
}

// vanished deals with a directory that is not there any more, by looking at its name.
func (ls *Listings) vanished(ctx context.Context, head revision.Held, dir table.Ino, cause error) error {
	if dir == table.Root {
		return ls.rootGone(cause)
	}
	v := ls.o.Tree.Lock()
	n := v.Inode(dir)
	gone := n == nil || len(n.RemoteLinks) == 0
	var home table.Link
	if !gone {
		home = n.RemoteLinks[0]
	}
	ls.o.Tree.Unlock()
	if gone {
		return fs.ErrStale
	}
	if err := ls.o.Merger().RevalidateOnce(ctx, head, home, false); err != nil {
		return err
	}
	v = ls.o.Tree.Lock()
	defer ls.o.Tree.Unlock()
	switch n := v.Inode(dir); {
	case n == nil || len(n.Links) == 0 || len(n.RemoteLinks) > 0 && !n.Loaded:
		return fs.ErrStale
	case len(n.RemoteLinks) > 0:
		return fmt.Errorf("list: %w", cause)
	}
	return nil
}

// rootGone halts: the root is no directory any more.
func (ls *Listings) rootGone(cause error) error {
	v := ls.o.Tree.Lock()
	defer ls.o.Tree.Unlock()
	return fmt.Errorf("%w: %w", ls.o.Halt(v, "the root is not a directory"), cause)
}

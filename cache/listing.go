package cache

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/ops"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// batch is how many new names a first listing puts into the table at once, so
// that nobody waits long for the lock however large a directory is.
const batch = 512

// remoteDir is what a listing of one directory brought.
type remoteDir struct {
	v     *Volume
	dir   table.Ino
	at    providers.Locator // where it was listed
	start time.Time

	first  bool                // the directory was not known
	clean  bool                // and nothing of it was
	seen   map[uint64]struct{} // hashes of the names there are; nil when clean
	seed   maphash.Seed
	diffs  []merge.News
	hidden int
	tree   *listing.Walk // that has brought all below; nil: the directory alone
}

const elsewherePause = 5 * time.Millisecond

// errElsewhere says that a directory was renamed, or forgotten, while it was
// listed.
var errElsewhere = errors.New("the directory has moved")

// list brings the names of a directory here that the backend has.
func (v *Volume) list(w *waiting.Context, dir table.Ino) error {
	for {
		head, err := v.head.Hold(w)
		if err != nil {
			return w.Cause(err)
		}
		err = v.listOnce(w, head, dir)
		head.Release()
		if !errors.Is(err, errElsewhere) {
			return err
		}
		if err := waiting.Sleep(w, elsewherePause); err != nil { // a rename of ours is under way
			return err
		}
	}
}

// listOnce is list, but for a directory that moves meanwhile: then it is errElsewhere.
func (v *Volume) listOnce(w *waiting.Context, head revision.Held, dir table.Ino) (err error) {
	mine, end := v.tree.Observe()
	defer end()
	h, err := v.newListing(dir)
	if err != nil || h == nil {
		return err
	}
	began := time.Now()
	defer func() {
		if h.tree != nil {
			h.adoptTree(w, head, err)
		}
	}()
	err = h.gather(w, v.p, mine)
	locked := v.lock()
	locked.answered(time.Since(began), w.Cause(err))
	locked.unlock()
	switch {
	case merge.NotThere(err) && !h.still():
		return errElsewhere
	case merge.NotThere(err):
		err = v.vanished(w, head, dir, err)
	case err != nil:
		return fmt.Errorf("list: %w", err)
	default:
		err = h.apply(w, head, mine)
	}
	if merge.IsUndecided(err) && !h.first {
		return errors.Join(err, v.update(func(v *Tx) error { // not to be asked for all the time
			if n := v.table.Edit(dir); n != nil {
				n.Listed = h.start.UnixNano()
			}
			return nil
		}))
	}
	return err
}

// newListing is an empty one; nil for a directory that the backend does not
// have.
func (v *Volume) newListing(dir table.Ino) (h *remoteDir, err error) {
	err = v.update(func(v *Tx) error {
		n := v.table.Inode(dir)
		if n == nil {
			return fs.ErrStale
		}
		at, ok := v.RemotePathOf(dir)
		if !ok {
			v.table.Edit(dir).Loaded = true // all of its names are here
			return nil
		}
		h = &remoteDir{v: v.Volume, dir: dir, at: at, start: v.o.Now(), first: !n.Loaded, clean: !v.table.HasNames(dir), seed: maphash.MakeSeed()}
		return nil
	})
	return h, err
}

// reset begins a listing.
func (h *remoteDir) reset() {
	h.diffs, h.hidden, h.seen = nil, 0, nil
	if !h.clean || !h.first {
		h.seen = map[uint64]struct{}{}
	}
}

// adopt makes the directory known by entries that a recursive listing, begun at start,
// has brought of it. mine is that listing.
func (h *remoteDir) adopt(w *waiting.Context, head revision.Held, start time.Time, entries []providers.Info, mine *tree.Observation) error {
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

// gather lists the directory. Of a first listing the names go into the table
// as they come; nobody sees them before it is complete. Of a later one what
// differs is kept, to be applied in one step.
func (h *remoteDir) gather(w *waiting.Context, p providers.Provider, mine *tree.Observation) (err error) {
	done := false
	if mine != nil && h.mayBeSmall() {
		done, err = h.gatherTree(w, mine)
	}
	if !done {
		err = h.gatherPages(w, p, mine)
	}
	if errors.Is(err, providers.ErrNotExist) && (h.at.IsRoot() || !h.v.caps.EmptyDirs) {
		err = nil // a directory in which nothing is
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
func (h *remoteDir) gatherPages(w *waiting.Context, p providers.Provider, mine *tree.Observation) error {
	var got pending.Reach
	return h.v.waits.Retry(w, func(ctx context.Context) error {
		h.reset()
		got.Again()
		opts := providers.ListOptions{}
		for {
			page, err := p.List(ctx, h.at, opts)
			if err != nil {
				h.v.failed(err)
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
func (v *Volume) failed(err error) {
	locked := v.lock()
	defer locked.unlock()
	locked.answered(0, err)
}

// page takes what differs of one page.
func (h *remoteDir) page(w *waiting.Context, entries []providers.Info, mine *tree.Observation) error {
	locked := h.v.lock()
	for i := range entries {
		h.entry(locked, &entries[i])
	}
	locked.unlock()
	if !h.first || len(h.diffs) < batch {
		return nil
	}
	return h.flush(w, mine, nil)
}

// entry takes one entry if it differs.
func (h *remoteDir) entry(v *View, info *providers.Info) {
	l := table.Link{Dir: h.dir, Name: info.Locator.Name()}
	if info.Kind == providers.KindUnknown || ops.CheckName(l.Name) != nil {
		h.hidden++
		return
	}
	if h.seen != nil {
		h.seen[maphash.String(h.seed, l.Name)] = struct{}{}
	}
	rec, _ := v.table.Name(l.Dir, l.Name)
	v.merger.KeepKnownKind(rec, info)
	if rec.Local && leavesThere(v.border, rec, info) {
		return
	}
	if v.border.Excluded(info.Locator, info.Kind) || rec.Local && !v.border.OnlyIgnored(v.View, l, rec) || v.standsAside(l, rec) {
		h.hidden++
		if rec.Remote != nil {
			h.diffs = append(h.diffs, merge.News{Link: l, Hide: true})
		}
		return
	}
	if merge.Unchanged(rec, info) || !v.dirNews(rec, info) {
		return
	}
	h.diffs = append(h.diffs, merge.News{Link: l, Info: info})
}

// leavesThere reports whether an entry is what the backend has until our deletion of it
// comes: something that stays here has its name.
func leavesThere(border *rules.Border, rec table.Name, r *providers.Info) bool {
	b := rec.Remote
	return b != nil && !border.Excluded(r.Locator, r.Kind) && (merge.Unchanged(rec, r) || b.Kind == providers.KindDir && r.Kind == b.Kind)
}

// dirNews reports whether an entry that is not unchanged is worth a look: that a
// directory is there still is not, but for its attributes.
func (v *View) dirNews(rec table.Name, r *providers.Info) bool {
	b := rec.Remote
	if b == nil || b.Kind != providers.KindDir || r.Kind != providers.KindDir {
		return true
	}
	n := v.table.Inode(b.Ino)
	if n == nil || n.AttrGen != b.AttrGen {
		return false
	}
	return v.attrs().Differs(n, r)
}

// missing finds the names that the backend had and does not have any more.
func (h *remoteDir) missing() {
	if h.seen == nil {
		return
	}
	locked := h.v.lock()
	defer locked.unlock()
	locked.table.Names(h.dir, "", func(name string, rec table.Name) bool {
		if _, ok := h.seen[maphash.String(h.seed, name)]; !ok && rec.Remote != nil {
			h.diffs = append(h.diffs, merge.News{Link: table.Link{Dir: h.dir, Name: name}})
		}
		return true
	})
	h.seen = nil
}

// flush applies what has been gathered, and more with it.
func (h *remoteDir) flush(ctx context.Context, mine *tree.Observation, more func(*merge.Tx, *merge.Merge) error) error {
	m := h.v.merger.New(ctx, h.v.p)
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

// still is holds for who does not have the lock.
func (h *remoteDir) still() bool {
	locked := h.v.lock()
	defer locked.unlock()
	return h.holds(locked.View)
}

// holds reports whether the directory still is what was listed: where it was, with no
// rename of ours under way, and known if it was known.
func (h *remoteDir) holds(v *tree.View) bool {
	n := v.Inode(h.dir)
	at, ok := v.RemotePathOf(h.dir)
	return n != nil && ok && at == h.at && (h.first || n.Loaded) && !v.Moving(h.dir)
}

// apply takes over what is left, and that the directory is known now.
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

// vanished deals with a directory that is not there any more, by looking at its
// name.
func (v *Volume) vanished(ctx context.Context, head revision.Held, dir table.Ino, cause error) error {
	if dir == table.Root {
		return v.rootGone(cause)
	}
	locked := v.lock()
	n := locked.table.Inode(dir)
	gone := n == nil || len(n.RemoteLinks) == 0
	var home table.Link
	if !gone {
		home = n.RemoteLinks[0]
	}
	locked.unlock()
	if gone {
		return fs.ErrStale
	}
	if err := v.merger.RevalidateOnce(ctx, head, home, false); err != nil {
		return err
	}
	locked = v.lock()
	defer locked.unlock()
	switch n := locked.table.Inode(dir); {
	case n == nil || len(n.Links) == 0 || len(n.RemoteLinks) > 0 && !n.Loaded:
		return fs.ErrStale
	case len(n.RemoteLinks) > 0:
		return fmt.Errorf("list: %w", cause)
	}
	return nil
}

// rootGone halts: the root is no directory any more.
func (v *Volume) rootGone(cause error) error {
	locked := v.lock()
	defer locked.unlock()
	return fmt.Errorf("%w: %w", locked.checkMassDelete(massdelete.Pull, "the root is not a directory", 0), cause)
}

// learn lists a directory with the head where it is.
func (v *Volume) learn(ctx context.Context, head revision.Held, dir table.Ino) error {
	w := v.waits.For(nil, v.o.Patience/2)
	defer w.Close()
	defer context.AfterFunc(ctx, w.Close)()
	return v.listOnce(w, head, dir)
}

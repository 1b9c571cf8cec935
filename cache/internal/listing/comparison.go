package listing

import (
	"context"
	"errors"
	"slices"
	"sync"

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

// CompareAll finds all differences between a provider and the known names. The provider is asked
// again until End.
func (ls *Listings) CompareAll(w revision.Waiting, p providers.Provider) (revision.Comparison, error) {
	return ls.compare(w, p, (*comparison).listAll)
}

// Compare is CompareAll for the differences of two revisions, of which the tree has the first.
func (ls *Listings) Compare(w revision.Waiting, p providers.Provider, diffs []providers.Difference) (revision.Comparison, error) {
	return ls.compare(w, p, func(c *comparison) error { return c.take(diffs) })
}

func (ls *Listings) compare(w revision.Waiting, p providers.Provider, find func(*comparison) error) (*comparison, error) {
	c := &comparison{of: ls, w: w, p: p}
	c.mine, c.end = ls.o.Tree.Observe()
	if err := find(c); err != nil {
		c.End()
		return nil, err
	}
	return c, nil
}

// comparison has the differences, in known directories, between the remote's names in the table
// and those that a provider shows.
type comparison struct {
	of   *Listings
	w    revision.Waiting
	p    providers.Provider
	mine *tree.Observation // from before it was asked
	end  func()
	dirs []*remoteDir
}

// End implements revision.Comparison.
func (c *comparison) End() { c.end() }

// Check implements revision.Comparison.
func (c *comparison) Check(head revision.Held, d revision.Deletions) error {
	_, err := c.run(head, true, "", d)
	return err
}

// Apply implements revision.Comparison: in one step. If a name is left for another pull, the table
// stays at the revision that it had, so that it is not forgotten.
func (c *comparison) Apply(head revision.Held, r providers.Revision, d revision.Deletions) (revision.PullReport, error) {
	return c.run(head, false, r, d)
}

// run is Apply, or changes nothing (dry): its questions are answered, and a halt is reported.
func (c *comparison) run(head revision.Held, dry bool, r providers.Revision, d revision.Deletions) (revision.PullReport, error) {
	m := c.of.o.Merger().New(c.w, c.p)
	m.Mine, m.Dry, m.Whole, m.Deletions = c.mine, dry, true, d
	err := m.Run(func(tx *merge.Tx) error {
		for _, h := range c.dirs {
			if !h.holds(tx.View) { // renamed meanwhile, or gone by an earlier difference
				_, there := tx.RemotePathOf(h.dir)
				m.Left = m.Left || there
				continue
			}
			for _, d := range h.diffs {
				m.Take(tx, d)
			}
			h.listed(tx, m)
		}
		if !m.Left && !m.Asks() {
			revision.SetSynced(tx, r, c.of.o.Rules)
		}
		return m.CheckPull(tx, head)
	})
	return revision.PullReport{Changed: m.Report.Changed, Deleted: m.Report.Deleted, Conflicts: m.Report.Conflicts}, err
}

// known is a listing of a directory in the making; nil if its names are not known.
func (c *comparison) known(dir table.Ino) (*remoteDir, error) {
	h, err := c.of.newListing(dir)
	if errors.Is(err, fs.ErrStale) {
		return nil, nil
	}
	if err != nil || h == nil || h.first {
		return nil, err
	}
	return h, nil
}

// listAll lists all known directories, in the cheaper of two ways.
func (c *comparison) listAll() error {
	v := c.of.o.Tree.Lock()
	dirs := v.KnownRemoteDirs()
	c.of.o.Tree.Unlock()
	for _, dir := range dirs {
		h, err := c.known(dir)
		if err != nil {
			return err
		}
		if h != nil {
			c.dirs = append(c.dirs, h)
		}
	}
	if len(c.dirs) > 1 && c.p.Capabilities().RecursiveList {
		if err := c.listTree(); !errors.Is(err, errDear) && !errors.Is(err, providers.ErrUnsupported) {
			return err
		}
	}
	return c.listEach(c.dirs)
}

// listers is how many directories are listed at once.
const listers = 8

// listEach lists one directory after the other, several at a time. Those that are gone are left
// out.
func (c *comparison) listEach(all []*remoteDir) error {
	errs := make([]error, len(all))
	slots := make(chan struct{}, listers)
	var work sync.WaitGroup
	for i, h := range all {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			errs[i] = h.gather(c.w, c.p, nil)
		})
	}
	work.Wait()
	gone := map[*remoteDir]bool{}
	for i, h := range all {
		switch {
		case errs[i] == nil:
		case merge.NotThere(errs[i]) && h.dir == table.Root:
			return c.of.rootGone(errs[i])
		case !merge.NotThere(errs[i]):
			return errs[i]
		default: // the listing of its parent says so
			gone[h] = true
		}
	}
	c.dirs = slices.DeleteFunc(c.dirs, func(h *remoteDir) bool { return gone[h] })
	return nil
}

// errDear says that one recursive listing costs more than one of each directory: most of the tree
// was never looked at.
var errDear = errors.New("too many pages")

// listTree lists the whole tree at once.
func (c *comparison) listTree() error {
	at := map[providers.Locator]*remoteDir{}
	for _, h := range c.dirs {
		at[h.at] = h
	}
	var got pending.Reach
	err := c.of.o.Waits.Retry(c.w, func(ctx context.Context) error {
		got.Again()
		for _, h := range c.dirs {
			h.reset()
		}
		opts := providers.ListOptions{Recursive: true}
		for pages := 0; ; pages++ {
			if pages > len(c.dirs) {
				return errDear
			}
			page, err := c.p.List(ctx, providers.Locator{}, opts)
			if err = providers.PageError(opts, err); err != nil {
				return err
			}
			waiting.Progressed(c.w, &got, 1)
			v := c.of.o.Tree.Lock()
			for i := range page.Entries {
				if h := at[page.Entries[i].Locator.Parent()]; h != nil {
					h.entry(v, &page.Entries[i])
				}
			}
			c.of.o.Tree.Unlock()
			if opts.Token = page.Next; opts.Token == "" {
				return nil
			}
		}
	})
	if err != nil && !errors.Is(err, providers.ErrNotExist) { // the root of an empty bucket
		return err
	}
	for _, h := range c.dirs {
		h.missing()
	}
	return nil
}

// take turns the differences between two revisions into differences from the table, which has the
// first. Directories with entries that are not shown are listed: the reason to hide one may have
// gone.
func (c *comparison) take(diffs []providers.Difference) error {
	known, whole := map[providers.Locator]*remoteDir{}, map[*remoteDir]bool{}
	for _, d := range diffs {
		h, err := c.dirAt(known, d.Locator.Parent())
		if err != nil {
			return err
		}
		if h != nil {
			h.difference(d)
		}
	}
	v := c.of.o.Tree.Lock()
	hiding := rules.Hiding(v)
	c.of.o.Tree.Unlock()
	for _, dir := range hiding {
		h, err := c.known(dir)
		if err != nil {
			return err
		}
		if h != nil {
			known[h.at] = h
			whole[h] = true
		}
	}
	var list []*remoteDir
	for _, h := range known {
		if h != nil {
			c.dirs = append(c.dirs, h)
		}
		if h != nil && (whole[h] || h.hidden > 0) {
			list = append(list, h)
		}
	}
	slices.SortFunc(c.dirs, func(a, b *remoteDir) int { return a.at.Compare(b.at) })
	return c.listEach(list)
}

// dirAt is the remote's directory at a path, if its names are known.
func (c *comparison) dirAt(known map[providers.Locator]*remoteDir, at providers.Locator) (*remoteDir, error) {
	if h, ok := known[at]; ok {
		return h, nil
	}
	known[at] = nil
	v := c.of.o.Tree.Lock()
	dir, ok := v.DirAtRemotePath(at)
	c.of.o.Tree.Unlock()
	if !ok {
		return nil, nil
	}
	h, err := c.known(dir)
	known[at] = h
	return h, err
}

// difference takes another revision's entry of one name.
func (h *remoteDir) difference(d providers.Difference) {
	v := h.of.o.Tree.Lock()
	defer h.of.o.Tree.Unlock()
	if d.Is != nil {
		h.entry(v, d.Is)
		return
	}
	l := table.Link{Dir: h.dir, Name: d.Locator.Name()}
	if v.Record(l).Remote != nil {
		h.diffs = append(h.diffs, merge.News{Link: l})
	}
}

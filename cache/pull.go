package cache

import (
	"context"
	"errors"
	"sync"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// PullOptions: the zero value pulls.
type PullOptions struct {
	// IfClean leaves a working copy alone in which something was changed that
	// the backend does not have: what upstream asks of a pull.
	IfClean bool

	alone bool // nobody gets its report: the next who asks is told of conflicts
}

// SkippedDirty is why a pull with IfClean did not ask the remote.
const SkippedDirty = "there are uncommitted local changes"

// PullReport says what a Pull did.
type PullReport struct {
	Revision  providers.Revision // that names show now, of a store of whole revisions
	Changed   int                // names that lead to something new
	Deleted   int                // names that are gone
	Conflicts []string           // paths that were changed here and there
	Skipped   string             // why nothing was done; "": it was
	// TakenBack says that commits that were not pushed are changes again, on top
	// of what came.
	TakenBack bool
}

// add takes in what the next pull did.
func (r *PullReport) add(next PullReport) {
	next.Changed += r.Changed
	next.Deleted += r.Deleted
	next.Conflicts = pending.Paths(r.Conflicts, next.Conflicts)
	next.TakenBack = next.TakenBack || r.TakenBack
	*r = next
}

// pulling is a pull that is under way.
type pulling struct {
	done   chan struct{}
	alone  bool       // who comes meanwhile does not join
	report PullReport // valid with err when done is closed
	err    error
}

// Pull asks the backend what others have changed and brings it here. A program
// sees all of it at once: everything is gathered first and then applied in one
// step. What is kept in memory meanwhile is what differs, and 16 bytes for each
// name of the directories that are known. Directories that nobody has looked
// into are not asked about.
//
// Who calls while a pull is under way gets the result of the next. ErrHalted
// says that too much would be deleted, and that nothing was done.
func (v *Volume) Pull(ctx context.Context, o PullOptions) (PullReport, error) {
	for mayJoin := false; ; mayJoin = true {
		locked := v.lock()
		run := locked.pulls.pulling
		mine := run == nil
		if mine {
			run = &pulling{done: make(chan struct{}), alone: o.alone}
			locked.pulls.pulling = run
		}
		locked.unlock()
		if mine {
			run.report, run.err = v.pull(ctx, o)
			switch {
			case o.alone:
				run.err = errors.Join(run.err, v.update(func(v *Tx) error { v.addUnreported(run.report.Conflicts); return nil }))
			case run.err == nil && run.report.Skipped == "":
				run.report.Conflicts = v.reportConflicts(run.report.Conflicts)
			}
			run.err = v.massDeleteKept(run.err)
			if run.report.Skipped == "" {
				v.Ended(chores.Pull, run.err)
			}
			locked = v.lock()
			locked.pulls.pulling = nil
			locked.unlock()
			close(run.done)
			return run.report, run.err
		}
		select {
		case <-run.done:
		case <-ctx.Done():
			return PullReport{}, ctx.Err()
		}
		if mayJoin && !run.alone && run.err == nil && (run.report.Skipped == "" || o.IfClean) {
			return run.report, nil
		}
	}
}

func (v *Volume) pull(ctx context.Context, o PullOptions) (r PullReport, err error) {
	if o.IfClean && v.dirty() {
		return PullReport{Skipped: SkippedDirty}, nil
	}
	w := v.doing.beating(v.wait(nil, v.o.Patience/2))
	defer w.close()
	defer context.AfterFunc(ctx, w.close)()
	if s, ok := v.syncer(); ok {
		r, err = v.pullRevision(w, s)
	} else {
		r, err = v.pullAll(w, v.p)
	}
	locked := v.lock()
	defer locked.unlock()
	if err == nil && r.Skipped == "" {
		locked.passed(massdelete.Pull)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return r, ctx.Err()
	}
	return r, translate(w.cause(err))
}

func (v *Volume) dirty() bool {
	locked := v.lock()
	defer locked.unlock()
	return locked.table.DirtyCount() > 0
}

// pullAll compares all directories that are known with what p shows, a store that keeps no
// revisions.
func (v *Volume) pullAll(w *waiting, p providers.Provider) (PullReport, error) {
	v.ahead.End() // what is covered already would be older than the pull
	mine := v.beginObservation()
	defer v.endObservation(mine)
	all, err := v.gatherAll(w, p)
	if err != nil {
		return PullReport{}, err
	}
	return v.applyAll(w, revision.NoHead(), p, all, mine, applying{})
}

// applying says how what was gathered is applied.
type applying struct {
	// dry changes nothing: the questions that it asks are answered, and a halt
	// is told.
	dry bool
	// level is the revision that the table has then; "": there is none.
	level providers.Revision
}

// applyAll applies what was gathered in one step. What is left for another pull
// is not forgotten: the table stays at the revision that it had.
func (v *Volume) applyAll(w *waiting, head revision.Held, p providers.Provider, all []*remoteDir, mine *tree.Observation, o applying) (PullReport, error) {
	m := v.newMerge(w, p)
	m.mine, m.dry, m.whole = mine, o.dry, true
	err := m.run(func(v *Tx) error {
		for _, h := range all {
			if !h.holds(v.View) { // renamed meanwhile; or what came before says that it is gone
				_, there := v.RemotePathOf(h.dir)
				m.left = m.left || there
				continue
			}
			for _, d := range h.diffs {
				m.take(v, d)
			}
			h.listed(v, m)
		}
		if !m.left && !m.asks() {
			revision.SetSynced(v.table, o.level, v.o.shown())
		}
		return m.checkPull(v, head)
	})
	if errors.Is(err, errDry) {
		err = nil
	}
	return m.report, err
}

// listers is how many directories are listed at once.
const listers = 8

// gatherAll lists all known directories, in the cheaper of two ways.
func (v *Volume) gatherAll(w *waiting, p providers.Provider) ([]*remoteDir, error) {
	locked := v.lock()
	dirs := locked.KnownRemoteDirs()
	locked.unlock()
	all := make([]*remoteDir, 0, len(dirs))
	for _, dir := range dirs {
		h, err := v.newListing(dir)
		switch {
		case err != nil && !errors.Is(err, fs.ErrStale):
			return nil, err
		case h != nil && !h.first:
			all = append(all, h)
		}
	}
	if len(all) > 1 && p.Capabilities().RecursiveList {
		if err := v.listTree(w, p, all); !errors.Is(err, errDear) && !errors.Is(err, providers.ErrUnsupported) {
			return all, err
		}
	}
	return v.gatherEach(w, p, all)
}

// gatherEach lists one directory after the other, several at a time.
func (v *Volume) gatherEach(w *waiting, p providers.Provider, all []*remoteDir) ([]*remoteDir, error) {
	errs := make([]error, len(all))
	slots := make(chan struct{}, listers)
	var work sync.WaitGroup
	for i, h := range all {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			errs[i] = h.gather(w, p, nil)
		})
	}
	work.Wait()
	kept := all[:0]
	for i, h := range all {
		switch {
		case errs[i] == nil:
			kept = append(kept, h)
		case notThere(errs[i]) && h.dir == table.Root:
			return nil, v.rootGone(errs[i])
		case !notThere(errs[i]): // else the listing of its parent says so
			return nil, errs[i]
		}
	}
	return kept, nil
}

// errDear says that one recursive listing costs more than one of each
// directory: most of the tree was never looked at.
var errDear = errors.New("too many pages")

// listTree lists the whole tree at once.
func (v *Volume) listTree(w *waiting, p providers.Provider, all []*remoteDir) error {
	at := map[providers.Locator]*remoteDir{}
	for _, h := range all {
		at[h.at] = h
	}
	var got pending.Reach
	err := v.retry(w, func(ctx context.Context) error {
		got.Again()
		for _, h := range all {
			h.reset()
		}
		opts := providers.ListOptions{Recursive: true}
		for pages := 0; ; pages++ {
			if pages > len(all) {
				return errDear
			}
			page, err := p.List(ctx, providers.Locator{}, opts)
			if err != nil {
				return err
			}
			progressed(w, &got, 1)
			v.treePage(at, page.Entries)
			if opts.Token = page.Next; opts.Token == "" {
				return nil
			}
		}
	})
	if errors.Is(err, providers.ErrNotExist) {
		err = nil // the root of an empty bucket
	}
	if err != nil {
		return err
	}
	for _, h := range all {
		h.missing()
	}
	return nil
}

func (v *Volume) treePage(at map[providers.Locator]*remoteDir, entries []providers.Info) {
	locked := v.lock()
	defer locked.unlock()
	for i := range entries {
		if h := at[entries[i].Locator.Parent()]; h != nil {
			h.entry(locked, &entries[i])
		}
	}
}

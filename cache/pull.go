package cache

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/waiting"
)

// PullOptions: the zero value pulls.
type PullOptions struct {
	// IfClean leaves a working copy alone that has changes which the remote does not have: the
	// upstream specification asks this of a pull.
	IfClean bool

	alone bool // its caller reads no report: the next Pull or Commit reports its conflicts
}

// SkippedDirty is the reason of a pull with IfClean that did not ask the remote.
const SkippedDirty = "there are uncommitted local changes"

// pulling is a pull that is under way.
type pulling struct {
	done   chan struct{}
	alone  bool       // later calls do not join
	report PullReport // valid with err when done is closed
	err    error
}

// Pull asks the remote for the changes of others and applies them locally. A program sees all of
// them at once: everything is gathered first and then applied in one step. Meanwhile the
// differences are in memory, and 16 bytes for each name of the known directories. Directories that
// were never listed are not asked about.
//
// A call during a pull gets the result of the next pull. Close waits for a pull under way, and
// there is none after it (providers.ErrClosed). ErrMassDelete says that too much would be
// deleted, and that nothing was done.
func (v *Volume) Pull(ctx context.Context, o PullOptions) (PullReport, error) {
	done, err := v.enter()
	if err != nil {
		return PullReport{}, err
	}
	defer done()
	for mayJoin := false; ; mayJoin = true {
		locked := v.lock()
		run := locked.pulling
		mine := run == nil
		if mine {
			run = &pulling{done: make(chan struct{}), alone: o.alone}
			locked.pulling = run
		}
		locked.unlock()
		if mine {
			run.report, run.err = v.pull(ctx, o)
			switch {
			case o.alone:
				run.err = errors.Join(run.err, v.merger.KeepUnreported(run.report.Conflicts))
			case run.err == nil && run.report.Skipped == "":
				run.report.Conflicts = v.merger.ReportConflicts(run.report.Conflicts)
			}
			run.err = errors.Join(run.err, v.keepMassDeletes())
			if run.report.Skipped == "" && v.follower.IsStore() { // else only a person pulls, and has been told
				v.chores.Ended(chores.Pull, run.err)
			}
			locked = v.lock()
			locked.pulling = nil
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
	locked := v.lock()
	isDirty := locked.DirtyCount() > 0
	locked.unlock()
	if o.IfClean && isDirty {
		return PullReport{Skipped: SkippedDirty}, nil
	}
	w := v.doing.beating(v.waits.With(ctx, v.o.Patience/2))
	defer w.Close()
	if v.follower.IsStore() {
		r, err = v.follower.Pull(w)
	} else {
		r, err = v.pullAll(w)
	}
	locked = v.lock()
	defer locked.unlock()
	if err == nil && r.Skipped == "" {
		locked.passed(massdelete.Pull)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return r, ctx.Err()
	}
	return r, errno.Translate(w.Cause(err))
}

// pullAll compares all known directories with the entries of a store that keeps no revisions.
func (v *Volume) pullAll(w *waiting.Context) (PullReport, error) {
	v.listings.End() // the directories that they have covered would be older than the pull
	c, err := v.listings.CompareAll(w, v.p)
	if err != nil {
		return PullReport{}, err
	}
	defer c.End()
	return c.Apply(revision.NoHead(), "", revision.Gone)
}

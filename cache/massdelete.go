package cache

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
)

// ErrMassDelete says that a pull or a commit would have deleted so much that it looks like an
// accident: a bucket that was emptied, a prefix that moved, an rm that went wrong. Nothing of it
// was applied; Confirm allows it.
var ErrMassDelete = massdelete.ErrHalted

// MassDelete is the reason why pulls or commits are halted until Confirm.
type MassDelete = massdelete.Halt

// loadMassDeletes loads the halts that the previous run kept.
func loadMassDeletes(v *Volume) {
	locked := v.lock()
	defer locked.unlock()
	locked.massDelete.Load(locked)
	if locked.isUnguarded() { // the previous run had another policy
		locked.passed(massdelete.Commit)
	}
}

// keepMassDeletesSoon stores the halts for the next run, in the background.
func (v *View) keepMassDeletesSoon() {
	if !v.massDelete.IsUnkept() {
		return
	}
	v.work.Go(func() {
		if err := v.keepMassDeletes(); err != nil {
			v.o.Log.Error("a halt cannot be kept", "err", err)
		}
	})
}

// keepMassDeletes stores new halts, before a caller gets a result that mentions them.
func (v *Volume) keepMassDeletes() error {
	locked := v.lock()
	unkept := locked.massDelete.IsUnkept()
	locked.unlock()
	if !unkept {
		return nil
	}
	return v.update(func(v *Tx) error { return v.massDelete.Keep(v) })
}

// lookInto lists directories, so that their names are known.
func (v *Volume) lookInto(ctx context.Context, dirs []table.Ino) error {
	w := v.waits.For(nil, v.o.Patience)
	defer w.Close()
	defer context.AfterFunc(ctx, w.Close)()
	for _, dir := range dirs {
		if err := v.listings.List(w, dir); err != nil && !errors.Is(err, fs.ErrStale) {
			return w.Cause(err)
		}
	}
	return nil
}

// judgeCommit refuses a commit for the reason that massdelete.TooMuchForCommit gave, unless it was
// confirmed. An UnseenError asks the caller to list directories and try again.
func (v *View) judgeCommit(reason string, unseen []table.Ino) error {
	if len(unseen) > 0 && !v.massDelete.IsConfirmed(massdelete.Commit) {
		return &massdelete.UnseenError{Dirs: unseen}
	}
	return v.checkMassDelete(massdelete.Commit, reason, 0)
}

// checkMassDelete halts a side for a reason, unless there is none or it was confirmed.
func (v *View) checkMassDelete(side massdelete.Side, reason string, deleted int) error {
	isNew, err := v.massDelete.Check(side, reason, deleted, v.o.Now())
	if isNew {
		v.keepMassDeletesSoon()
		v.work.Go(func() { v.chores.Report(side.String(), "", err) })
	}
	return err
}

// passed says that a side has finished its pull or commit: that uses up a confirmation.
func (v *View) passed(side massdelete.Side) {
	if h := v.massDelete.Pass(side); h != nil {
		v.o.Log.Warn("the halt is over: not so much would be deleted any more", "commit", h.Commit, "reason", h.Reason, "since", h.Since)
	}
	v.keepMassDeletesSoon()
}

// Confirm allows the halted pull and commit, once: the pull is done before Confirm returns its
// report; the commit is sent in the background, with all deletions until now. A halt of an earlier
// run counts. Without one Confirm does nothing.
func (v *Volume) Confirm(ctx context.Context) (PullReport, error) {
	locked := v.lock()
	pull, commit := locked.massDelete.Confirm()
	if commit {
		locked.deletions.cleared = v.pending.Newest(locked.View) // all deletions by now, due or not
	}
	locked.unlock()
	v.pending.Kick()
	if !pull {
		return PullReport{}, nil
	}
	return v.Pull(ctx, PullOptions{})
}

// commitCheck says whether uploads and change sets are stopped because they would delete too much.
type commitCheck struct {
	err     error  // why nothing is sent; nil: nothing is halted
	checked uint64 // the names that go one by one were checked up to this seq
	cleared uint64 // deletions up to this seq were confirmed
	looking bool   // directories are being listed, and nothing starts before that ends
}

// recheck has a halted commit checked again: the deleted names may be back.
func (c *commitCheck) recheck() {
	if c.err != nil {
		c.checked = 0
	}
}

// recheckAll has all that is due checked again, and nothing halted until then.
func (c *commitCheck) recheckAll() { c.err, c.checked = nil, 0 }

// mayBegin reports whether the due names may be sent; directories needed to tell are listed first.
func (v *View) mayBegin() bool {
	if v.deletions.looking || v.closed {
		return false
	}
	err := v.checkCommit()
	if unseen := (*massdelete.UnseenError)(nil); errors.As(err, &unseen) {
		v.lookBeforeCommit(unseen.Dirs)
		return false
	}
	if v.deletions.err = err; err != nil {
		v.pending.Review(v.View)
	}
	return err == nil
}

// lookBeforeCommit lists directories before anything is started.
func (v *View) lookBeforeCommit(dirs []table.Ino) {
	v.deletions.looking = true
	volume := v.Volume
	volume.work.Go(func() {
		err := volume.lookInto(volume.ctx, dirs)
		locked := volume.lock()
		locked.deletions.looking = false
		if err != nil {
			volume.chores.Note(chores.Upload, err)
			volume.send.Failed(locked.View, err)
			volume.send.Pause(locked.View, upload.PauseAfter(volume.send.Backoff().Failures(locked.View)))
		}
		locked.unlock()
		volume.pending.Kick()
	})
}

// checkCommit applies the rule of package massdelete before names go one by one, each time that
// more is due.
func (v *View) checkCommit() error {
	c, due := &v.deletions, v.pending.Due(v.View)
	switch {
	case v.isUnguarded():
		return nil
	case c.checked >= due && (c.err == nil || !v.massDelete.IsConfirmed(massdelete.Commit)):
		return c.err // as at the last check, which covered all that is due
	}
	deleted, inRoot, madeInRoot := massdelete.CountDue(v, due, c.cleared)
	err := v.judgeCommit(massdelete.TooMuchForCommit(v, deleted, inRoot, madeInRoot))
	if unseen := (*massdelete.UnseenError)(nil); errors.As(err, &unseen) {
		return err
	}
	c.checked = due
	if v.massDelete.IsConfirmed(massdelete.Commit) {
		c.cleared = max(c.cleared, due)
		v.passed(massdelete.Commit)
	}
	if err == nil {
		v.harmless(due)
	}
	return err
}

// judgeSet is judgeCommit for a change set.
func (v *View) judgeSet(due uint64, reason string, unseen []table.Ino) error {
	err := v.judgeCommit(reason, unseen)
	if err == nil || errors.Is(err, ErrMassDelete) {
		v.deletions.err = err
	}
	if err == nil {
		v.harmless(due)
	}
	return err
}

// harmless ends a halt when the due names delete not too much, and no others differ: the deleted
// names are local again.
func (v *View) harmless(due uint64) {
	if due >= v.pending.Newest(v.View) && !v.massDelete.IsConfirmed(massdelete.Commit) {
		v.passed(massdelete.Commit)
	}
}

// isUnguarded reports whether no commit is ever too much, as each change is sent by itself.
func (v *View) isUnguarded() bool {
	return v.sets == nil && v.o.Policy.Commit == DueChange && v.o.Policy.Window <= 0
}

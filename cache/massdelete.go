package cache

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
)

// ErrMassDelete says that a pull or a commit would have deleted so much that it
// looks like an accident: a bucket that was emptied, a prefix that moved, an
// rm that went wrong. Nothing of it was applied; Confirm allows it.
var ErrMassDelete = massdelete.ErrHalted

// MassDelete is why nothing is pulled or committed until Confirm.
type MassDelete = massdelete.Halt

// loadMassDeletes takes over what the last run has kept.
func loadMassDeletes(v *Volume) {
	locked := v.lock()
	defer locked.unlock()
	locked.massDelete.Load(locked)
	if locked.isUnguarded() { // it was another policy
		locked.passed(massdelete.Commit)
	}
}

// keepMassDeletesSoon has what stands kept for the next run, in the background.
func (v *View) keepMassDeletesSoon() {
	if !v.massDelete.IsUnkept() {
		return
	}
	v.background(func() {
		if err := v.keepMassDeletes(); err != nil {
			v.o.Log.Error("a halt cannot be kept", "err", err)
		}
	})
}

// keepMassDeletes keeps what is not kept yet, before an outcome is told that says of it.
func (v *Volume) keepMassDeletes() error {
	locked := v.lock()
	unkept := locked.massDelete.IsUnkept()
	locked.unlock()
	if !unkept {
		return nil
	}
	return v.update(func(v *Tx) error { return v.massDelete.Keep(v) })
}

// lookInto makes the names of directories known.
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

// judgeCommit refuses a commit for the reason that massdelete.TooMuchForCommit gave,
// unless that was confirmed. An UnseenError asks to be called again when more is known.
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
		v.background(func() { v.chores.Report(side.String(), "", err) })
	}
	return err
}

// passed says that a side has done what it was to do: what was confirmed is used up.
func (v *View) passed(side massdelete.Side) {
	if h := v.massDelete.Pass(side); h != nil {
		v.o.Log.Warn("the halt is over: not so much would be deleted any more", "commit", h.Commit, "reason", h.Reason, "since", h.Since)
	}
	v.keepMassDeletesSoon()
}

// Confirm allows what was halted, once: the pull is done before Confirm
// returns, which says what it did; the commit goes its way, with all that was
// deleted until now. A halt of the run before counts. Without one it does nothing.
func (v *Volume) Confirm(ctx context.Context) (PullReport, error) {
	locked := v.lock()
	pull, commit := locked.massDelete.Confirm()
	if commit {
		v.deletions.cleared = v.pending.Newest(locked.View) // what is deleted by now, due or not
	}
	locked.unlock()
	v.pending.Kick()
	if !pull {
		return PullReport{}, nil
	}
	return v.Pull(ctx, PullOptions{})
}

// commitGuard stops what is sent when it would delete too much. The lock of the volume guards
// it.
type commitGuard struct {
	v       *Volume
	err     error  // why nothing is sent; nil: nothing is halted
	checked uint64 // what was due when names that go one by one were looked at
	cleared uint64 // deletions up to here were confirmed
	looking bool   // no start before more of the tree is known
}

var _ upload.Guard = (*commitGuard)(nil)

// Requested implements upload.Guard.
func (g *commitGuard) Requested(*tree.View) { g.err, g.checked = nil, 0 }

// Halted implements upload.Guard.
func (g *commitGuard) Halted(*tree.View) error { return g.err }

// recheck has what is halted be judged again: what was to be deleted may be back.
func (g *commitGuard) recheck(*tree.View) {
	if g.err != nil {
		g.checked = 0
	}
}

// mayBegin reports whether what is due may be sent. What has to be known for that is found out.
func (g *commitGuard) mayBegin(v *View) bool {
	if g.looking || v.closed {
		return false
	}
	err := g.check(v)
	if unseen := (*massdelete.UnseenError)(nil); errors.As(err, &unseen) {
		g.lookInto(v, unseen.Dirs)
		return false
	}
	if g.err = err; err != nil {
		v.pending.Review(v.View)
	}
	return err == nil
}

// lookInto makes directories known before anything is started.
func (g *commitGuard) lookInto(v *View, dirs []table.Ino) {
	g.looking = true
	v.background(func() {
		err := g.v.lookInto(g.v.ctx, dirs)
		locked := g.v.lock()
		g.looking = false
		if err != nil {
			g.v.chores.Note(chores.Upload, err)
			g.v.send.Failed(locked.View, err)
			g.v.send.Pause(locked.View, upload.PauseAfter(g.v.send.Backoff().Failures(locked.View)))
		}
		locked.unlock()
		g.v.pending.Kick()
	})
}

// check asks the rule of package massdelete before names go one by one, each time that more
// is due.
func (g *commitGuard) check(v *View) error {
	due := v.pending.Due(v.View)
	switch {
	case v.isUnguarded():
		return nil
	case g.checked >= due && (g.err == nil || !v.massDelete.IsConfirmed(massdelete.Commit)):
		return g.err // as it was when this was looked at, over all that is due
	}
	deleted, inRoot, madeInRoot := massdelete.CountDue(v, due, g.cleared)
	err := v.judgeCommit(massdelete.TooMuchForCommit(v, deleted, inRoot, madeInRoot))
	if unseen := (*massdelete.UnseenError)(nil); errors.As(err, &unseen) {
		return err
	}
	g.checked = due
	if v.massDelete.IsConfirmed(massdelete.Commit) {
		g.cleared = max(g.cleared, due)
		v.passed(massdelete.Commit)
	}
	if err == nil {
		v.harmless(due)
	}
	return err
}

// judgeSet is judgeCommit for a set of what is due.
func (g *commitGuard) judgeSet(v *View, due uint64, reason string, unseen []table.Ino) error {
	err := v.judgeCommit(reason, unseen)
	if err == nil || errors.Is(err, ErrMassDelete) {
		g.err = err
	}
	if err == nil {
		v.harmless(due)
	}
	return err
}

// harmless ends a halt when what is due is not too much, and nothing else differs: what
// was deleted is here again.
func (v *View) harmless(due uint64) {
	if due >= v.pending.Newest(v.View) && !v.massDelete.IsConfirmed(massdelete.Commit) {
		v.passed(massdelete.Commit)
	}
}

// isUnguarded reports whether no commit is ever too much: each change goes by itself.
func (v *View) isUnguarded() bool {
	return v.sets == nil && v.o.Policy.Commit == DueChange && v.o.Policy.Window <= 0
}

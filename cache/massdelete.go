package cache

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// ErrMassDelete says that a pull or a commit would have deleted so much that it
// looks like an accident: a bucket that was emptied, a prefix that moved, an
// rm that went wrong. Nothing of it was applied; Confirm allows it.
var ErrMassDelete = massdelete.ErrHalted

// MassDelete is why nothing is pulled or committed until Confirm.
type MassDelete = massdelete.Halt

// loadMassDeletes takes over what the last run has kept.
func (v *Volume) loadMassDeletes() {
	locked := v.lock()
	defer locked.unlock()
	locked.massDelete.Load(locked)
	if v.engine.isUnguarded() { // it was another policy
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

// keepMassDeletes keeps what is not kept yet.
func (v *Volume) keepMassDeletes() error {
	locked := v.lock()
	unkept := locked.massDelete.IsUnkept()
	locked.unlock()
	if !unkept {
		return nil
	}
	return v.update(func(v *Tx) error { return v.massDelete.Keep(v) })
}

// massDeleteKept has what an outcome says of halts kept before it is told.
func (v *Volume) massDeleteKept(outcome error) error {
	return errors.Join(outcome, v.keepMassDeletes())
}

// lookInto makes the names of directories known.
func (v *Volume) lookInto(ctx context.Context, dirs []table.Ino) error {
	w := v.wait(nil, v.o.Patience)
	defer w.close()
	defer context.AfterFunc(ctx, w.close)()
	for _, dir := range dirs {
		if err := v.list(w, dir); err != nil && !errors.Is(err, fs.ErrStale) {
			return w.cause(err)
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

// checkMassDelete halts a side for a reason, unless there is none or the halt was
// confirmed.
func (v *View) checkMassDelete(side massdelete.Side, reason string, deleted int) error {
	isNew, err := v.massDelete.Check(side, reason, deleted, v.o.Now())
	if isNew {
		v.keepMassDeletesSoon()
		v.background(func() { v.report(side.String(), "", err) })
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

// MassDeletes lists what waits for Confirm.
func (v *Volume) MassDeletes() []MassDelete {
	locked := v.lock()
	defer locked.unlock()
	return locked.massDelete.All()
}

// Confirm allows what was halted, once: the pull is done before Confirm
// returns, which says what it did; the commit goes its way, with all that was
// deleted until now. A halt of the run before counts. Without one it does nothing.
func (v *Volume) Confirm(ctx context.Context) (PullReport, error) {
	locked := v.lock()
	pull, commit := locked.massDelete.Confirm()
	if commit {
		v.engine.cleared = v.engine.last // what is deleted by now, due or not
	}
	locked.unlock()
	v.engine.wake()
	if !pull {
		return PullReport{}, nil
	}
	return v.Pull(ctx, PullOptions{})
}

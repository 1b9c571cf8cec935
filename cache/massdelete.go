package cache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// ErrMassDelete says that a pull or a commit would have deleted so much that it
// looks like an accident: a bucket that was emptied, a prefix that moved, an
// rm that went wrong. Nothing of it was applied; Confirm allows it.
var ErrMassDelete = errors.New("stopped: too much would be deleted")

// MassDelete is why nothing is pulled or committed until Confirm.
type MassDelete struct {
	Since  time.Time
	Commit bool // else a pull
	Reason string

	Deleted int // names that a pull would have deleted
}

// The sides that halt by themselves.
const (
	pullSide = iota
	commitSide
)

var sideNames = [...]string{pullSide: "pull", commitSide: "commit"}

// massDeleteFloor is the size of a tree from which on its parts are counted: more
// than half of it is not deleted at once without being asked for. Nor is the root
// emptied of any tree with more than one entry, wherever they are.
const massDeleteFloor = 20

// tooMuch says why deleting so many of the backend's names needs a word from a person,
// or "". With unseen there may be more in those directories than anybody knows: they are
// to be looked into before the word is asked for.
func (v *View) tooMuch(d deletion) (reason string, unseen []table.Ino) {
	switch {
	case d.rootBefore > 1 && d.rootAfter == 0:
		return fmt.Sprintf("all %d entries of the root would be deleted", d.rootBefore), nil
	case d.rootBefore == 1 && d.rootAfter == 0 && d.names > 1:
		return fmt.Sprintf("the one directory of the root would be deleted, with %d entries", d.names-1), nil
	}
	if 2*d.names <= massDeleteFloor {
		return "", nil
	}
	left, unseen := v.countBase(2*d.names + 1)
	left += d.more - (d.names - d.done)
	if all := d.names + left; all >= massDeleteFloor && d.names > left {
		return fmt.Sprintf("%d of %d entries would be deleted", d.names, all), unseen
	}
	return "", nil
}

// deletion is how much of the backend's names is to be deleted.
type deletion struct {
	names                 int
	done                  int // of them the table has not any more
	more                  int // names that are left and that the table does not have yet
	rootBefore, rootAfter int // entries of the root, if some of them are among the names
}

// maxUnseen is how many directories are looked into before it is counted again.
const maxUnseen = 32

// countBase counts names that the backend is known to have, but goes on to limit only,
// and lists directories that are not to be deleted and that nobody has looked into.
func (v *View) countBase(limit int) (total int, unseen []table.Ino) {
	return v.countBelow(table.Root, limit)
}

// countBelow is countBase below a directory.
func (v *View) countBelow(top table.Ino, limit int) (total int, unseen []table.Ino) {
	dirs := []table.Ino{top}
	for len(dirs) > 0 && total < limit {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		n := v.table.Inode(dir)
		if !n.Loaded && len(unseen) < maxUnseen && (dir == table.Root || len(n.Links) > 0) {
			unseen = append(unseen, dir)
		}
		v.table.Names(dir, "", func(_ string, rec table.Name) bool {
			if rec.Remote != nil {
				total++
				if n := v.table.Inode(rec.Remote.Ino); n != nil && isDir(n) {
					dirs = append(dirs, rec.Remote.Ino)
				}
			}
			return total < limit
		})
	}
	return total, unseen
}

// unseenError says that too little is known to tell whether too much would be
// deleted.
type unseenError struct{ dirs []table.Ino }

func (e *unseenError) Error() string {
	return fmt.Sprintf("%d directories were never looked into", len(e.dirs))
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

// countRoot counts what the backend is known to have in its root.
func (v *View) countRoot() int {
	count := 0
	v.table.Names(table.Root, "", func(_ string, rec table.Name) bool {
		if rec.Remote != nil {
			count++
		}
		return true
	})
	return count
}

// checkCommit refuses a commit that would delete so many names at the backend, so many
// of them in the root, unless that was confirmed. An unseenError asks to be called again
// when more is known.
func (v *View) checkCommit(deleted, deletedInRoot, madeInRoot int) error {
	return v.judgeCommit(v.weighCommit(deleted, deletedInRoot, madeInRoot))
}

// weighCommit is tooMuch for a commit.
func (v *View) weighCommit(deleted, deletedInRoot, madeInRoot int) (reason string, unseen []table.Ino) {
	root := 0
	if deletedInRoot > 0 {
		root = v.countRoot()
	}
	return v.tooMuch(deletion{names: deleted, rootBefore: root, rootAfter: root - deletedInRoot + madeInRoot})
}

// judgeCommit is what follows from what weighCommit said.
func (v *View) judgeCommit(reason string, unseen []table.Ino) error {
	if len(unseen) > 0 && !v.halts.confirmed[commitSide] {
		return &unseenError{unseen}
	}
	return v.checkMassDelete(commitSide, reason, 0)
}

// tooMuchBelow halts a pull that is about to delete a directory with so much in it that
// it would be halted in the end: to take away a million names first, and to bring them
// back, costs gigabytes. It reports whether it did.
func (m *merge) tooMuchBelow(v *Tx, dir table.Ino) bool {
	if m.within > 0 || m.first || v.halts.confirmed[pullSide] {
		return false
	}
	below, _ := v.countBelow(dir, math.MaxInt)
	if below < manyBelow {
		return false
	}
	// m.deleted has the directory already, and the table still has it.
	d := deletion{names: m.deleted + below, done: m.deleted - 1}
	reason, unseen := v.tooMuch(d)
	if len(unseen) > 0 {
		return false
	}
	m.halt = m.stop(v, reason, d.names)
	return m.halt != nil
}

// manyBelow is how many names are just deleted, and counted then.
const manyBelow = 1000

// checkMassDelete halts a side for a reason, unless there is none or the halt was
// confirmed.
func (v *View) checkMassDelete(side int, reason string, deleted int) error {
	p := &v.halts
	if reason == "" || p.confirmed[side] {
		return nil
	}
	if p.of[side] == nil || p.of[side].Reason != reason {
		p.of[side] = &MassDelete{Since: v.o.Now(), Commit: side == commitSide, Reason: reason, Deleted: deleted}
		v.keepMassDelete(side, p.of[side])
		v.background(func() { v.report(sideNames[side], "", fmt.Errorf("%w: %s", ErrMassDelete, reason)) })
	}
	return fmt.Errorf("%w: %s", ErrMassDelete, reason)
}

// passed says that a side has done what it was to do: what was confirmed is used up.
func (v *View) passed(side int) {
	p := &v.halts
	if h := p.of[side]; h != nil && !p.confirmed[side] {
		v.o.Log.Warn("the halt is over: not so much would be deleted any more", "commit", h.Commit, "reason", h.Reason, "since", h.Since)
	}
	p.of[side], p.confirmed[side] = nil, false
	v.keepMassDelete(side, nil)
}

// massDeletes lists the halts that stand.
func (v *View) massDeletes() (all []MassDelete) {
	for _, h := range v.halts.of {
		if h != nil {
			all = append(all, *h)
		}
	}
	return all
}

// MassDeletes lists what waits for Confirm.
func (v *Volume) MassDeletes() []MassDelete {
	locked := v.lock()
	defer locked.unlock()
	return locked.massDeletes()
}

// Confirm allows what was halted, once: the pull is done before Confirm
// returns, which says what it did; the commit goes its way, with all that was
// deleted until now. A halt of the run before counts. Without one it does nothing.
func (v *Volume) Confirm(ctx context.Context) (PullReport, error) {
	locked := v.lock()
	p := &locked.halts
	pull := p.of[pullSide] != nil
	for side, h := range p.of {
		p.confirmed[side] = p.confirmed[side] || h != nil
	}
	if p.of[commitSide] != nil {
		v.engine.cleared = v.engine.last // what is deleted by now, due or not
	}
	p.of[commitSide] = nil
	locked.unlock()
	v.engine.wake()
	if !pull {
		return PullReport{}, nil
	}
	return v.Pull(ctx, PullOptions{})
}

package cache

import (
	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/providers"
)

// Unpushed is what is known of commits that the remote does not have.
type Unpushed = revision.Unpushed

// setUnpushed notes it.
func (v *Tx) setUnpushed(u *Unpushed) error {
	if u == nil {
		v.failing.Succeeded(chores.Push) // none is owed
	}
	return revision.SetUnpushed(v.table, u)
}

// unpushedMore notes that there are more commits to push. A store without a remote has
// all that it was given.
func (v *Tx) unpushedMore(n int) error {
	if _, ok := providers.As[providers.Pusher](v.p); !ok {
		return v.setUnpushed(nil)
	}
	v.pushes.commits += uint64(n)
	return v.setUnpushed(revision.UnpushedOf(v.table).Committed(n, v.o.Now()))
}

// anotherLine notes that commits were made anew, or are about to be: a push that is
// under way sends what they were before.
func (v *Tx) anotherLine() error {
	v.pushes.lines++
	if revision.UnpushedOf(v.table) != nil {
		return nil
	}
	return v.setUnpushed(&Unpushed{Since: v.o.Now()})
}

// noneUnpushed notes that there are no commits of ours left here, though a push may be
// owed.
func (v *Tx) noneUnpushed() error {
	u := revision.UnpushedOf(v.table)
	if u == nil {
		return nil
	}
	u.Commits = 0
	return v.setUnpushed(u)
}

// owe notes that a push was begun, or why it failed: who comes after a kill knows
// that one is owed.
func (v *Volume) owe(cause error) error {
	return v.update(func(v *Tx) error {
		u := revision.UnpushedOf(v.table)
		if u == nil || !u.Owe(cause, v.o.Now()) {
			return nil
		}
		return v.setUnpushed(u)
	})
}

// notPushed keeps why a push failed, and reports it, once for each reason. That
// it was broken off, to be made again, is none.
func (v *Volume) notPushed(cause error) {
	if v.brokenOff(cause) {
		return
	}
	v.Ended(chores.Push, cause)
	if err := v.owe(cause); err != nil {
		v.o.Log.Error("why a push failed cannot be kept", "err", err)
	}
}

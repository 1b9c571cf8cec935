package revision

import (
	"time"

	"github.com/wsmount/wsmount/cache/internal/tree"
)

// Backlog is the commits of a clone that its remote lacks: the table's record of them (Unpushed),
// and which of them a push under way can have sent. Methods with a transaction are called in it;
// the lock of the tree guards all fields.
type Backlog struct {
	o BacklogOptions

	commits uint64 // to push, that were noted in this run
	lines   uint64 // how often the head left the line of commits that it was on
	pushed  uint64 // value of commits when the latest push began that has succeeded
}

// BacklogOptions are the dependencies of a Backlog.
type BacklogOptions struct {
	CanPush bool   // else no commit waits for a push
	Empty   func() // is told that no push is owed any more
	Now     func() time.Time
}

// NewBacklog makes a Backlog that has seen no commit.
func NewBacklog(o BacklogOptions) *Backlog { return &Backlog{o: o} }

func (b *Backlog) set(tx *tree.Tx, u *Unpushed) error {
	if u == nil {
		b.o.Empty()
	}
	return SetUnpushed(tx, u)
}

// Add notes that there are more commits to push.
func (b *Backlog) Add(tx *tree.Tx, n int) error {
	if !b.o.CanPush {
		return b.set(tx, nil)
	}
	b.commits += uint64(n)
	return b.set(tx, UnpushedOf(tx).Committed(n, b.o.Now()))
}

// Found notes that there are n commits to push, whether or not this working copy made them.
func (b *Backlog) Found(tx *tree.Tx, n int) error {
	if u := UnpushedOf(tx); u != nil {
		n -= u.Commits
	}
	if n <= 0 {
		return nil
	}
	return b.Add(tx, n)
}

// Remade notes that commits were made anew, or are about to be: a push that is under way sends the
// old ones.
func (b *Backlog) Remade(tx *tree.Tx) error {
	b.lines++
	if UnpushedOf(tx) != nil {
		return nil
	}
	return b.set(tx, &Unpushed{Since: b.o.Now()})
}

// TookBack notes that no commits are left to push, though a push may be owed.
func (b *Backlog) TookBack(tx *tree.Tx) error {
	u := UnpushedOf(tx)
	if u == nil {
		return nil
	}
	u.Commits = 0
	return b.set(tx, u)
}

// Left notes that the head went to another branch, of which so many commits are to be pushed: a
// push under way sends the branch before.
func (b *Backlog) Left(tx *tree.Tx, commits int) error {
	b.lines++
	err := b.set(tx, nil)
	if err == nil && commits > 0 {
		err = b.Add(tx, commits)
	}
	return err
}

// Owe notes that a push was begun, or why it failed: after a kill the next run knows that one is
// owed.
func (b *Backlog) Owe(tx *tree.Tx, cause error) error {
	u := UnpushedOf(tx)
	if u == nil || !u.Owe(cause, b.o.Now()) {
		return nil
	}
	return b.set(tx, u)
}

// PushBegun is the most that a push can have sent: a commit that is noted while it is under way
// may have come too late for it, and so may another line of commits.
type PushBegun struct {
	at             time.Time
	commits, lines uint64
}

// Begin says that a push begins.
func (b *Backlog) Begin(*tree.View) PushBegun {
	return PushBegun{at: b.o.Now(), commits: b.commits, lines: b.lines}
}

// Pushed notes that the remote has the commits that existed when a push began. Commits noted since
// then stay unpushed, and so do all those of another line. Of two pushes that overlap, the one
// that began later knows more, whichever ends first.
func (b *Backlog) Pushed(tx *tree.Tx, begun PushBegun) error {
	if b.lines != begun.lines || begun.commits < b.pushed {
		return nil
	}
	b.pushed = begun.commits
	if later := b.commits - begun.commits; later > 0 {
		return b.set(tx, &Unpushed{Commits: int(later), Since: begun.at})
	}
	SetMerging(tx, "")
	return b.set(tx, nil)
}

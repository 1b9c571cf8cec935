package upload

import (
	"context"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// A Guard stops commits that delete too much.
type Guard interface {
	// Requested says that a commit was asked for: due deletions are judged anew before they go.
	Requested(v *tree.View)
	// Halted is the reason why no due name goes; nil: they may.
	Halted(v *tree.View) error
}

// CommitterOptions are the parts that a Committer works with.
type CommitterOptions struct {
	Tree   *tree.Tree
	Queue  *pending.Queue
	Sender *Sender
	Holds  *Holds
	Guard  Guard
	// Wait waits until a waiter has ended, as long as progress is made.
	Wait func(w *pending.Waiter) error
}

// Committer sends pending changes name by name: its commits are waiters, and a commit is stopped
// by the failure of a name, or by the Guard.
type Committer struct{ o CommitterOptions }

// NewCommitter makes one without commits.
func NewCommitter(o CommitterOptions) *Committer { return &Committer{o} }

// Look begins the operations that may run now.
func (c *Committer) Look(v *tree.View) { c.o.Sender.Look(v) }

// IsAsked reports whether a commit was asked for that is no waiter.
func (c *Committer) IsAsked(*tree.View) bool { return false }

// Stopped is a reason, other than the failure of a name, why nothing is sent.
func (c *Committer) Stopped(*tree.View) (cause error, final bool) { return nil, false }

// Conflict reports whether commits that are no waiters will report a conflict.
func (c *Committer) Conflict(*tree.View, string) (heard bool) { return false }

// Commit has the names that are dirty up to a place in the order sent, and returns when the remote
// has them or will not take them. Files that programs are writing are left alone. A name by itself
// has no description.
func (c *Committer) Commit(ctx context.Context, _ pending.Description, due uint64) (pending.Report, error) {
	w, asked := &pending.Waiter{Commit: true, Names: map[table.Link]uint64{}}, map[table.Link]uint64{}
	v := c.o.Tree.Lock()
	c.o.Queue.EachUpTo(v, due, func(seq uint64, l table.Link) bool {
		asked[l] = seq
		if !c.o.Queue.IsLeftAlone(v, l) {
			w.Names[l] = seq
			c.o.Sender.Jobs().Forgive(v, l)
		}
		return true
	})
	c.o.Guard.Requested(v)
	c.o.Sender.Rouse(v)
	c.o.Queue.Ask(v)
	c.o.Queue.Add(v, w)
	c.o.Tree.Unlock()
	stop := context.AfterFunc(ctx, func() {
		v := c.o.Tree.Lock()
		defer c.o.Tree.Unlock()
		c.o.Queue.End(v, w, context.Cause(ctx))
	})
	defer stop()
	err := c.o.Wait(w)
	v = c.o.Tree.Lock()
	defer c.o.Tree.Unlock()
	if err == nil {
		err = c.o.Guard.Halted(v)
	}
	r := c.report(v, asked)
	r.Conflicts = pending.Paths(r.Conflicts, w.Conflicts)
	return r, err
}

// report tells the outcome for each name.
func (c *Committer) report(v *tree.View, asked map[table.Link]uint64) pending.Report {
	r := pending.Report{Revision: revision.Committed(v)}
	for l, limit := range asked {
		rec := v.Record(l)
		if rec.Seq == 0 || rec.Seq > limit {
			r.Changes++
			continue
		}
		r.HoldBack(c.o.Holds.Of(v, l))
	}
	r.Committed = r.Changes > 0
	return r
}

// Package drain has all unsaved changes sent, until there is no more progress. It knows the
// tree, and the queue of pending changes; it sends nothing by itself.
package drain

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// A Drain has a working copy send all changes that the remote does not have.
type Drain struct {
	Tree    *tree.Tree
	Open    Open
	Flush   func(ino table.Ino) error // flushes metadata to the table, if it is open
	Queue   Queue
	Holds   Holds
	Commits Committer
	Pushes  bool // commits are pushed too
}

// Open are the inodes that are open.
type Open interface {
	Inos(v *tree.View) []table.Ino
}

// Queue has the pending changes.
type Queue interface {
	// SendOpen has content sent although a program may be writing it.
	SendOpen(v *tree.View, ino table.Ino, n *table.Inode)
	IsBeingWritten(v *tree.View, rec table.Name) bool
}

// Holds know why names are not sent.
type Holds interface {
	Of(v *tree.View, l table.Link) pending.HeldBack
}

// Committer sends the dirty names, and pushes commits.
type Committer interface {
	Commit(ctx context.Context) (pending.Report, error)
	Push(ctx context.Context) error
}

// All commits and pushes until there is no more progress: a change made during a round, by a
// program, a conflict or a pull, is left to the next round. Its error is a
// *pending.UnsavedError if dirty names remain.
func (d *Drain) All(ctx context.Context) error {
	for {
		err := d.FlushOpen()
		if err != nil {
			return d.unsaved(err)
		}
		r, err := d.Commits.Commit(ctx)
		push := err == nil && d.isUnpushed()
		if push {
			err = d.Commits.Push(ctx)
		}
		if err != nil || r.Changes == 0 && !push || !d.isUnsent() {
			return d.unsaved(err)
		}
	}
}

// FlushOpen flushes the metadata of open files to the table, and has them sent although they
// are open: a close may never be received.
func (d *Drain) FlushOpen() error {
	v := d.Tree.Lock()
	open := d.Open.Inos(v)
	d.Tree.Unlock()
	var errs []error
	for _, ino := range open {
		errs = append(errs, d.Flush(ino))
		v = d.Tree.Lock()
		if n := v.Inode(ino); n != nil {
			d.Queue.SendOpen(v, ino, n)
		}
		d.Tree.Unlock()
	}
	return errors.Join(errs...)
}

// isUnpushed reports whether there is something to push.
func (d *Drain) isUnpushed() bool {
	v := d.Tree.Lock()
	defer d.Tree.Unlock()
	return d.Pushes && revision.UnpushedOf(v) != nil
}

// isUnsent reports whether there is a dirty name that may be sent.
func (d *Drain) isUnsent() (unsent bool) {
	if d.isUnpushed() {
		return true
	}
	v := d.Tree.Lock()
	defer d.Tree.Unlock()
	v.Dirty(0, func(_ uint64, l table.Link) bool {
		unsent = d.Holds.Of(v, l).IsPending() || d.Queue.IsBeingWritten(v, v.Record(l))
		return !unsent
	})
	return unsent
}

// unsaved lists the dirty names in its error.
func (d *Drain) unsaved(cause error) error {
	v := d.Tree.Lock()
	defer d.Tree.Unlock()
	e := &pending.UnsavedError{Err: cause}
	v.Dirty(0, func(_ uint64, l table.Link) bool {
		e.Count++
		if len(e.Files) < pending.MostShown {
			e.Files = append(e.Files, d.Holds.Of(v, l))
		}
		return true
	})
	if e.Count == 0 {
		return cause
	}
	return e
}

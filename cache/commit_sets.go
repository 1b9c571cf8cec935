package cache

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/providers"
)

// Guard limits the content of commits, where the remote takes change sets.
type Guard = commit.Guard

// Secrets are values that must not get into a repository.
type Secrets = commit.Secrets

func newSetCommitter(v *Volume, remote providers.Committer) *commit.Committer {
	c := committing{uploading{v}}
	return commit.NewCommitter(commit.CommitterOptions{
		Remote: remote, Tree: v.tree, Queue: v.pending, Sender: v.send, Executor: v.exec,
		Kept: v.kept, Open: v.open, Guard: &v.o.Guard, Head: v.head, Shown: v.o.shown(),
		Volume: c, Host: c, Revisions: setRevisions{v.follower, v}, Ignores: c, Judge: c, Names: c, Holds: v.holds, Content: c, Monitor: c,
		Take: c.take, NewID: v.ids.Next,
		Passes: waiting.Passes, IsFinal: func(err error) bool { return !waiting.Passes(err) || errors.Is(err, waiting.ErrPatience) },
		Context: v.ctx, Log: v.o.Log,
	})
}

// committing adapts a volume for its change sets, as far as that differs from uploads.
type committing struct{ uploading }

var _ interface {
	commit.Volume
	commit.Host
	commit.Ignores
	commit.Judge
	commit.Names
	commit.Content
	commit.Monitor
} = committing{}

// Update implements commit.Volume.
func (c committing) Update(do func(upload.Tx) error) error {
	return c.v.update(func(v *Tx) error { return do(uploadTx(v)) })
}

// UpdateOwn implements commit.Volume.
func (c committing) UpdateOwn(do func(upload.Tx) error) error { return c.uploading.Update(do) }

// Patiently implements commit.Host.
func (c committing) Patiently(do func(ctx context.Context) error) error {
	w := c.v.doing.beating(c.v.waits.For(nil, c.v.o.Patience))
	defer w.Close()
	c.v.doing.wait.Store(w)
	err := do(w)
	c.v.doing.wait.Store(nil)
	c.v.doing.now.Store(nil)
	return w.Cause(err)
}

// IsClosed implements commit.Host.
func (c committing) IsClosed(at *tree.View) bool { return c.v.held.Of(at).closed }

// LearnAhead implements commit.Ignores.
func (c committing) LearnAhead(at *tree.View) { c.v.learner.Ahead(c.v.ctx, at) }

// Learn implements commit.Ignores.
func (c committing) Learn(ctx context.Context) error { return c.v.learner.ForCommit(ctx) }

// Sort implements commit.Ignores.
func (c committing) Sort(names []table.Link, carriers rules.Carriers) error {
	return c.v.update(func(v *Tx) error {
		for _, l := range names {
			v.border.Sort(v.Tx, l, carriers)
		}
		return nil
	})
}

// Bring implements commit.Ignores.
func (c committing) Bring(ctx context.Context, names []table.Link) error {
	return c.v.learner.Bring(ctx, names)
}

// IsHalted implements commit.Judge.
func (c committing) IsHalted(at *tree.View) bool {
	locked := c.v.held.Of(at)
	return locked.deletions.err != nil && !locked.massDelete.IsConfirmed(massdelete.Commit)
}

// MayDelete implements commit.Judge.
func (c committing) MayDelete(due uint64, reason string, unseen []table.Ino) error {
	return c.v.update(func(v *Tx) error { return v.judgeSet(due, reason, unseen) })
}

// LookInto implements commit.Judge.
func (c committing) LookInto(ctx context.Context, dirs []table.Ino) error {
	return c.v.lookInto(ctx, dirs)
}

// Passed implements commit.Judge.
func (c committing) Passed(at *tree.View) { c.v.held.Of(at).passed(massdelete.Commit) }

// HydrateNameless implements commit.Content.
func (c committing) HydrateNameless(ctx context.Context, ino table.Ino, name string) error {
	return c.v.hydrateNameless(ctx, ino, name, func(do func() error) error { return do() })
}

// Ended implements commit.Monitor.
func (c committing) Ended(_ *tree.View, err error) { c.v.chores.Note(chores.Commit, err) }

// Progress implements commit.Monitor.
func (c committing) Progress(what string, done, total int) { c.v.doing.goesOn(what, done, total) }

// take is CommitterOptions.Take: the content of the set stays as it is until kept.End.
func (c committing) take() (*commit.Moment, func()) {
	v := c.v
	locked := v.lock()
	defer locked.unlock()
	at, border := locked.Snapshot(), v.border.Snapshot()
	m := &commit.Moment{View: at.View, At: at, Capabilities: v.caps, Next: locked.NextSeq(), AttrOf: v.attrs().Of,
		Held: v.send.Jobs().Waiting(locked.View), Because: v.pending.Because(locked.View), Cleared: locked.deletions.cleared,
		Planner: upload.NewPlanner(upload.Options{Capabilities: v.caps})}
	m.Planner.Begin(m.View, false)
	writing := locked.beingWritten()
	m.IsWriting = func(rec table.Name) bool {
		return pending.IsBeingWritten(m.View, rec, func(_ *tree.View, ino table.Ino, _ *table.Inode) bool {
			_, is := writing[ino]
			return is
		})
	}
	m.Loose = v.kept.Begin(locked.View)
	if border.Ignoring {
		m.Rules = ignoreRules{m.View, border}
	}
	return m, func() { v.giveBack(at) }
}

// beingWritten is the content that is left alone because programs are writing it.
func (v *View) beingWritten() map[table.Ino]struct{} {
	all := map[table.Ino]struct{}{}
	for _, ino := range v.open.Inos(v.View) {
		if n := v.Inode(ino); n != nil && v.pending.IsOpen(v.View, ino, n) {
			all[ino] = struct{}{}
		}
	}
	return all
}

// giveBack ends a snapshot of the tree.
func (v *Volume) giveBack(at *tree.Snapshot) {
	if err := at.Close(v.tree); err != nil {
		v.o.Log.Error("a snapshot of the table was not given back", "err", err)
	}
}

// ignoreRules are the ignore files of a snapshot, as commit.Rules.
type ignoreRules struct {
	v *tree.View
	b *rules.Border
}

func (r ignoreRules) Carriers() (rules.Carriers, []table.Link) { return rules.CarriersOf(r.v) }

func (r ignoreRules) Sorted(l table.Link, rec table.Name, n *table.Inode, c rules.Carriers) (stays, ok bool) {
	return r.b.Sorted(r.v, l, rec, n, c)
}

func (r ignoreRules) IsLearned(l table.Link, n *table.Inode) bool {
	_, sure := r.b.Ignores.Ignored(r.v, l, n.IsDir())
	return sure
}

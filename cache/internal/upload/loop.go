package upload

import (
	"context"
	"log/slog"
	"time"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// A Loop has pending changes looked at whenever there may be some to send, name by name or as
// change sets, and now and then does the work that no change triggers.
type Loop struct {
	Tree     *tree.Tree
	Queue    *pending.Queue
	Jobs     *Jobs
	Look     func(v *tree.View)        // begins due operations
	Recheck  func(v *tree.View)        // judges halted deletions anew
	Flush    func(ino table.Ino) error // takes size and times of an open file into the table
	OnChange bool                      // a retry needs no commit to be asked for
	Every    time.Duration             // between calls of Tidy
	Now      func() time.Time
	Log      *slog.Logger
}

// Run runs until ctx ends.
func (o *Loop) Run(ctx context.Context) {
	o.Queue.Kick()
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			o.Tidy()
		case <-o.Queue.Kicked():
		}
		o.Look(o.Tree.Lock())
		o.Tree.Unlock()
	}
}

// Tidy has files that stay open sent as they are, and names tried again that were held back for a
// while.
func (o *Loop) Tidy() {
	v := o.Tree.Lock()
	lingering := o.Queue.Lingering(v)
	o.Tree.Unlock()
	for _, ino := range lingering {
		if err := o.Flush(ino); err != nil {
			o.Log.Warn("what a program writes cannot be taken into the table", "ino", ino, "err", err)
			continue
		}
		v = o.Tree.Lock()
		if n := v.Inode(ino); n != nil && o.Queue.IsUnsaved(v, ino) {
			o.Queue.SendOpen(v, ino, n)
			o.Queue.Open(v)
			o.Queue.Kick()
		}
		o.Tree.Unlock()
	}
	v = o.Tree.Lock()
	defer o.Tree.Unlock()
	o.Recheck(v) // entries that were to be deleted may be back
	if o.Jobs.TryAgain(v, o.Now()) && o.OnChange {
		o.Queue.Ask(v)
	}
}

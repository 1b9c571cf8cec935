package upload

import (
	"context"
	"log/slog"
	"time"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// A Loop has what is pending looked at whenever there may be something to send, name by name or
// not, and now and then does what no change asks for.
type Loop struct {
	Tree     *tree.Tree
	Queue    *pending.Queue
	Jobs     *Jobs
	Look     func(v *tree.View)        // has what is due begin
	Recheck  func(v *tree.View)        // has what is halted be judged anew
	Flush    func(ino table.Ino) error // takes what a program writes into the table
	OnChange bool                      // what is tried again need not be asked for
	Every    time.Duration             // is Tidy called
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

// Tidy takes files that stay open as they are, and has what was held back for a while tried
// again.
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
	o.Recheck(v) // what was to be deleted may be back
	if o.Jobs.TryAgain(v, o.Now()) && o.OnChange {
		o.Queue.Ask(v)
	}
}

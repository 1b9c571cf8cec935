package cache

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/drain"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/recovery"
	"github.com/wsmount/wsmount/providers"
)

// UnsavedError says that changes which policy wanted sent are not at the remote. They are kept in
// the working copy and listed in the error.
type UnsavedError = pending.UnsavedError

// Drain sends all changes that policy wants sent, later ones too, and pushes them if policy says
// so, while the volume goes on; progress, if not nil, is called whenever the remote has got
// something. Drain gives up with an *UnsavedError when nothing moves for Options.Patience, or ctx
// ends; changes that wait for a call of Commit are no error.
func (v *Volume) Drain(ctx context.Context, progress func(Status)) error {
	if v.o.ReadOnly {
		return nil
	}
	locked := v.lock()
	isHeld := v.pending.IsHeld(locked.View)
	locked.unlock()
	if v.o.Policy.Commit == DueAsked || isHeld {
		return v.drain.FlushOpen()
	}
	tell := func() {
		if progress != nil {
			progress(v.Status())
		}
	}
	tell()
	stop := v.pending.OnArrival(tell)
	defer func() { stop(); tell() }()
	return v.drain.All(ctx)
}

func newDrain(v *Volume) *drain.Drain {
	return &drain.Drain{Tree: v.tree, Open: v.open, Flush: v.opener.FlushIfOpen, Queue: v.pending, Holds: v.holds,
		Commits: draining{v}, Pushes: v.o.Policy.Push}
}

// draining adapts a volume for its Drain.
type draining struct{ v *Volume }

// Commit implements drain.Committer.
func (d draining) Commit(ctx context.Context) (CommitReport, error) {
	return d.v.commitDue(ctx, CommitOptions{})
}

// Push implements drain.Committer.
func (d draining) Push(ctx context.Context) error {
	_, err := d.v.Push(ctx, providers.PushOptions{})
	return err
}

// Close implements fs.Closer: it sends all changes that policy wants sent, as Drain does, and ends
// the volume; unsent changes stay in the state directory. Pulls, commits, pushes and changes of
// the branch under way are ended and waited for; other calls fail after it. Its error is an
// *UnsavedError when something is not at the remote that should be. Only the first Close does
// anything.
func (v *Volume) Close() error {
	locked := v.lock()
	done := locked.closing
	locked.closing = true
	locked.unlock()
	if done {
		return nil
	}
	var err error
	if v.ctx.Err() == nil {
		err = v.Drain(v.ctx, nil)
	}
	locked = v.lock()
	locked.closed = true
	locked.unlock()
	v.stop()
	v.work.Wait()
	v.unlinks.Run()
	v.history.ForgetMoved()
	err = errors.Join(err, recovery.Sync(v.tree, v.store, v.state.Path, v.updateTree), v.store.Close())
	locked = v.lock() // a call that comes too late finds nothing in the table, and changes nothing
	err = errors.Join(err, v.state.CloseTable())
	locked.unlock()
	return errors.Join(err, v.state.Close())
}

// enter begins a call that Close waits for, until done; there is none after it
// (providers.ErrClosed). The call is to end with the context of the volume.
func (v *Volume) enter() (done func(), err error) {
	locked := v.lock()
	defer locked.unlock()
	if locked.closed {
		return nil, providers.ErrClosed
	}
	v.work.Add(1)
	return v.work.Done, nil
}

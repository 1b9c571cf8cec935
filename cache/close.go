package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/recovery"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// UnsavedError says that something which policy wanted sent is not at the
// remote. It is kept in the working copy and listed there.
type UnsavedError = pending.UnsavedError

// Drain sends what policy wants sent, what is changed meanwhile too, and pushes it if
// policy says so, while the volume goes on; progress, if not nil, is called whenever
// something has arrived. It gives up when nothing moves for Options.Patience, or ctx ends,
// with an *UnsavedError; what waits to be asked for with Commit is no error.
func (v *Volume) Drain(ctx context.Context, progress func(Status)) error {
	if v.o.ReadOnly {
		return nil
	}
	if v.o.Policy.Commit == DueAsked || v.pending.IsHeld() {
		return v.flushAllMetadata()
	}
	tell := func() {
		if progress != nil {
			progress(v.Status())
		}
	}
	tell()
	stop := v.pending.OnArrival(tell)
	defer func() { stop(); tell() }()
	return v.unsavedError(v.drain(ctx))
}

// drain commits and pushes until nothing moves any more: what was changed while a
// round was under way, by a program, a conflict or a pull, is a matter of the next.
func (v *Volume) drain(ctx context.Context) error {
	for {
		if err := v.flushAllMetadata(); err != nil {
			return err
		}
		r, err := v.commitDue(ctx, CommitOptions{})
		push := err == nil && v.o.Policy.Push && v.unpushed()
		if push {
			_, err = v.Push(ctx, providers.PushOptions{})
		}
		if err != nil || r.Changes == 0 && !push || !v.isUnsent() {
			return err
		}
	}
}

// isUnsent reports whether something differs that may be sent.
func (v *Volume) isUnsent() (unsent bool) {
	locked := v.lock()
	defer locked.unlock()
	locked.table.Dirty(0, func(_ uint64, l table.Link) bool {
		h := v.holds.Of(locked.View, l)
		unsent = h.IsPending() || v.pending.IsBeingWritten(locked.View, locked.Record(l))
		return !unsent
	})
	return unsent || v.o.Policy.Push && revision.UnpushedOf(locked.table) != nil
}

func (v *Volume) unpushed() bool {
	locked := v.lock()
	defer locked.unlock()
	return revision.UnpushedOf(locked.table) != nil
}

// flushAllMetadata takes what programs have written into the table: no one writes any
// more, or no one would hear of it.
func (v *Volume) flushAllMetadata() error {
	locked := v.lock()
	open := locked.open.Inos(locked.View)
	locked.unlock()
	var errs []error
	for _, ino := range open {
		errs = append(errs, v.opener.FlushIfOpen(ino))
		locked = v.lock()
		if n := locked.table.Inode(ino); n != nil {
			v.pending.SendOpen(ino, n)
		}
		locked.unlock()
	}
	return errors.Join(errs...)
}

// unsavedError lists what differs.
func (v *Volume) unsavedError(cause error) error {
	locked := v.lock()
	defer locked.unlock()
	e := &UnsavedError{Err: cause}
	locked.table.Dirty(0, func(_ uint64, l table.Link) bool {
		e.Count++
		if len(e.Files) < shownHeld {
			e.Files = append(e.Files, v.holds.Of(locked.View, l))
		}
		return true
	})
	if e.Count == 0 {
		return cause
	}
	return e
}

// Close implements fs.Closer: it sends what policy wants sent, as Drain does,
// and ends the volume; what is not sent stays in the state directory. Its error
// is an *UnsavedError when something is not at the remote that should be. Only
// the first Close does anything.
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
	if err != nil {
		err = fmt.Errorf("cache: close: %w", err)
	}
	return errors.Join(err, recovery.Sync(v.tree, v.store, v.state.Path, v.updateTree), v.state.Close())
}

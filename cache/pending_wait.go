package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
)

// waitForContent returns when the backend has the content that an inode has now, and
// every change of names and attributes before. It is called at each close and
// fsync with new bytes. With Policy.NoWait it returns at once, except when too
// much is unsaved: then the backend must catch up first, for as long as
// Options.Patience; the bytes are safe here already, so that this never fails.
func (v *Volume) waitForContent(op *fs.Op, ino table.Ino) error {
	locked := v.lock()
	n := locked.table.Inode(ino)
	if n == nil || v.o.ReadOnly {
		locked.unlock()
		return nil
	}
	v.pending.Closed(ino, n)
	if v.o.Policy.NoWait {
		w := &pending.Waiter{Room: true}
		v.pending.Open()
		v.pending.Kick()
		full := v.pending.IsFull(locked.View)
		if full {
			v.pending.Add(locked.View, w)
			v.pending.Ask()
		}
		locked.unlock()
		if full {
			_ = v.waitFor(op, w)
		}
		return nil
	}
	w := &pending.Waiter{Ino: ino, Version: n.ContentVersion, Names: v.pending.Structural(locked.View)}
	for _, l := range n.Links {
		v.send.Jobs().Forgive(locked.View, l)
	}
	v.pending.Ask()
	v.pending.Add(locked.View, w)
	locked.unlock()
	return v.waitFor(op, w)
}

// waitForNames returns when the backend has all changes of names and attributes so
// far. It fails when one of them is held back.
func (v *Volume) waitForNames(op *fs.Op) error {
	if v.o.ReadOnly {
		return nil
	}
	locked := v.lock()
	w := &pending.Waiter{Names: v.pending.Structural(locked.View)}
	var refused error
	for l := range w.Names {
		if t := v.send.Jobs().Of(l); t != nil && t.State == upload.Held {
			refused = fmt.Errorf("%s: %w", locked.PathFor(l), t.Err)
			delete(w.Names, l)
		}
	}
	v.pending.Ask()
	v.pending.Add(locked.View, w)
	locked.unlock()
	if err := v.waitFor(op, w); err != nil {
		return err
	}
	return translate(refused)
}

// waitFor waits for a waiter, for as long as Options.Patience each time that
// nothing moves, and for a moment only when its caller ends.
func (v *Volume) waitFor(op *fs.Op, c *pending.Waiter) error {
	locked := v.lock()
	if c.IsOver() {
		locked.unlock()
		return translate(c.Err())
	}
	w := v.wait(op, v.o.Patience)
	c.Moved = w.moved
	locked.unlock()
	defer w.close()
	if op != nil && op.PID != 0 {
		go func() {
			if v.exiting.Wait(w, op.PID) {
				w.end(syscall.EINTR)
			}
		}()
	}
	var err error
	select {
	case <-c.Done():
		err = c.Err()
	case <-w.Done():
		locked = v.lock()
		err = context.Cause(w)
		if last := c.Last(); last != nil {
			err = fmt.Errorf("%w: %w", err, last)
		}
		v.pending.Remove(c)
		locked.unlock()
	}
	return translate(err)
}

// waitForPlace waits until no change of ours is under way, or without an answer, where
// the backend has an inode: what was not found there may be found after that.
// It reports whether there was anything to wait for.
func (v *Volume) waitForPlace(ctx context.Context, x table.Ino) (waited bool) {
	locked := v.lock()
	if v.send.IsPlaceKnown(locked.View, x) {
		locked.unlock()
		return false
	}
	w := &pending.Waiter{Place: x}
	v.pending.Add(locked.View, w)
	locked.unlock()
	select {
	case <-w.Done():
	case <-ctx.Done():
		locked = v.lock()
		v.pending.Remove(w)
		locked.unlock()
	}
	return true
}

// late says why what was waited for was not done in time.
func (v *Volume) late(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("not all was sent in time: %s (%w)", cmp.Or(v.Status().LastError, "the backend has not answered yet"), err)
}

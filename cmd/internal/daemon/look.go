package daemon

import (
	"context"
	"errors"
	"syscall"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/proc"
)

// A look at a working copy that is pulled waits for what is younger than the TTL where a
// path leads somewhere: a name that the kernel does not know, or does not believe any
// more, a directory, and an open. What a program does with a file that it has open does
// not wait, nor does a change of a name, for which the kernel looks it up before.

// look waits for a pull if what is known is too old, for the patience at most: then that
// is shown. Nor does it wait for a remote that was found not to answer, until it does.
func (w *workingCopy) look(op *fs.Op) error {
	if w.freshness.Believed() > 0 {
		return nil
	}
	ctx, end := context.WithCancelCause(w.syncer.gate.ctx)
	defer end(nil)
	if op.Cancel != nil {
		go func(done <-chan struct{}) {
			if proc.UntilKilled(op.PID, op.Cancel, done) {
				end(syscall.EINTR)
			}
		}(ctx.Done())
	}
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	switch err := w.freshness.Wait(ctx); {
	case errors.Is(err, syscall.EINTR):
		return err
	case errors.Is(err, context.DeadlineExceeded) && w.freshness.Believed() == 0: // else it came now
		w.syncer.unreachable(errLate)
	}
	return nil // also when the mount ends
}

// Lookup implements fs.Volume.
func (w *workingCopy) Lookup(op *fs.Op, dir fs.Ino, name string) (fs.Entry, error) {
	if err := w.look(op); err != nil {
		return fs.Entry{}, err
	}
	return w.Volume.Lookup(op, dir, name)
}

// Attr implements fs.Volume. Whoever has no file open came to this inode by its name,
// which was looked up; but the kernel looks up no root, and no directory that a program
// works in.
func (w *workingCopy) Attr(op *fs.Op, ino fs.Ino, f fs.File) (fs.Attr, error) {
	a, err := w.Volume.Attr(op, ino, f)
	if f != nil || err != nil || a.Mode&syscall.S_IFMT != syscall.S_IFDIR || w.freshness.Believed() > 0 {
		return a, err
	}
	if err := w.look(op); err != nil {
		return fs.Attr{}, err
	}
	return w.Volume.Attr(op, ino, f)
}

// Open implements fs.Volume.
func (w *workingCopy) Open(op *fs.Op, ino fs.Ino, flags uint32) (fs.Opened, error) {
	if err := w.look(op); err != nil {
		return fs.Opened{}, err
	}
	return w.Volume.Open(op, ino, flags)
}

// OpenDir implements fs.Volume.
func (w *workingCopy) OpenDir(op *fs.Op, ino fs.Ino) (fs.Dir, error) {
	if err := w.look(op); err != nil {
		return nil, err
	}
	return w.Volume.OpenDir(op, ino)
}

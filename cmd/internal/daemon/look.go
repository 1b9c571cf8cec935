package daemon

import (
	"context"
	"errors"
	"syscall"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/proc"
)

// A look at a working copy that is pulled waits for a state that is younger than the TTL
// where a path is resolved: a lookup of a name that the kernel does not know or does not
// believe any more, an opendir, and an open. Operations on open files do not wait, nor
// do changes of a name, before which the kernel looks it up.

// look waits for a pull if the known state is too old, for the patience at most: then
// that state is shown. It does not wait while the remote is known not to answer.
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
	case errors.Is(err, context.DeadlineExceeded) && w.freshness.Believed() == 0: // else it came
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

// Attr implements fs.Volume. A caller without an open file has reached the inode by a lookup of
// its name; but the kernel does not look up the root, nor a program's working directory.
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

package cache

import (
	"context"
	"fmt"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/ops"
	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
)

// Requests to restore, and their results: see package past.
type (
	RestoreOptions = past.RestoreOptions
	RestoreReport  = past.RestoreReport
	OtherFileError = past.OtherFileError
)

// Restore is [past.Past.Restore].
func (v *Volume) Restore(ctx context.Context, o RestoreOptions) (r RestoreReport, err error) {
	err = fs.ErrReadOnly
	if !v.o.ReadOnly {
		r, err = v.past.Restore(ctx, restoring{v}, o)
	}
	if err != nil {
		err = fmt.Errorf("restore: %w", err)
	}
	return r, err
}

// restoring adapts a volume for restores.
type restoring struct{ v *Volume }

// owner is the caller on whose behalf a restore makes entries.
func (r restoring) owner() *fs.Op {
	return &fs.Op{UID: r.v.o.Owner.UID, GID: r.v.o.Owner.GID, Umask: r.v.o.Umask}
}

// Enter implements past.Changes. The inode that the name had goes to the history; a file passes
// its mode, owner and attributes on to its successor.
func (r restoring) Enter(l table.Link, it past.Item, content files.Made) error {
	if err := tree.CheckName(l.Name); err != nil {
		return err
	}
	return r.v.update(func(v *Tx) error {
		parent := v.Inode(l.Dir)
		if parent == nil {
			return fs.ErrStale
		}
		rec := v.Record(l)
		n := ops.NewInode(r.owner(), parent, it.Mode, v.o.Now())
		n.Mode = it.Mode
		old := v.Inode(rec.Ino)
		switch {
		case old != nil && old.IsDir():
			return syscall.EISDIR
		case old != nil && old.Mode&syscall.S_IFMT == n.Mode&syscall.S_IFMT:
			n.Mode, n.UID, n.GID, n.Xattrs = old.Mode, old.UID, old.GID, old.Xattrs
			n.Mode = attrs.TakeMode(n.Mode, it.Attr)
		}
		ino := content.Ino
		if n.IsRegular() {
			n.State, n.Size, n.Blocks = table.Whole, content.Size, content.Blocks
		} else {
			ino, n.Target, n.Size = v.Alloc(), it.Target, int64(len(it.Target))
		}
		if old != nil {
			if err := v.notes.Ended(l, rec.Ino, history.WhyRestored); err != nil {
				return err
			}
		}
		v.local.Enter(l, ino, n)
		if n.IsRegular() {
			v.notes.Version(v.Inode(ino), ino, history.WhyRestored)
		} else {
			v.notes.Made(l, ino, history.WhyRestored)
		}
		if old != nil {
			v.MarkStaleDentry(l, rec.Ino)
			v.NameLost(rec.Ino)
		}
		tellOf(v, l)
		v.local.TellWrote(l)
		return nil
	})
}

// tellOf notifies the kernel of a name that changed without its knowledge.
func tellOf(v *Tx, l table.Link) {
	v.local.TellEntry(l)
	v.local.TellAttr(l.Dir)
}

// MakeDir implements past.Changes.
func (r restoring) MakeDir(l table.Link) (ino table.Ino, err error) {
	err = r.v.update(func(v *Tx) error {
		if ino = v.Record(l).Ino; ino != 0 {
			if !v.Inode(ino).IsDir() {
				return syscall.ENOTDIR
			}
			return nil
		}
		parent := v.Inode(l.Dir)
		if parent == nil {
			return fs.ErrStale
		}
		ino = v.Alloc()
		n := ops.NewInode(r.owner(), parent, syscall.S_IFDIR|0o777, v.o.Now())
		n.Loaded, n.Listed = true, n.Birth
		v.local.Enter(l, ino, n)
		v.notes.Made(l, ino, history.WhyRestored)
		tellOf(v, l)
		return nil
	})
	return ino, err
}

// Remove implements past.Changes.
func (r restoring) Remove(l table.Link, it past.Item) (done bool, err error) {
	take := func(v *Tx) error {
		if done = v.Record(l).Ino == it.Ino; !done {
			return nil
		}
		if it.Mode&syscall.S_IFMT == syscall.S_IFDIR {
			if err := ops.MayRemoveDir(v.Tx.View, it.Ino); err != nil {
				return err
			}
		}
		v.local.Remove(l, it.Ino)
		tellOf(v, l)
		return nil
	}
	err = ops.Change(func(dir table.Ino) error { return r.v.listings.Load(nil, dir) }, func() error { return r.v.update(take) })
	return done && err == nil, err
}

// Sent implements past.Changes.
func (r restoring) Sent(ctx context.Context, paths []string) error {
	op := &fs.Op{Cancel: ctx.Done()}
	for _, path := range paths {
		_, ino, err := r.v.listings.Find(ctx, path)
		if err != nil || ino == 0 {
			continue // removed meanwhile
		}
		if err := r.v.sent.Content(op, ino); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if r.v.o.Policy.NoWait {
		return nil
	}
	return r.v.sent.Names(op)
}

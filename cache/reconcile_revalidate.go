package cache

import (
	"context"
	"errors"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// preconditionFailed deals with a change of a name that the backend refused because something
// else is there than the change was made against: it looks what, and decides
// by the conflict policy. nil says that the name is to be tried again, if it
// still differs; an error, that it is held back for that reason. No change of
// the name is under way at the backend.
func (v *Volume) preconditionFailed(ctx context.Context, l table.Link, cause error) error {
	for _, home := range v.movedLocally(l) {
		if err := v.revalidate(ctx, home, false); err != nil {
			return err
		}
	}
	if err := v.revalidate(ctx, l, true); err != nil {
		return err
	}
	locked := v.lock()
	defer locked.unlock()
	rec, ok := locked.table.Name(l.Dir, l.Name)
	if ok && rec.Held != nil && rec.Held.Conflict && rec.Seq != 0 {
		at, _ := locked.LocalPath(l)
		return conflictError(at.String(), rec.Held.Reason)
	}
	return nil
}

// movedLocally is where the backend has what a name got by a rename of ours, if it
// is nowhere else: that may have changed too, and cannot be compared then.
func (v *Volume) movedLocally(l table.Link) []table.Link {
	locked := v.lock()
	defer locked.unlock()
	rec, _ := locked.table.Name(l.Dir, l.Name)
	n := locked.table.Inode(rec.Ino)
	if n == nil || !n.IsRegular() || n.State == table.Whole {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.RemoteLinks), func(home table.Link) bool { return home == l })
}

// revalidate asks the backend about one name, and takes over what it says. With
// late the attempt that was noted for the name is known to have come to
// nothing.
func (v *Volume) revalidate(ctx context.Context, l table.Link, late bool) error {
	head, err := v.head.Hold(ctx)
	if err != nil {
		return err
	}
	defer head.Release()
	return v.revalidateOnce(ctx, head, l, late)
}

// revalidateOnce is revalidate with the head where it is.
func (v *Volume) revalidateOnce(ctx context.Context, head revision.Held, l table.Link, late bool) error {
	mine := v.beginObservation()
	defer v.endObservation(mine)
	at, ok, err := v.remotePathNow(ctx, l)
	if err != nil {
		return err
	}
	if !ok {
		return v.revalidateAbove(ctx, head, l)
	}
	info, err := v.stat(ctx, at)
	if notThere(err) {
		err = v.revalidateParent(ctx, head, l, at)
	}
	if err != nil {
		return err
	}
	m := v.newMerge(ctx, v.p)
	m.mine, m.late[l] = mine, late
	return m.run(func(v *Tx) error {
		if now, ok := v.RemotePath(l); !ok || now != at {
			return nil
		}
		if rec, ok := v.table.Name(l.Dir, l.Name); late && ok && rec.Attempt != nil {
			rec.Attempt = nil
			m.set(v, l, rec)
		}
		if info == nil || !v.border.Excluded(at, info.Kind) {
			m.name(v, l, info)
		}
		err := m.checkPull(v, head)
		v.own = late && err == nil // what comes of it, a conflict copy for instance, goes with it
		return err
	})
}

// remotePathNow is where the backend has a name, or would: a directory that was made
// here takes the place of one that was removed, when that is not done yet.
func (v *Volume) remotePathNow(ctx context.Context, l table.Link) (at providers.Locator, ok bool, err error) {
	locked := v.lock()
	at, ok = locked.RemotePath(l)
	locked.unlock()
	if ok {
		return at, true, nil
	}
	m := v.newMerge(ctx, v.p)
	err = m.run(func(v *Tx) error {
		if m.takeOver(v, l.Dir) {
			at, ok = v.RemotePath(l)
		}
		return nil
	})
	return at, ok, err
}

// remoteNames are the names under which the remote has inodes, as files.Revalidator.
type remoteNames struct{ v *Volume }

// Revalidate implements files.Revalidator.
func (r remoteNames) Revalidate(ctx context.Context, x table.Ino) error {
	for _, l := range r.v.remoteLinksOf(x) {
		if err := r.v.revalidate(ctx, l, false); err != nil {
			return err
		}
	}
	return nil
}

// AwaitPlace implements files.Revalidator.
func (r remoteNames) AwaitPlace(ctx context.Context, x table.Ino) bool {
	return r.v.waitForPlace(ctx, x)
}

// stat is what the backend has at a place; nil with an error.
func (v *Volume) stat(ctx context.Context, at providers.Locator) (info *providers.Info, err error) {
	err = v.retry(ctx, func(ctx context.Context) error {
		got, err := v.p.Stat(ctx, at)
		if err == nil {
			info = &got
		}
		return err
	})
	return info, err
}

// revalidateAbove asks about the directory of a name, which is new here: if it is new
// there too, that is what is in the way.
func (v *Volume) revalidateAbove(ctx context.Context, head revision.Held, l table.Link) error {
	above := v.linksOf(l.Dir)
	if len(above) == 0 {
		return nil
	}
	return v.revalidateOnce(ctx, head, above[0], false)
}

// notThere reports whether the backend has nothing at a place: no entry, or not
// even a directory for it.
func notThere(err error) bool {
	return errors.Is(err, providers.ErrNotExist) || errors.Is(err, providers.ErrNotDir)
}

// revalidateParent looks at the directory of a name that is not there, when that
// is not there either, or is none any more.
func (v *Volume) revalidateParent(ctx context.Context, head revision.Held, l table.Link, at providers.Locator) error {
	if l.Dir == table.Root {
		return nil
	}
	info, err := v.p.Stat(ctx, at.Parent())
	if err == nil && info.Kind == providers.KindDir {
		return nil
	}
	if err != nil && !notThere(err) {
		return err
	}
	home := v.remoteLinksOf(l.Dir)
	if len(home) == 0 {
		return nil
	}
	return v.revalidateOnce(ctx, head, home[0], false)
}

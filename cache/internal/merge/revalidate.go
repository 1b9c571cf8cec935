package merge

import (
	"context"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// PreconditionFailed deals with a change of a name that the remote refused because something
// else is there than the change was made against: it looks what, and decides
// by the conflict policy. nil says that the name is to be tried again, if it
// still differs; an error, that it is held back for that reason. No change of
// the name is under way at the remote.
func (v *Merger) PreconditionFailed(ctx context.Context, l table.Link, cause error) error {
	for _, home := range v.movedLocally(l) {
		if err := v.Revalidate(ctx, home, false); err != nil {
			return err
		}
	}
	if err := v.Revalidate(ctx, l, true); err != nil {
		return err
	}
	locked := v.lock()
	defer locked.unlock()
	rec := locked.Record(l)
	if rec.Held != nil && rec.Held.Conflict && rec.Seq != 0 {
		at, _ := locked.LocalPath(l)
		return &heldConflict{at.String(), rec.Held.Reason}
	}
	return nil
}

// movedLocally is where the remote has what a name got by a rename of ours, if it
// is nowhere else: that may have changed too, and cannot be compared then.
func (v *Merger) movedLocally(l table.Link) []table.Link {
	locked := v.lock()
	defer locked.unlock()
	rec := locked.Record(l)
	n := locked.Inode(rec.Ino)
	if n == nil || !n.IsRegular() || n.State == table.Whole {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.RemoteLinks), func(home table.Link) bool { return home == l })
}

// Revalidate asks the remote about one name, and takes over what it says. With
// late the attempt that was noted for the name is known to have come to
// nothing.
func (v *Merger) Revalidate(ctx context.Context, l table.Link, late bool) error {
	head, err := v.o.Head.Hold(ctx)
	if err != nil {
		return err
	}
	defer head.Release()
	return v.RevalidateOnce(ctx, head, l, late)
}

// RevalidateOnce is Revalidate with the head where it is.
func (v *Merger) RevalidateOnce(ctx context.Context, head revision.Held, l table.Link, late bool) error {
	mine, end := v.o.Tree.Observe()
	defer end()
	at, ok, err := v.remotePathNow(ctx, l)
	if err != nil {
		return err
	}
	if !ok {
		return v.revalidateAbove(ctx, head, l)
	}
	info, err := v.Stat(ctx, at)
	if NotThere(err) {
		err = v.revalidateParent(ctx, head, l, at)
	}
	if err != nil {
		return err
	}
	m := v.New(ctx, v.o.Provider)
	m.Mine, m.late[l] = mine, late
	return m.Run(func(v *Tx) error {
		if now, ok := v.RemotePath(l); !ok || now != at {
			return nil
		}
		if rec, ok := v.Name(l.Dir, l.Name); late && ok && rec.Attempt != nil {
			rec.Attempt = nil
			m.set(v, l, rec)
		}
		if info == nil || !v.o.Side.Border.Excluded(at, info.Kind) {
			m.name(v, l, info)
		}
		err := m.CheckPull(v, head)
		v.Own = late && err == nil // what comes of it, a conflict copy for instance, goes with it
		return err
	})
}

// remotePathNow is where the remote has a name, or would: a directory that was made
// here takes the place of one that was removed, when that is not done yet.
func (v *Merger) remotePathNow(ctx context.Context, l table.Link) (at providers.Locator, ok bool, err error) {
	locked := v.lock()
	at, ok = locked.RemotePath(l)
	locked.unlock()
	if ok {
		return at, true, nil
	}
	m := v.New(ctx, v.o.Provider)
	err = m.Run(func(v *Tx) error {
		if m.takeOver(v, l.Dir) {
			at, ok = v.RemotePath(l)
		}
		return nil
	})
	return at, ok, err
}

// RevalidateInode is Revalidate for each name that the remote has of an inode.
func (v *Merger) RevalidateInode(ctx context.Context, x table.Ino) error {
	for _, l := range v.linksOf(x, true) {
		if err := v.Revalidate(ctx, l, false); err != nil {
			return err
		}
	}
	return nil
}

// Stat is what the remote has at a place; nil with an error.
func (v *Merger) Stat(ctx context.Context, at providers.Locator) (info *providers.Info, err error) {
	err = v.o.Volume.Retry(ctx, func(ctx context.Context) error {
		got, err := v.o.Provider.Stat(ctx, at)
		if err == nil {
			info = &got
		}
		return err
	})
	return info, err
}

// revalidateAbove asks about the directory of a name, which is new here: if it is new
// there too, that is what is in the way.
func (v *Merger) revalidateAbove(ctx context.Context, head revision.Held, l table.Link) error {
	above := v.linksOf(l.Dir, false)
	if len(above) == 0 {
		return nil
	}
	return v.RevalidateOnce(ctx, head, above[0], false)
}

// revalidateParent looks at the directory of a name that is not there, when that
// is not there either, or is none any more.
func (v *Merger) revalidateParent(ctx context.Context, head revision.Held, l table.Link, at providers.Locator) error {
	if l.Dir == table.Root {
		return nil
	}
	info, err := v.o.Provider.Stat(ctx, at.Parent())
	if err == nil && info.Kind == providers.KindDir {
		return nil
	}
	if err != nil && !NotThere(err) {
		return err
	}
	home := v.linksOf(l.Dir, true)
	if len(home) == 0 {
		return nil
	}
	return v.RevalidateOnce(ctx, head, home[0], false)
}

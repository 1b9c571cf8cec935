package merge

import (
	"context"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// PreconditionFailed deals with a change of a name that the remote refused because its entry is
// not the one that the change was made against: it asks for the entry, and decides by the conflict
// policy. nil: the name is to be tried again, if it still differs; an error: the name is held back
// for that reason. No change of the name is under way at the remote.
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

// movedLocally are the remote places of the content that a name got by a rename of ours, if it is
// not all local: that may have changed too, and cannot be compared then.
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

// Revalidate asks the remote about one name, and merges the answer. With late the attempt that was
// noted for the name is known to have come to nothing.
func (v *Merger) Revalidate(ctx context.Context, l table.Link, late bool) error {
	head, err := v.o.Head.Hold(ctx)
	if err != nil {
		return err
	}
	defer head.Release()
	return v.RevalidateOnce(ctx, head, l, late)
}

// RevalidateOnce is Revalidate for a caller that holds the head.
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
		v.Own = late && err == nil // a conflict copy, for instance, is sent with it
		return err
	})
}

// remotePathNow is the remote place of a name, present or future: a directory that was made
// locally takes the place of one that was removed, if it did not yet.
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

// RevalidateInode is Revalidate for each remote link of an inode.
func (v *Merger) RevalidateInode(ctx context.Context, x table.Ino) error {
	for _, l := range v.linksOf(x, true) {
		if err := v.Revalidate(ctx, l, false); err != nil {
			return err
		}
	}
	return nil
}

// Stat is the remote's entry at a place; nil with an error.
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

// revalidateAbove asks about the directory of a name, which is new locally: if it is new at the
// remote too, the two are the conflict.
func (v *Merger) revalidateAbove(ctx context.Context, head revision.Held, l table.Link) error {
	above := v.linksOf(l.Dir, false)
	if len(above) == 0 {
		return nil
	}
	return v.RevalidateOnce(ctx, head, above[0], false)
}

// revalidateParent revalidates the directory of a name that the remote does not have, when that is
// not there either, or is no directory any more.
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

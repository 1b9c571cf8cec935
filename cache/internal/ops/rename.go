package ops

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
)

// place is a name and its inode.
type place struct {
	table.Link
	ino table.Ino    // 0: none
	n   *table.Inode // nil when ino is 0
}

func (p *place) there() bool { return p.ino != 0 }

// Rename implements fs.Volume, with RENAME_NOREPLACE and RENAME_EXCHANGE.
func (v *Operations) Rename(op *fs.Op, dir fs.Ino, name string, newDir fs.Ino, newName string, flags uint32) error {
	if flags != 0 && flags != unix.RENAME_NOREPLACE && flags != unix.RENAME_EXCHANGE {
		return syscall.EINVAL
	}
	if err := tree.CheckName(name); err != nil {
		return err
	}
	if err := tree.CheckName(newName); err != nil {
		return err
	}
	a := table.Link{Dir: table.Ino(dir), Name: name}
	b := table.Link{Dir: table.Ino(newDir), Name: newName}
	for _, err := range []error{v.changesIn(op, newDir), v.takesAway(op, a), v.takesAway(op, b)} {
		if err != nil {
			return err
		}
	}
	if err := v.beforeRename(a, b, flags); err != nil {
		return err
	}
	return v.change(op, func(v *tx) error {
		from, to, err := v.places(a, b)
		if err == nil && v.TakeStaleDentries(a, b) {
			err = fs.ErrStale
		}
		if err != nil {
			return err
		}
		if err := v.mayRename(&from, &to, flags); err != nil || from.ino == to.ino {
			return err
		}
		if flags == unix.RENAME_EXCHANGE {
			v.exchange(&from, &to)
			return nil
		}
		if to.there() && to.n.IsDir() {
			if err := MayRemoveDir(v.View, to.ino); err != nil {
				return err
			}
		}
		v.rename(&from, &to)
		return nil
	})
}

// beforeRename flushes the content of a file that is about to replace another to the table, and
// starts writing it to the disk: programs save files this way, and one of the two must survive
// a loss of power.
func (v *Operations) beforeRename(a, b table.Link, flags uint32) error {
	locked := v.lock()
	from, to := locked.placeOf(a), locked.placeOf(b)
	save := flags == 0 && from.there() && to.there() && from.ino != to.ino &&
		from.n.IsRegular() && to.n.IsRegular() && from.n.State == table.Whole
	synced := save && from.n.ContentVersion == from.n.Synced
	open := save && locked.o.Open.IsOpen(locked.View, from.ino)
	locked.unlock()
	if !save {
		return nil
	}
	if open {
		if err := v.o.Opener.FlushIfOpen(from.ino); err != nil {
			return err
		}
	}
	if !synced {
		v.writeBack(from.ino)
	}
	return nil
}

// writeBack starts writing content to the disk, without waiting.
func (v *Operations) writeBack(ino table.Ino) {
	oi, err := v.openContent(ino, files.ForUs)
	if err != nil {
		return // it has just lost its name
	}
	defer v.o.Opener.Release(oi)
	_ = unix.SyncFileRange(oi.Content().Fd(), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
}

// places finds both names, in directories that are known.
func (v view) places(a, b table.Link) (from, to place, err error) {
	for _, l := range []table.Link{b, a} {
		if _, err := v.parent(l.Dir); err != nil {
			return place{}, place{}, err
		}
	}
	return v.placeOf(a), v.placeOf(b), nil
}

// placeOf looks a name up.
func (v view) placeOf(l table.Link) place {
	p := place{Link: l}
	rec := v.Record(l)
	if p.n = v.Inode(rec.Ino); p.n != nil {
		p.ino = rec.Ino
	}
	return p
}

// mayRename checks the conditions of rename(2), except for emptiness, and that the rename may
// cross between excluded and other paths.
func (v *tx) mayRename(from, to *place, flags uint32) error {
	exchange := flags == unix.RENAME_EXCHANGE
	switch {
	case !from.there() || !to.there() && exchange:
		return syscall.ENOENT
	case to.there() && flags == unix.RENAME_NOREPLACE:
		return syscall.EEXIST
	case from.n.IsDir() && v.IsBelow(to.Dir, from.ino):
		return syscall.EINVAL
	case to.there() && to.n.IsDir() && v.IsBelow(from.Dir, to.ino):
		if exchange {
			return syscall.EINVAL
		}
		return syscall.ENOTEMPTY
	case from.ino == to.ino:
		return nil
	case to.there() && !exchange && from.n.IsDir() && !to.n.IsDir():
		return syscall.ENOTDIR
	case to.there() && !exchange && !from.n.IsDir() && to.n.IsDir():
		return syscall.EISDIR
	case !v.Border.MayCross(v.Tx.Tx, from.ino, from.Link, to.Link) || exchange && !v.Border.MayCross(v.Tx.Tx, to.ino, to.Link, from.Link):
		return syscall.EXDEV // mv copies
	}
	if exchange {
		if err := v.mayName(from.Link, to.n); err != nil {
			return err
		}
	}
	return v.mayName(to.Link, from.n)
}

// rename moves the name, over an inode that may lose it.
func (v *tx) rename(from, to *place) {
	v.TellDeleted(from.Link, from.n)
	if to.there() {
		v.Bury(to.Link, to.ino, history.WhyReplaced)
	}
	rec := v.Record(from.Link)
	v.SetLocal(from.Link, 0)
	v.SetLocal(to.Link, from.ino)
	if !rec.Local {
		v.left(from.Link, to.Link)
	}
	v.relocated(from, to)
	if to.there() {
		if to.n.IsDir() { // programs in it see the size that ext4 shows, unlike after rmdir
			n := v.Edit(to.ino)
			n.Size, n.Blocks = dirSize, dirSize/512
		}
		v.NameLost(to.ino)
	}
}

// left reports a file that was renamed from a path that is sent to one that stays on this
// machine: the remote deletes it, which the user may not expect. Directories cannot be renamed
// so, see rules.Border.MayCross.
func (v *tx) left(from, to table.Link) {
	was, is := v.Record(from), v.Record(to)
	if was.Remote == nil || !is.Local {
		return
	}
	if n := v.Inode(was.Remote.Ino); was.Remote.Ino != is.Ino && n != nil && len(n.Links) > 0 {
		return // that inode was renamed before, and keeps a name
	}
	old, _ := v.LocalPath(from)
	now, _ := v.LocalPath(to)
	v.Later(func() {
		v.o.Report("rename", old.String(), fmt.Errorf("renamed to %s, which is never sent: the remote deletes it", now))
	})
}

// exchange swaps two names.
func (v *tx) exchange(a, b *place) {
	v.SetLocal(a.Link, b.ino)
	v.SetLocal(b.Link, a.ino)
	v.relocated(a, b)
	v.relocated(b, a)
}

// relocated updates an inode that has another name now, and the directories.
func (v *tx) relocated(from, to *place) {
	v.Edit(from.ino).Ctime = v.Stamp()
	v.DirChanged(from.Dir)
	if to.Dir != from.Dir {
		v.DirChanged(to.Dir)
	}
	v.Notes.Moved(from.ino, from.Link, to.Link, history.WhyRenamed)
	if from.n.IsDir() {
		v.Border.Renamed(v.Tx.Tx, from.Link, to.Link, from.ino)
	}
	if v.References(from.ino) == 0 {
		// A pull was quicker: the kernel's dentry of the old name, which it now moves to the
		// new one, has another inode.
		v.TellEntry(to.Link)
	}
	if from.n.IsRegular() {
		v.TellWrote(to.Link)
		v.Place(from.ino)
	}
}

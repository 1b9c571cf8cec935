package cache

import (
	"context"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// maxLinks bounds the names of an inode, as ext4 does.
const maxLinks = 65000

// Mknod implements fs.Volume.
func (v *Volume) Mknod(op *fs.Op, dir fs.Ino, name string, mode, rdev uint32) (fs.Entry, error) {
	if mode&syscall.S_IFMT == syscall.S_IFREG {
		return v.mknodFile(op, dir, name, mode)
	}
	return v.make(op, dir, name, func(v *Tx, parent *table.Inode) *table.Inode {
		n := v.newInode(op, parent, mode)
		n.Rdev = rdev
		return n
	})
}

// mknodFile makes a regular file as create does, and closes it.
func (v *Volume) mknodFile(op *fs.Op, dir fs.Ino, name string, mode uint32) (fs.Entry, error) {
	e, f, err := v.create(op, table.Ino(dir), name, syscall.O_EXCL|syscall.O_WRONLY, mode)
	if err != nil {
		return fs.Entry{}, err
	}
	f.Release()
	return e, nil
}

// Mkdir implements fs.Volume.
func (v *Volume) Mkdir(op *fs.Op, dir fs.Ino, name string, mode uint32) (fs.Entry, error) {
	return v.make(op, dir, name, func(v *Tx, parent *table.Inode) *table.Inode {
		n := v.newInode(op, parent, syscall.S_IFDIR|mode&^syscall.S_IFMT)
		n.Loaded, n.Listed = true, n.Birth
		return n
	})
}

// Symlink implements fs.Volume.
func (v *Volume) Symlink(op *fs.Op, dir fs.Ino, name, target string) (fs.Entry, error) {
	return v.make(op, dir, name, func(v *Tx, parent *table.Inode) *table.Inode {
		n := v.newInode(op, parent, syscall.S_IFLNK|0o777)
		n.Size, n.Target = int64(len(target)), target
		return n
	})
}

// make gives a new inode a new name.
func (v *Volume) make(op *fs.Op, dir fs.Ino, name string, new func(v *Tx, parent *table.Inode) *table.Inode) (fs.Entry, error) {
	if err := checkName(name); err != nil {
		return fs.Entry{}, err
	}
	if err := v.changesIn(op, dir); err != nil {
		return fs.Entry{}, err
	}
	var e fs.Entry
	l := table.Link{Dir: table.Ino(dir), Name: name}
	err := v.change(op, func(v *Tx) error {
		parent, err := v.parent(l.Dir)
		if err != nil {
			return err
		}
		if rec, _ := v.table.Name(l.Dir, l.Name); rec.Ino != 0 {
			return syscall.EEXIST
		}
		n := new(v, parent)
		if err := v.mayName(l, n); err != nil {
			return err
		}
		ino := v.table.Alloc()
		v.enter(l, ino, n)
		v.notes.Made(l, ino, history.WhyMade)
		e = v.refer(l.Dir, ino)
		return nil
	})
	return v.unrefer(e, err)
}

// enter puts a new inode under a name that is free.
func (v *Tx) enter(l table.Link, ino table.Ino, n *table.Inode) {
	v.table.Put(ino, n)
	v.setLocal(l, ino, v.stays(l, n))
	v.DirChanged(l.Dir)
}

// Link implements fs.Volume. The backend gets a copy of what it has; a file
// without a name, from O_TMPFILE, goes there for the first time.
func (v *Volume) Link(op *fs.Op, ino, dir fs.Ino, name string) (fs.Entry, error) {
	if err := checkName(name); err != nil {
		return fs.Entry{}, err
	}
	if err := v.changesIn(op, dir); err != nil {
		return fs.Entry{}, err
	}
	var e fs.Entry
	i, l := table.Ino(ino), table.Link{Dir: table.Ino(dir), Name: name}
	err := v.change(op, func(v *Tx) error {
		if _, err := v.parent(l.Dir); err != nil {
			return err
		}
		if err := v.mayLink(i, l); err != nil {
			return err
		}
		v.table.Edit(i).Ctime = v.stamp()
		v.SetOrphan(i, false)
		nameless := len(v.table.Inode(i).Links) == 0
		v.setLocal(l, i, v.stays(l, v.table.Inode(i)))
		if nameless {
			v.notes.Named(l, i, history.WhyLinked)
		}
		v.DirChanged(l.Dir)
		e = v.refer(l.Dir, i)
		return nil
	})
	return v.unrefer(e, err)
}

// mayLink checks what link(2) asks.
func (v *Tx) mayLink(ino table.Ino, l table.Link) error {
	n := v.table.Inode(ino)
	rec, _ := v.table.Name(l.Dir, l.Name)
	switch {
	case n == nil:
		return fs.ErrStale
	case n.IsDir():
		return syscall.EPERM
	case rec.Ino != 0:
		return syscall.EEXIST
	case len(n.Links) >= maxLinks:
		return syscall.EMLINK
	case len(n.Links) == 0 && n.IsRegular() && n.State != table.Whole:
		return syscall.ENOENT // its only copy is about to go
	case len(n.Links) > 0 && v.crosses(n.Links[0], l, n) && !v.isHere(n):
		return syscall.EXDEV // its content would have no remote name
	}
	return v.mayName(l, n)
}

// Unlink implements fs.Volume.
func (v *Volume) Unlink(op *fs.Op, dir fs.Ino, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	l := table.Link{Dir: table.Ino(dir), Name: name}
	return v.change(op, func(v *Tx) error {
		if _, err := v.parent(l.Dir); err != nil {
			return err
		}
		if v.TakeStaleDentries(l) {
			return fs.ErrStale
		}
		rec, _ := v.table.Name(l.Dir, l.Name)
		switch {
		case rec.Ino == 0:
			return syscall.ENOENT
		case v.table.Inode(rec.Ino).IsDir():
			return syscall.EISDIR
		}
		v.remove(l, rec.Ino)
		return nil
	})
}

// Rmdir implements fs.Volume. Whether a directory is empty that nobody has
// looked into, only the backend knows: this waits for its listing.
func (v *Volume) Rmdir(op *fs.Op, dir fs.Ino, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	l := table.Link{Dir: table.Ino(dir), Name: name}
	if err := v.takesAway(op, l); err != nil {
		return err
	}
	return v.change(op, func(v *Tx) error {
		if _, err := v.parent(l.Dir); err != nil {
			return err
		}
		rec, _ := v.table.Name(l.Dir, l.Name)
		if rec.Ino == 0 {
			return syscall.ENOENT
		}
		if err := v.mayRemoveDir(rec.Ino); err != nil {
			return err
		}
		v.remove(l, rec.Ino)
		return nil
	})
}

// mayRemoveDir checks that an inode is a directory without names.
func (v *View) mayRemoveDir(ino table.Ino) error {
	n := v.table.Inode(ino)
	switch {
	case !n.IsDir():
		return syscall.ENOTDIR
	case !n.Loaded:
		return errUnknown{ino}
	case n.Entries > 0:
		return syscall.ENOTEMPTY
	}
	return nil
}

// remove takes a name away here; the backend follows.
func (v *Tx) remove(l table.Link, ino table.Ino) {
	v.deleted(l, v.table.Inode(ino))
	v.bury(l, ino, history.WhyRemoved)
	v.setLocal(l, 0, false)
	v.DirChanged(l.Dir)
	v.NameLost(ino)
}

// bury tells the history that a name is about to lose what it stands for. It is part of
// the update that takes the name away, before it does.
func (v *Tx) bury(l table.Link, ino table.Ino, why string) {
	if err := v.notes.Ended(l, ino, why); err != nil {
		v.o.Log.Error("the history does not have what was removed", "name", l.Name, "err", err)
	}
}

// deleted tells the lifecycle bus, once the change is committed.
func (v *Tx) deleted(l table.Link, n *table.Inode) {
	if at, ok := v.LocalPath(l); ok && !n.IsDir() {
		v.Later(func() { v.notifier().Deleted(at.String()) })
	}
}

// wrote is deleted for content that is new under a name.
func (v *Tx) wrote(l table.Link) {
	if at, ok := v.LocalPath(l); ok {
		v.Later(func() { v.notifier().Wrote(at.String()) })
	}
}

// Readlink implements fs.Volume. The target is content: it is fetched when it
// is first asked for.
func (v *Volume) Readlink(op *fs.Op, ino fs.Ino) (string, error) {
	target, err := v.target(ino)
	if err != nil || target != "" {
		return target, err
	}
	if err := v.reaching(op, func(ctx context.Context) error { return v.fetchTarget(ctx, table.Ino(ino)) }); err != nil {
		return "", err
	}
	return v.target(ino)
}

// target is what a symbolic link says, "" when that is not known yet.
func (v *Volume) target(ino fs.Ino) (target string, err error) {
	err = v.view(func(v *View) error {
		n, err := v.inode(ino)
		if err != nil {
			return err
		}
		if !n.IsSymlink() {
			return syscall.EINVAL
		}
		target = n.Target
		return nil
	})
	return target, err
}

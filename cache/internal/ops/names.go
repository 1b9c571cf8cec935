package ops

import (
	"context"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
)

// maxLinks bounds the names of an inode, as ext4 does.
const maxLinks = 65000

// Mknod implements fs.Volume.
func (v *Operations) Mknod(op *fs.Op, dir fs.Ino, name string, mode, rdev uint32) (fs.Entry, error) {
	if mode&syscall.S_IFMT == syscall.S_IFREG {
		return v.mknodFile(op, dir, name, mode)
	}
	return v.make(op, dir, name, func(v *tx, parent *table.Inode) *table.Inode {
		n := NewInode(op, parent, mode, v.Now())
		n.Rdev = rdev
		return n
	})
}

// mknodFile makes a regular file as create does, and closes it.
func (v *Operations) mknodFile(op *fs.Op, dir fs.Ino, name string, mode uint32) (fs.Entry, error) {
	e, f, err := v.create(op, table.Ino(dir), name, syscall.O_EXCL|syscall.O_WRONLY, mode)
	if err != nil {
		return fs.Entry{}, err
	}
	f.Release()
	return e, nil
}

// Mkdir implements fs.Volume.
func (v *Operations) Mkdir(op *fs.Op, dir fs.Ino, name string, mode uint32) (fs.Entry, error) {
	return v.make(op, dir, name, func(v *tx, parent *table.Inode) *table.Inode {
		n := NewInode(op, parent, syscall.S_IFDIR|mode&^syscall.S_IFMT, v.Now())
		n.Loaded, n.Listed = true, n.Birth
		return n
	})
}

// Symlink implements fs.Volume.
func (v *Operations) Symlink(op *fs.Op, dir fs.Ino, name, target string) (fs.Entry, error) {
	return v.make(op, dir, name, func(v *tx, parent *table.Inode) *table.Inode {
		n := NewInode(op, parent, syscall.S_IFLNK|0o777, v.Now())
		n.Size, n.Target = int64(len(target)), target
		return n
	})
}

// make gives a new inode a new name.
func (v *Operations) make(op *fs.Op, dir fs.Ino, name string, new func(v *tx, parent *table.Inode) *table.Inode) (fs.Entry, error) {
	if err := tree.CheckName(name); err != nil {
		return fs.Entry{}, err
	}
	if err := v.changesIn(op, dir); err != nil {
		return fs.Entry{}, err
	}
	var e fs.Entry
	l := table.Link{Dir: table.Ino(dir), Name: name}
	err := v.change(op, func(v *tx) error {
		parent, err := v.parent(l.Dir)
		if err != nil {
			return err
		}
		if rec := v.Record(l); rec.Ino != 0 {
			return syscall.EEXIST
		}
		n := new(v, parent)
		if err := v.mayName(l, n); err != nil {
			return err
		}
		ino := v.Alloc()
		v.Enter(l, ino, n)
		v.Notes.Made(l, ino, history.WhyMade)
		e = v.refer(l.Dir, ino)
		return nil
	})
	return v.unrefer(e, err)
}

// Link implements fs.Volume. The new name gets a copy at the remote; a file without a name,
// from O_TMPFILE, is sent for the first time.
func (v *Operations) Link(op *fs.Op, ino, dir fs.Ino, name string) (fs.Entry, error) {
	if err := tree.CheckName(name); err != nil {
		return fs.Entry{}, err
	}
	if err := v.changesIn(op, dir); err != nil {
		return fs.Entry{}, err
	}
	var e fs.Entry
	i, l := table.Ino(ino), table.Link{Dir: table.Ino(dir), Name: name}
	err := v.change(op, func(v *tx) error {
		if _, err := v.parent(l.Dir); err != nil {
			return err
		}
		if err := v.mayLink(i, l); err != nil {
			return err
		}
		v.Edit(i).Ctime = v.Stamp()
		v.SetOrphan(i, false)
		nameless := len(v.Inode(i).Links) == 0
		v.SetLocal(l, i)
		if nameless {
			v.Notes.Named(l, i, history.WhyLinked)
		}
		v.DirChanged(l.Dir)
		e = v.refer(l.Dir, i)
		return nil
	})
	return v.unrefer(e, err)
}

// mayLink checks the conditions of link(2).
func (v *tx) mayLink(ino table.Ino, l table.Link) error {
	n := v.Inode(ino)
	rec := v.Record(l)
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
		return syscall.ENOENT // its only copy is about to be removed
	case len(n.Links) > 0 && !v.Border.MayCross(v.Tx.Tx, ino, n.Links[0], l):
		return syscall.EXDEV // its content would have no remote name
	}
	return v.mayName(l, n)
}

// Unlink implements fs.Volume.
func (v *Operations) Unlink(op *fs.Op, dir fs.Ino, name string) error {
	if err := tree.CheckName(name); err != nil {
		return err
	}
	l := table.Link{Dir: table.Ino(dir), Name: name}
	return v.change(op, func(v *tx) error {
		if _, err := v.parent(l.Dir); err != nil {
			return err
		}
		if v.TakeStaleDentries(l) {
			return fs.ErrStale
		}
		rec := v.Record(l)
		switch {
		case rec.Ino == 0:
			return syscall.ENOENT
		case v.Inode(rec.Ino).IsDir():
			return syscall.EISDIR
		}
		v.Remove(l, rec.Ino)
		return nil
	})
}

// Rmdir implements fs.Volume. Whether a directory that was never listed is empty, only the
// remote knows: this waits for its listing.
func (v *Operations) Rmdir(op *fs.Op, dir fs.Ino, name string) error {
	if err := tree.CheckName(name); err != nil {
		return err
	}
	l := table.Link{Dir: table.Ino(dir), Name: name}
	if err := v.takesAway(op, l); err != nil {
		return err
	}
	return v.change(op, func(v *tx) error {
		if _, err := v.parent(l.Dir); err != nil {
			return err
		}
		rec := v.Record(l)
		if rec.Ino == 0 {
			return syscall.ENOENT
		}
		if err := MayRemoveDir(v.View, rec.Ino); err != nil {
			return err
		}
		v.Remove(l, rec.Ino)
		return nil
	})
}

// MayRemoveDir checks that an inode is a directory without names.
func MayRemoveDir(v *tree.View, ino table.Ino) error {
	n := v.Inode(ino)
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

// Readlink implements fs.Volume. The target is content: it is fetched when it
// is first asked for.
func (v *Operations) Readlink(op *fs.Op, ino fs.Ino) (string, error) {
	target, err := v.target(ino)
	if err != nil || target != "" {
		return target, err
	}
	if err := v.o.Remote.Reach(op, func(ctx context.Context) error { return v.o.Remote.FetchTarget(ctx, table.Ino(ino)) }); err != nil {
		return "", err
	}
	return v.target(ino)
}

// target is the target of a symbolic link, "" when it is not known yet.
func (v *Operations) target(ino fs.Ino) (target string, err error) {
	err = v.view(func(v view) error {
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

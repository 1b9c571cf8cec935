package cache

import (
	"syscall"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// maxLinks bounds the names of an inode, as ext4 does.
const maxLinks = 65000

// Mknod implements fs.Volume.
func (v *Volume) Mknod(op *fs.Op, dir fs.Ino, name string, mode, rdev uint32) (fs.Entry, error) {
	return v.make(op, dir, name, func(parent *node) *node {
		n := v.newNode(op, parent, mode)
		if rdev != 0 {
			n.extra().rdev = rdev
		}
		return n
	})
}

// Mkdir implements fs.Volume.
func (v *Volume) Mkdir(op *fs.Op, dir fs.Ino, name string, mode uint32) (fs.Entry, error) {
	return v.make(op, dir, name, func(parent *node) *node {
		n := v.newNode(op, parent, syscall.S_IFDIR|mode&^syscall.S_IFMT)
		n.mode |= parent.mode & syscall.S_ISGID
		n.loaded = true
		return n
	})
}

// Symlink implements fs.Volume.
func (v *Volume) Symlink(op *fs.Op, dir fs.Ino, name, target string) (fs.Entry, error) {
	return v.make(op, dir, name, func(parent *node) *node {
		n := v.newNode(op, parent, syscall.S_IFLNK|0o777)
		n.mode = syscall.S_IFLNK | 0o777
		n.size = int64(len(target))
		n.extra().target = target
		return n
	})
}

// make gives a new inode a new name and sends it on its way.
func (v *Volume) make(op *fs.Op, dir fs.Ino, name string, new func(parent *node) *node) (fs.Entry, error) {
	parent, err := v.parent(op, dir, name)
	if err != nil {
		return fs.Entry{}, err
	}
	defer v.mu.Unlock()
	if _, there := v.table.entry(dir, name); there {
		return fs.Entry{}, syscall.EEXIST
	}
	n := new(parent)
	ino := v.table.alloc()
	if n.isRegular() {
		if err := v.empty(ino, n); err != nil {
			return fs.Entry{}, err
		}
	}
	v.enter(dir, parent, name, ino, n)
	if at, ok := v.locate(dir, name); ok && n.isDir() {
		v.enqueue(verbMkdir, ino, n, at)
	} else {
		v.enqueueSend(ino, n)
	}
	return v.refer(ino, n), nil
}

// newNode is an inode that a program makes in parent. v.mu is held.
func (v *Volume) newNode(op *fs.Op, parent *node, mode uint32) *node {
	now := v.now()
	n := &node{mode: mode &^ (op.Umask & 0o777), uid: op.UID, gid: op.GID, gen: 1, atime: now, mtime: now, ctime: now}
	if parent.mode&syscall.S_ISGID != 0 {
		n.gid = parent.gid
	}
	if n.isDir() || !v.sendable(n) {
		n.gen = 0 // there is no content that the backend could lack
	}
	return n
}

// empty gives a new file its content file. v.mu is held.
func (v *Volume) empty(ino fs.Ino, n *node) error {
	f, err := v.store.create(ino)
	if err != nil {
		return err
	}
	n.present = true
	return f.Close()
}

// enter gives an inode a name that is free. v.mu is held.
func (v *Volume) enter(dir fs.Ino, parent *node, name string, ino fs.Ino, n *node) {
	n.links = append(n.links, link{dir, name})
	n.named++
	if n.isDir() {
		parent.subdirs++
	}
	v.mark(ino, n)
	v.table.save(ino, n)
	v.table.setEntry(dir, name, ino)
	parent.modified(v.now())
	v.table.save(dir, parent)
}

// leave drops a name. v.mu is held.
func (v *Volume) leave(dir fs.Ino, parent *node, e dirent) {
	v.table.dropEntry(dir, e.name)
	parent.modified(v.now())
	v.cut(dir, parent, e)
	v.table.save(dir, parent)
}

// Link implements fs.Volume. The backend gets a copy of what it has; a file
// without a name, from O_TMPFILE, goes there for the first time.
func (v *Volume) Link(op *fs.Op, ino, dir fs.Ino, name string) (fs.Entry, error) {
	parent, err := v.parent(op, dir, name)
	if err != nil {
		return fs.Entry{}, err
	}
	defer v.mu.Unlock()
	n := v.table.node(ino)
	_, there := v.table.entry(dir, name)
	switch {
	case n == nil:
		return fs.Entry{}, fs.ErrStale
	case n.isDir():
		return fs.Entry{}, syscall.EPERM
	case there:
		return fs.Entry{}, syscall.EEXIST
	case len(n.links) >= maxLinks:
		return fs.Entry{}, syscall.EMLINK
	case len(n.links) == 0 && !n.present && n.isRegular():
		return fs.Entry{}, syscall.ENOENT // its only copy is about to go
	}
	before := v.locators(ino, n)
	v.enter(dir, parent, name, ino, n)
	n.changed(v.now())
	n.sent = 0
	v.mark(ino, n)
	at, ok := v.locate(dir, name)
	switch {
	case !ok || !v.sendable(n):
	case len(before) == 0:
		v.enqueueSend(ino, n)
	default:
		v.enqueue(verbLink, ino, n, append([]providers.Locator{before[0], at}, before[1:]...)...)
	}
	return v.refer(ino, n), nil
}

// Unlink implements fs.Volume.
func (v *Volume) Unlink(op *fs.Op, dir fs.Ino, name string) error {
	parent, err := v.parent(op, dir, name)
	if err != nil {
		return err
	}
	defer v.mu.Unlock()
	e, there := v.table.entry(dir, name)
	switch {
	case !there:
		return syscall.ENOENT
	case v.table.node(e.ino).isDir():
		return syscall.EISDIR
	}
	v.remove(dir, parent, e, verbDelete)
	return nil
}

// Rmdir implements fs.Volume. Whether a directory is empty that nobody has
// looked into, only the backend knows: this waits for its listing.
func (v *Volume) Rmdir(op *fs.Op, dir fs.Ino, name string) error {
	for {
		parent, err := v.parent(op, dir, name)
		if err != nil {
			return err
		}
		e, there := v.table.entry(dir, name)
		if !there {
			v.mu.Unlock()
			return syscall.ENOENT
		}
		if ready, err := v.emptied(op, e.ino); !ready {
			if err != nil {
				return err
			}
			continue
		}
		v.remove(dir, parent, e, verbRmdir)
		v.mu.Unlock()
		return nil
	}
}

// emptied says that an inode is an empty directory. Else it unlocks v.mu, and
// if there is no error the directory had to be listed and the caller looks
// again.
func (v *Volume) emptied(op *fs.Op, ino fs.Ino) (bool, error) {
	n := v.table.node(ino)
	var err error
	switch {
	case !n.isDir():
		err = syscall.ENOTDIR
	case n.loaded && v.table.count(ino) > 0:
		err = syscall.ENOTEMPTY
	case n.loaded:
		return true, nil
	}
	v.mu.Unlock()
	if err == nil {
		if err = v.load(op, ino); err == nil {
			v.mu.Unlock()
		}
	}
	return false, err
}

// remove drops a name here and at the backend. v.mu is held.
func (v *Volume) remove(dir fs.Ino, parent *node, e dirent, verb verb) {
	n := v.table.node(e.ino)
	at, ok := v.locate(dir, e.name)
	if ok {
		v.enqueue(verb, e.ino, n, at)
	}
	v.leave(dir, parent, e)
	if ok && v.notify != nil && !n.isDir() {
		v.notify.Deleted(at.String())
	}
}

// Readlink implements fs.Volume. The target is content: it is fetched when it
// is first asked for.
func (v *Volume) Readlink(op *fs.Op, ino fs.Ino) (string, error) {
	for {
		v.mu.Lock()
		n := v.table.node(ino)
		if n == nil || !n.isSymlink() || n.rare().target != "" {
			defer v.mu.Unlock()
			switch {
			case n == nil:
				return "", fs.ErrStale
			case !n.isSymlink():
				return "", syscall.EINVAL
			}
			return n.rare().target, nil
		}
		v.mu.Unlock()
		if err := v.share(op, ino, func(w *waiting) error { return v.fetchTarget(w, ino) }); err != nil {
			return "", err
		}
	}
}

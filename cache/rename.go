package cache

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// place is a name in a directory that is loaded.
type place struct {
	dir    fs.Ino
	parent *node
	name   string
	e      dirent
	there  bool
	n      *node // nil unless there
}

// Rename implements fs.Volume, with RENAME_NOREPLACE and RENAME_EXCHANGE.
func (v *Volume) Rename(op *fs.Op, dir fs.Ino, name string, newDir fs.Ino, newName string, flags uint32) error {
	if flags != 0 && flags != unix.RENAME_NOREPLACE && flags != unix.RENAME_EXCHANGE {
		return syscall.EINVAL
	}
	for {
		from, to, err := v.places(op, dir, name, newDir, newName)
		if err != nil {
			return err
		}
		err = v.mayRename(from, to, flags)
		if err != nil || to.there && from.e.ino == to.e.ino {
			v.mu.Unlock()
			return err
		}
		if flags == unix.RENAME_EXCHANGE {
			v.exchange(from, to)
			v.mu.Unlock()
			return nil
		}
		if to.there && to.n.isDir() {
			if ready, err := v.emptied(op, to.e.ino); !ready {
				if err != nil {
					return err
				}
				continue // it had to be listed, and all may be different now
			}
		}
		v.rename(from, to)
		v.mu.Unlock()
		return nil
	}
}

// places locks v.mu and finds both names, with their directories loaded.
func (v *Volume) places(op *fs.Op, dir fs.Ino, name string, newDir fs.Ino, newName string) (from, to *place, err error) {
	if _, err = v.parent(op, newDir, newName); err != nil {
		return nil, nil, err
	}
	v.mu.Unlock()
	if _, err = v.parent(op, dir, name); err != nil {
		return nil, nil, err
	}
	from, to = v.place(dir, name), v.place(newDir, newName)
	if to.parent == nil || len(to.parent.links) == 0 && newDir != fs.RootIno {
		v.mu.Unlock()
		return nil, nil, syscall.ENOENT // removed since
	}
	return from, to, nil
}

// place looks a name up. v.mu is held.
func (v *Volume) place(dir fs.Ino, name string) *place {
	p := &place{dir: dir, name: name, parent: v.table.node(dir)}
	if p.e, p.there = v.table.entry(dir, name); p.there {
		p.n = v.table.node(p.e.ino)
	}
	return p
}

// mayRename checks what rename(2) asks, except for emptiness. v.mu is held.
func (v *Volume) mayRename(from, to *place, flags uint32) error {
	switch {
	case !from.there || !to.there && flags == unix.RENAME_EXCHANGE:
		return syscall.ENOENT
	case to.there && flags == unix.RENAME_NOREPLACE:
		return syscall.EEXIST
	case from.n.isDir() && v.below(to.dir, from.e.ino):
		return syscall.EINVAL
	case !to.there:
		return nil
	case to.n.isDir() && v.below(from.dir, to.e.ino):
		if flags == unix.RENAME_EXCHANGE {
			return syscall.EINVAL
		}
		return syscall.ENOTEMPTY
	case flags == unix.RENAME_EXCHANGE:
		return nil
	case from.n.isDir() && !to.n.isDir():
		return syscall.ENOTDIR
	case !from.n.isDir() && to.n.isDir():
		return syscall.EISDIR
	}
	return nil
}

// below reports whether dir is top or lies below it. v.mu is held.
func (v *Volume) below(dir, top fs.Ino) bool {
	for dir != top && dir != fs.RootIno {
		n := v.table.node(dir)
		if n == nil || len(n.links) == 0 {
			return false
		}
		dir = n.links[0].dir
	}
	return dir == top
}

// rename moves the name, over an inode that may lose it. v.mu is held.
func (v *Volume) rename(from, to *place) {
	was, ok := v.locate(from.dir, from.name)
	now, ok2 := v.locate(to.dir, to.name)
	if ok && ok2 {
		v.enqueue(verbRename, from.e.ino, from.n, was, now)
	}
	if to.there {
		v.cut(to.dir, to.parent, to.e)
	}
	v.table.dropEntry(from.dir, from.name)
	v.replace(from, to)
}

// exchange swaps two names. v.mu is held.
func (v *Volume) exchange(a, b *place) {
	at, ok := v.locate(a.dir, a.name)
	bt, ok2 := v.locate(b.dir, b.name)
	if ok && ok2 {
		b.n.pins++
		v.enqueueJob(&job{verb: verbExchange, ino: a.e.ino, other: b.e.ino, paths: []providers.Locator{at, bt}}, a.n)
	}
	v.replace(a, b)
	v.replace(b, a)
}

// replace gives the inode of from the name of to. v.mu is held.
func (v *Volume) replace(from, to *place) {
	v.table.setEntry(to.dir, to.name, from.e.ino)
	from.n.relink(link{from.dir, from.name}, link{to.dir, to.name})
	if from.n.isDir() {
		from.parent.subdirs--
		to.parent.subdirs++
	}
	t := v.now()
	from.n.changed(t)
	from.parent.modified(t)
	to.parent.modified(t)
	v.table.save(from.e.ino, from.n)
	v.table.save(from.dir, from.parent)
	v.table.save(to.dir, to.parent)
}

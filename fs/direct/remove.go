package direct

import (
	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// Unlink removes a name of a file.
func (v *Volume) Unlink(_ *wsfs.Op, dir wsfs.Ino, name string) error {
	return v.remove(dir, name, 0)
}

// Rmdir removes an empty directory.
func (v *Volume) Rmdir(_ *wsfs.Op, dir wsfs.Ino, name string) error {
	return v.remove(dir, name, unix.AT_REMOVEDIR)
}

func (v *Volume) remove(dir wsfs.Ino, name string, flags int) error {
	if err := checkName(name); err != nil {
		return err
	}
	h, watched, err := v.holdDir(dir)
	if err != nil {
		return err
	}
	defer v.drop(h)
	v.ownBegin(watched, dir, name)
	p := v.pin(h, dir, name)
	err = unix.Unlinkat(h.fd, name, flags)
	p.done(err == nil)
	if err != nil {
		v.ownEnd(watched, dir, name, ident{}, false)
		return err
	}
	v.ownEnd(watched, dir, name, ident{}, true)
	v.tellDeleted(dir, name)
	return nil
}

// A pinned is an inode that is about to lose a name: it gets a descriptor first,
// so that whoever still has it open, or stands in it, can go on asking about it.
type pinned struct {
	v    *Volume
	ino  wsfs.Ino // 0 when nobody knows the file
	dir  wsfs.Ino
	name string
	h    *handle
}

// pin prepares for the loss of a name. Where no descriptor is to be had the name
// goes all the same, since removing must be possible, and later questions are
// answered with ESTALE.
func (v *Volume) pin(dir *handle, parent wsfs.Ino, name string) pinned {
	p := pinned{v: v, dir: parent, name: name}
	var st stat
	if statAt(dir.fd, name, &st) != nil || v.crosses(&st) {
		return p
	}
	id := v.identOf(dir.fd, name, &st)
	s, n, ino := v.tab.find(id)
	if n == nil {
		s.mu.Unlock()
		return p
	}
	p.ino = ino
	n.more().busy++
	p.h = n.descriptor()
	s.mu.Unlock()
	if p.h != nil {
		return p
	}
	h, err := v.openIdent(dir.fd, name, id, unix.O_PATH)
	if err != nil {
		v.log.Debug("no descriptor for a file that loses its name", "name", name, "err", err)
		return p
	}
	p.h = h
	return p
}

// done says whether the name is gone.
func (p pinned) done(gone bool) {
	if p.ino == 0 {
		return
	}
	var st stat
	fd := -1
	if p.h != nil {
		fd = p.h.fd
	}
	var wd int32
	s, n := p.v.tab.get(p.ino) // busy keeps it
	n.ext.busy--
	if fd >= 0 && statAt(fd, "", &st) == nil && n.ext.busy == 0 {
		n.observe(&st, true)
	}
	if gone && n.parent == p.dir && n.name == p.name {
		p.v.tab.setName(n, p.ino, p.dir, "")
		if n.ext.pin == nil && n.ext.files == nil && p.h != nil {
			n.ext.pin = p.h.hold()
		}
		wd = n.unwatch() // it would outlive the directory for as long as we hold that
	}
	n.trim()
	p.v.settle(s, n, p.ino)
	if wd != 0 {
		p.v.watch.remove(wd)
	}
	p.v.dropLater(p.h)
}

// dropLater gives back the reference that may be the last to a file without a
// name, which the disk then frees: that takes as long as the file is large, and
// nobody should wait.
func (v *Volume) dropLater(h *handle) {
	if h == nil {
		return
	}
	if h.refs.Load() > 1 {
		v.drop(h)
		return
	}
	go v.drop(h)
}

package fs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// create runs a call that makes a name, and fills the kernel's answer.
func (c *call) create(what nameChange, out *fuse.EntryOut, do func() (Entry, error)) fuse.Status {
	if err := c.f.guardName(c.s, c.ino, c.name, what); err != nil {
		return c.end(err)
	}
	e, err := do()
	if err == nil {
		c.bound(&e)
		c.s.entryOut(&e, out)
	}
	return c.end(err)
}

// bound binds a new directory to its place: the kernel will not look it up.
func (c *call) bound(e *Entry) {
	if p := c.s.place(c.ino); p != nil && c.s.kind == slotVolume {
		if child := p.children[c.name]; child != nil {
			c.s.part.places.bind(child, e.Ino)
		}
	}
}

func (f *front) Mknod(cancel <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	c := f.begin(opMknod, cancel, &in.InHeader)
	c.name, c.Umask = name, in.Umask
	return c.create(makeOther, out, func() (Entry, error) {
		return c.s.vol.Mknod(&c.Op, c.ino, name, in.Mode, in.Rdev)
	})
}

func (f *front) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	c := f.begin(opMkdir, cancel, &in.InHeader)
	c.name, c.Umask = name, in.Umask
	return c.create(makeDir, out, func() (Entry, error) {
		return c.s.vol.Mkdir(&c.Op, c.ino, name, in.Mode)
	})
}

func (f *front) Symlink(cancel <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	c := f.begin(opSymlink, cancel, h)
	c.name = name
	return c.create(makeOther, out, func() (Entry, error) {
		return c.s.vol.Symlink(&c.Op, c.ino, name, target)
	})
}

func (f *front) Link(cancel <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	c := f.begin(opLink, cancel, &in.InHeader)
	c.name = name
	s, ino := f.tree.at(in.Oldnodeid)
	if s != c.s {
		return c.end(syscall.EXDEV)
	}
	if err := f.guardInode(&c.Op, s, ino); err != nil {
		return c.end(err)
	}
	return c.create(makeOther, out, func() (Entry, error) {
		return c.s.vol.Link(&c.Op, ino, c.ino, name)
	})
}

func (f *front) Unlink(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	c := f.begin(opUnlink, cancel, h)
	c.name = name
	err := f.guardName(c.s, c.ino, name, removeName)
	if err == nil {
		err = c.s.vol.Unlink(&c.Op, c.ino, name)
	}
	return c.end(err)
}

func (f *front) Rmdir(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	c := f.begin(opRmdir, cancel, h)
	c.name = name
	err := f.guardName(c.s, c.ino, name, removeDir)
	if err == nil {
		err = c.s.vol.Rmdir(&c.Op, c.ino, name)
	}
	return c.end(err)
}

func (f *front) Rename(cancel <-chan struct{}, in *fuse.RenameIn, name, newName string) fuse.Status {
	c := f.begin(opRename, cancel, &in.InHeader)
	c.name = name
	to, newDir := f.tree.at(in.Newdir)
	return c.end(f.rename(c, to, newDir, newName, in.Flags))
}

func (f *front) rename(c *call, to *slot, newDir Ino, newName string, flags uint32) error {
	if err := f.guardName(c.s, c.ino, c.name, moveName); err != nil {
		return err
	}
	if to != c.s {
		return syscall.EXDEV
	}
	if err := f.guardName(to, newDir, newName, moveName); err != nil {
		if err == syscall.EBUSY && flags&unix.RENAME_NOREPLACE != 0 {
			return syscall.EEXIST
		}
		return err
	}
	return c.s.vol.Rename(&c.Op, c.ino, c.name, newDir, newName, flags)
}

func (f *front) Readlink(cancel <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	c := f.begin(opReadlink, cancel, h)
	if err := c.s.guardContent(c.ino); err != nil {
		return nil, c.end(err)
	}
	target, err := c.s.vol.Readlink(&c.Op, c.ino)
	return []byte(target), c.end(err)
}

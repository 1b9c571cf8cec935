package fs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func (f *front) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	c := f.begin(opOpen, cancel, &in.InHeader)
	c.KillPriv = in.Mode&fuse.OPEN_KILL_SUIDGID != 0
	if err := c.s.guardContent(c.ino); err != nil {
		return c.end(err)
	}
	if changes(in.Flags) {
		if err := f.guardInode(&c.Op, c.s, c.ino); err != nil {
			return c.end(err)
		}
	}
	o, err := c.s.vol.Open(&c.Op, c.ino, in.Flags)
	if err == nil {
		if o.NewAttr {
			f.notes.newAttr(c.s.node(c.ino))
		}
		c.opened(c.ino, &o, in.Flags, out)
	}
	return c.end(err)
}

// changes reports whether an open can change content.
func changes(flags uint32) bool {
	return flags&syscall.O_ACCMODE != syscall.O_RDONLY || flags&syscall.O_TRUNC != 0
}

// opened gives an open file its handle and its io mode.
func (c *call) opened(ino Ino, o *Opened, flags uint32, out *fuse.OpenOut) {
	h := &handle{s: c.s, ino: ino, file: o.File,
		writable: flags&syscall.O_ACCMODE != syscall.O_RDONLY}
	c.f.modes.opened(c.s.node(ino), o, h.writable, out)
	if u, ok := o.File.(Unpassed); ok && o.PassWrite && out.OpenFlags&fuse.FOPEN_PASSTHROUGH == 0 {
		u.Unpassed()
	}
	out.Fh = c.f.handles.add(h)
}

func (f *front) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	c := f.begin(opCreate, cancel, &in.InHeader)
	c.name, c.Umask = name, in.Umask
	c.KillPriv = in.OpenFlags&fuse.OPEN_KILL_SUIDGID != 0
	err := c.s.guardContent(c.ino)
	if err == nil {
		err = f.guardName(c.s, c.ino, name, makeOther)
	}
	if err != nil {
		return c.end(err)
	}
	e, o, err := c.s.vol.Create(&c.Op, c.ino, name, in.Flags, in.Mode)
	if err == nil {
		c.bound(&e)
		c.s.entryOut(&e, &out.EntryOut)
		c.opened(e.Ino, &o, in.Flags, &out.OpenOut)
	}
	return c.end(err)
}

func (f *front) Tmpfile(cancel <-chan struct{}, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	c := f.begin(opTmpfile, cancel, &in.InHeader)
	c.Umask = in.Umask
	err := c.s.guardContent(c.ino)
	if err == nil {
		err = c.s.guardPart()
	}
	if err != nil {
		return c.end(err)
	}
	e, o, err := c.s.vol.Tmpfile(&c.Op, c.ino, in.Flags, in.Mode)
	if err == nil {
		c.s.entryOut(&e, &out.EntryOut)
		c.opened(e.Ino, &o, in.Flags, &out.OpenOut)
	}
	return c.end(err)
}

// Release comes after the program's close returned; an error can be reported to no caller.
func (f *front) Release(cancel <-chan struct{}, in *fuse.ReleaseIn) {
	c := f.begin(opRelease, cancel, &in.InHeader)
	if h := f.handles.remove(in.Fh); h != nil && h.file != nil {
		f.modes.released(h.s.node(h.ino), h.writable)
		h.file.Release()
	}
	c.end(nil)
}

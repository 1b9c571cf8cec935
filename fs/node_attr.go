package fs

import (
	"fmt"
	"os"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func (f *front) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	c := f.begin(opGetattr, cancel, &in.InHeader)
	var file File
	if in.Flags()&fuse.FUSE_GETATTR_FH != 0 {
		if h := f.handles.get(in.Fh()); h != nil {
			file = h.file
		}
	}
	a, err := c.s.vol.Attr(&c.Op, c.ino, file)
	if err == nil {
		c.s.attrOut(&a, out)
	}
	return c.end(err)
}

func (f *front) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	c := f.begin(opSetattr, cancel, &in.InHeader)
	if f.nudged(in) {
		a, err := c.s.vol.Attr(&c.Op, c.ino, nil)
		if err == nil {
			a.TTL = 0 // the kernel would believe it even if a notice came in between
			c.s.attrOut(&a, out)
		}
		return c.end(err)
	}
	c.KillPriv = in.Valid&fuse.FATTR_KILL_SUIDGID != 0
	if err := f.guardInode(&c.Op, c.s, c.ino); err != nil {
		return c.end(err)
	}
	var file File
	if fh, ok := in.GetFh(); ok {
		if h := f.handles.get(fh); h != nil {
			file = h.file
		}
	}
	set := setAttr(in)
	a, err := c.s.vol.SetAttr(&c.Op, c.ino, file, &set)
	if err == nil {
		c.s.attrOut(&a, out)
	}
	return c.end(err)
}

// nudged reports whether a request only makes the kernel notify watchers; see Server.Nudger.
func (f *front) nudged(in *fuse.SetAttrIn) bool {
	pid := f.nudger.Load()
	if pid == 0 || in.Valid&^fuse.FATTR_MTIME != 0 {
		return false
	}
	_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", pid, in.Pid))
	return err == nil
}

func setAttr(in *fuse.SetAttrIn) SetAttr {
	var s SetAttr
	if v, ok := in.GetMode(); ok {
		s.Mode = &v
	}
	if v, ok := in.GetUID(); ok {
		s.UID = &v
	}
	if v, ok := in.GetGID(); ok {
		s.GID = &v
	}
	if v, ok := in.GetSize(); ok {
		s.Size = &v
	}
	s.Atime, s.AtimeNow = setTime(in.Valid, fuse.FATTR_ATIME, fuse.FATTR_ATIME_NOW, in.Atime, in.Atimensec)
	s.Mtime, s.MtimeNow = setTime(in.Valid, fuse.FATTR_MTIME, fuse.FATTR_MTIME_NOW, in.Mtime, in.Mtimensec)
	if v, ok := in.GetCTime(); ok {
		s.Ctime = &v
	}
	return s
}

func setTime(valid, set, now uint32, sec uint64, nsec uint32) (*time.Time, bool) {
	switch {
	case valid&set == 0:
		return nil, false
	case valid&now != 0:
		return nil, true
	}
	t := time.Unix(int64(sec), int64(nsec))
	return &t, false
}

func (f *front) StatFs(cancel <-chan struct{}, h *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	c := f.begin(opStatfs, cancel, h)
	st, err := c.s.vol.Statfs(&c.Op, c.ino)
	if err == nil {
		*out = fuse.StatfsOut{Blocks: st.Blocks, Bfree: st.Bfree, Bavail: st.Bavail,
			Files: st.Files, Ffree: st.Ffree, Bsize: st.Bsize, Frsize: st.Frsize, NameLen: st.NameLen}
	}
	return c.end(err)
}

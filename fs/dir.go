package fs

import (
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// openDir is an open directory as the kernel reads it: one request after the other, each from
// the cookie where the last one ended, or from one that seekdir chose.
type openDir struct {
	mu   sync.Mutex // held over every method of dir; guards the fields below
	dir  Dir
	pos  uint64    // the cookie that the stream stands at
	held *DirEntry // read from the stream and not yet given, for lack of room
	hide string    // a name that is not listed
}

func (f *front) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	c := f.begin(opOpendir, cancel, &in.InHeader)
	if err := c.s.guardContent(c.ino); err != nil {
		return c.end(err)
	}
	d, err := c.s.vol.OpenDir(&c.Op, c.ino)
	if err != nil {
		return c.end(err)
	}
	if a := c.s.part.aside; c.ino == RootIno && c.s.kind == slotVolume && len(a.Names) > 0 {
		d = &sidedDir{Dir: d, names: a.Names, tail: a.listed(&c.Op), pos: -1}
	}
	if p := c.s.place(c.ino); p != nil {
		if shown := p.shown(); shown != nil {
			d = &mergedDir{Dir: d, shown: shown}
		}
	}
	od := &openDir{dir: d}
	if c.ino == RootIno && c.s.kind == slotVolume {
		od.hide = f.tree.controlName
	}
	out.Fh = f.handles.add(&handle{s: c.s, ino: c.ino, dir: od})
	return c.end(nil)
}

func (f *front) ReleaseDir(in *fuse.ReleaseIn) {
	c := f.begin(opReleasedir, nil, &in.InHeader)
	if h := f.handles.remove(in.Fh); h != nil && h.dir != nil {
		h.dir.dir.Release()
	}
	c.end(nil)
}

func (f *front) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	c := f.begin(opFsyncdir, cancel, &in.InHeader)
	h := f.handles.get(in.Fh)
	if h == nil || h.dir == nil {
		return c.end(syscall.EBADF)
	}
	h.dir.mu.Lock()
	defer h.dir.mu.Unlock()
	return c.end(h.dir.dir.Fsync(&c.Op, in.FsyncFlags&fdatasync != 0))
}

func (f *front) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	c := f.begin(opReaddir, cancel, &in.InHeader)
	return c.end(c.list(in, func(s *slot, e *DirEntry) bool {
		return out.AddDirEntry(s.dirEntry(e))
	}))
}

// ReadDirPlus answers a lookup with each entry. An entry whose lookup fails is listed without:
// a program that looks it up gets the error.
func (f *front) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	c := f.begin(opReaddirplus, cancel, &in.InHeader)
	return c.end(c.list(in, func(s *slot, e *DirEntry) bool {
		eo := out.AddDirLookupEntry(s.dirEntry(e))
		if eo == nil {
			return false
		}
		if e.Name == "." || e.Name == ".." {
			return true
		}
		to, ent, err := f.lookup(&c.Op, c.s, c.ino, e.Name)
		if err == nil && ent.Ino != 0 {
			to.entryOut(&ent, eo)
			out.FixMode(ent.Attr.Mode)
		}
		return true
	}))
}

func (s *slot) dirEntry(e *DirEntry) fuse.DirEntry {
	return fuse.DirEntry{Name: e.Name, Ino: s.node(e.Ino & MaxIno), Mode: e.Mode, Off: e.Cookie}
}

// list gives entries to add until it has no more room. An error after the
// first entry ends the reply; the next request meets it again.
func (c *call) list(in *fuse.ReadIn, add func(*slot, *DirEntry) bool) error {
	h := c.f.handles.get(in.Fh)
	if h == nil || h.dir == nil {
		return syscall.EBADF
	}
	d := h.dir
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.seek(in.Offset); err != nil {
		return err
	}
	for n := 0; ; n++ {
		e, err := d.next(&c.Op)
		if err != nil && n == 0 {
			return err
		}
		if err != nil || e == nil {
			return nil
		}
		if !add(c.s, e) {
			d.held = e
			return nil
		}
		d.pos = e.Cookie
	}
}

func (d *openDir) seek(cookie uint64) error {
	if cookie == d.pos && cookie != 0 {
		return nil
	}
	d.held = nil
	d.pos = cookie
	return d.dir.Seek(cookie)
}

// next returns nil at the end.
func (d *openDir) next(op *Op) (*DirEntry, error) {
	if e := d.held; e != nil {
		d.held = nil
		return e, nil
	}
	for {
		e, ok, err := d.dir.Next(op)
		if err != nil || !ok {
			return nil, err
		}
		if d.hide == "" || e.Name != d.hide {
			return &e, nil
		}
	}
}

// mergedDir lists a directory to which composition adds names: first the volume's entries
// except those names, then the names. It is read whole when the stream is at its beginning, and
// cookies are indices into it.
type mergedDir struct {
	Dir
	shown map[string]*place
	all   listDir
	taken bool
}

func (d *mergedDir) Seek(cookie uint64) error {
	if cookie == 0 {
		d.taken = false
	}
	return d.all.Seek(cookie)
}

func (d *mergedDir) Next(op *Op) (DirEntry, bool, error) {
	if !d.taken {
		if err := d.take(op); err != nil {
			return DirEntry{}, false, err
		}
	}
	return d.all.Next(op)
}

func (d *mergedDir) take(op *Op) error {
	if err := d.Dir.Seek(0); err != nil {
		return err
	}
	pos := d.all.pos
	d.all = listDir{}
	for {
		e, ok, err := d.Dir.Next(op)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if d.shown[e.Name] == nil {
			d.all.entries = append(d.all.entries, e)
		}
	}
	for _, name := range sortedKeys(d.shown) {
		d.all.entries = append(d.all.entries, DirEntry{Name: name, Ino: d.shown[name].gapIno, Mode: syscall.S_IFDIR})
	}
	d.all.pos = pos
	d.taken = true
	return nil
}

// Names lists the names in a directory of a volume, except "." and "..", in stream order.
func Names(v Volume, op *Op, dir Ino) (names []string, err error) {
	d, err := v.OpenDir(op, dir)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	if err := d.Seek(0); err != nil {
		return nil, err
	}
	for {
		e, ok, err := d.Next(op)
		if err != nil || !ok {
			return names, err
		}
		if e.Name != "." && e.Name != ".." {
			names = append(names, e.Name)
		}
	}
}

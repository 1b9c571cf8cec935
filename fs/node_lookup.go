package fs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// graftTTL is long because the volume at a mount point does not change while the tree is
// mounted.
const graftTTL = time.Hour

func (f *front) Lookup(cancel <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	c := f.begin(opLookup, cancel, h)
	c.name = name
	s, e, err := f.lookup(&c.Op, c.s, c.ino, name)
	if err == nil {
		if e.Ino == 0 && e.TTL == 0 {
			err = syscall.ENOENT
		} else {
			s.entryOut(&e, out)
		}
	}
	return c.end(err)
}

func (f *front) Forget(node, n uint64) {
	if s, ino := f.tree.at(node); s != nil {
		s.vol.Forget(ino, n)
		f.modes.forget(node)
	}
}

// lookup finds a name in the composed tree: a part's own .wsmount, a name that its volume shows
// aside, a part grafted at that name, or the volume's own entry.
func (f *front) lookup(op *Op, s *slot, dir Ino, name string) (*slot, Entry, error) {
	if f.isControl(s, dir, name) {
		return f.rootOf(op, f.tree.sibling(s, slotControl))
	}
	if s.isAside(dir, name) {
		e, err := s.part.aside.reaches(op, name)
		return f.tree.sibling(s, slotAside), e, err
	}
	if p := s.place(dir); p != nil {
		if c := p.children[name]; c != nil {
			return f.lookupPlace(op, s, dir, c)
		}
	}
	e, err := s.vol.Lookup(op, dir, name)
	return s, e, err
}

// isControl reports whether a name is that of a part's control directory.
func (f *front) isControl(s *slot, dir Ino, name string) bool {
	return dir == RootIno && s.kind == slotVolume && name == f.tree.controlName
}

// isAside reports whether the volume shows a name beside its own names.
func (s *slot) isAside(dir Ino, name string) bool {
	if dir != RootIno || s.kind != slotVolume {
		return false
	}
	_, ok := s.part.aside.Names[name]
	return ok
}

// place returns composition's record of a directory, or nil.
func (s *slot) place(dir Ino) *place {
	switch s.kind {
	case slotVolume:
		return s.part.places.of(dir)
	case slotGap:
		if i := int(dir) - 1; s.part.places != nil && i < len(s.part.places.all) {
			return s.part.places.all[i]
		}
	}
	return nil
}

func (f *front) rootOf(op *Op, s *slot) (*slot, Entry, error) {
	a, err := s.vol.Attr(op, RootIno, nil)
	return s, Entry{Ino: RootIno, Attr: a, TTL: graftTTL}, err
}

// lookupPlace looks up a place: the graft; else the volume's own inode, which is then bound to
// the place; else, where the way to a graft must be shown, a gap.
func (f *front) lookupPlace(op *Op, s *slot, dir Ino, c *place) (*slot, Entry, error) {
	if c.graft != nil {
		return f.rootOf(op, c.graft)
	}
	places := s.part.places
	if s.kind == slotVolume {
		e, err := s.vol.Lookup(op, dir, c.name)
		if err != nil {
			return s, e, err
		}
		isDir := e.Ino != 0 && e.Attr.Mode&syscall.S_IFMT == syscall.S_IFDIR
		if isDir || !c.leadsToGraft() {
			places.bind(c, e.Ino)
			return s, e, nil
		}
		places.bind(c, 0)
		if e.Ino != 0 { // a file of that name is hidden by the directory that leads to a volume
			s.vol.Forget(e.Ino, 1)
		}
	}
	a, err := places.gap.vol.Attr(op, c.gapIno, nil)
	return places.gap, Entry{Ino: c.gapIno, Attr: a, TTL: gapTTL}, err
}

package fs

import "syscall"

// errGoverning is the refusal to change a file that configures this mount.
var errGoverning = &reasonError{ErrReadOnly,
	"this file governs the mount and cannot be changed from inside it; change the registered copy, then run: wsmount registry accept"}

// guardPart refuses a change in a read-only part, before the request reaches the volume
// (AIP-35, rule 5: storage_read_only).
func (s *slot) guardPart() error {
	why := s.part.ReadOnly
	if a := s.part.access.Load(); why == "" && a != nil {
		why = a.ReadOnly
	}
	if why == "" {
		return nil
	}
	s.part.refused.Add(1)
	return &reasonError{ErrReadOnly, "storage_read_only: " + why}
}

// guardContent refuses to show the content of an inode while its part is closed.
func (s *slot) guardContent(ino Ino) error {
	a := s.part.access.Load()
	if a == nil || a.Closed == "" || s.harmless(ino) {
		return nil
	}
	return &reasonError{ErrRefused, a.Closed}
}

// harmless reports whether an inode shows nothing of its part's content: it is a directory on
// the way to other parts, or describes the state of the part.
func (s *slot) harmless(ino Ino) bool {
	switch s.kind {
	case slotGap:
		return true
	case slotControl:
		return s.vol.(*control).harmless(ino)
	}
	return false
}

// guardInode refuses a change of an inode's content or attributes.
func (f *front) guardInode(op *Op, s *slot, ino Ino) error {
	if err := s.guardPart(); err != nil {
		return err
	}
	if s.kind != slotVolume || s.part.places == nil || !s.part.places.root.leadsToGoverning() {
		return nil
	}
	// Another hard link leads to the same inode, so the inode is guarded, not the name; the
	// inode of a governing path may have changed since it was last looked up.
	if a, err := s.vol.Attr(op, ino, nil); err == nil && a.Nlink > 1 {
		f.bindGoverning(op, s)
	}
	if s.part.places.governs(ino) {
		return errGoverning
	}
	return nil
}

type nameChange int

const (
	makeDir nameChange = iota
	removeDir
	makeOther
	removeName
	moveName // either side of a rename
)

// guardName refuses a change of a name.
func (f *front) guardName(s *slot, dir Ino, name string, what nameChange) error {
	if err := s.guardPart(); err != nil {
		return err
	}
	if f.isControl(s, dir, name) {
		return taken(what)
	}
	if s.isAside(dir, name) {
		if what == makeDir || what == makeOther {
			return syscall.EEXIST
		}
		return errAside
	}
	p := s.place(dir)
	if p == nil {
		return nil
	}
	if p.governing { // a directory at a governing path: nothing may appear in it
		return errGoverning
	}
	c := p.children[name]
	switch {
	case c == nil:
		return nil
	case c.leadsToGraft():
		return taken(what)
	case c.governing:
		return errGoverning
	case what == makeDir, what == removeDir:
		// The path leads to a governing file that does not exist: a directory that can be
		// removed is empty.
		return nil
	case c.leadsToGoverning():
		return errGoverning
	}
	return nil
}

// taken returns the errno for a name that composition has claimed.
func taken(what nameChange) error {
	if what == makeDir || what == makeOther {
		return syscall.EEXIST
	}
	return syscall.EBUSY
}

// bindGoverning looks up every governing path of a part, so that the inodes behind them are
// recognized however they are reached. Each keeps the reference of its lookup, so that its
// number stays the same while it lives.
func (f *front) bindGoverning(op *Op, s *slot) {
	f.bindBelow(op, s, RootIno, s.part.places.root)
}

func (f *front) bindBelow(op *Op, s *slot, dir Ino, p *place) {
	for name, c := range p.children {
		if c.graft != nil || !c.leadsToGoverning() {
			continue
		}
		e, err := s.vol.Lookup(op, dir, name)
		if err != nil || e.Ino == 0 {
			continue
		}
		if old := s.part.places.pin(c, e.Ino); old != 0 {
			s.vol.Forget(old, 1)
		}
		f.bindBelow(op, s, e.Ino, c)
	}
}

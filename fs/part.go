package fs

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"
)

// A Part is one volume of a mounted tree: its root, or the volume at a path in it.
type Part struct {
	Name string // for logs and status: "@acme/marketing-ops"
	At   string // path in the mount; "" is the root

	// Volume is served at At. When it is nil, an unreadable directory stands at At, and
	// Unavailable says why.
	Volume      Volume
	Unavailable string

	// ReadOnly, when not empty, is why nothing in this part may be changed:
	// every change is EROFS before the volume is reached.
	ReadOnly string

	// Access is the initial access of programs to the part, until Server.Restrict changes it.
	Access Access

	// Governing are paths in the volume, of files that exist or not, which cannot be changed
	// from inside (EROFS), nor can a directory that leads to one be renamed or removed: they
	// configure this mount.
	Governing []string

	// Control is the content of .wsmount at this part's root; nil: nothing.
	Control ControlDir
}

// Access limits the access of programs to a part at this moment, never beyond the limits of its
// Part. The zero value limits nothing.
type Access struct {
	// ReadOnly, when not empty, is why nothing may be changed, as Part.ReadOnly. Bytes that a
	// program has already written into an open file are kept.
	ReadOnly string
	// Closed, when not empty, is why nothing that shows content may be opened (EACCES), nor a
	// symbolic link or a user.* attribute read. Open files stay open.
	Closed string
}

// A ControlDir is the content of .wsmount. It is called on every access, from many goroutines,
// and answers from memory.
type ControlDir interface {
	// List returns the slash-separated paths of all files and, with a trailing
	// slash, of all directories. A directory above a listed path need not be
	// listed.
	List() []string

	// Read returns a file of List.
	Read(path string) ([]byte, error)

	// Harmless reports whether a file of List shows no content of the part's files, so that it
	// can be opened although the part is closed.
	Harmless(path string) bool
}

// part is a Part in service.
type part struct {
	Part
	vol     Volume
	refused atomic.Uint64 // changes refused because the part is read-only
	access  atomic.Pointer[Access]

	// places are the names of this part that composition decides about; nil when there are
	// none.
	places *places

	covered []string // where other parts stand in it

	aside *aside // without names, if the volume shows nothing aside
}

// slot is one source of inodes of the tree. Its index is the top 16 bits of its
// node ids.
type slot struct {
	n    uint16
	vol  Volume
	part *part
	kind slotKind
}

type slotKind uint8

const (
	slotVolume  slotKind = iota // a part's volume
	slotControl                 // a part's .wsmount
	slotGap                     // directories that lead to parts and exist in no volume
	slotAside                   // names that a volume shows beside its own

	slotsOfPart // number of slots of each part, one of each kind, in this order
)

const (
	slotShift = 48
	maxParts  = 1<<16/int(slotsOfPart) - 1
)

// node makes the kernel's node id of an inode.
func (s *slot) node(ino Ino) uint64 { return uint64(s.n)<<slotShift | uint64(ino) }

// tree is the composition of parts; it does not change while mounted.
type tree struct {
	slots       []*slot
	parts       []*part
	controlName string
	mountpoint  string
}

// newTree checks the parts and lays them out. The slot of the root part is 0,
// so that its root has node id 1, which is the kernel's number for a root.
func newTree(in []Part, controlName, mountpoint string) (*tree, error) {
	if len(in) == 0 || in[0].At != "" {
		return nil, errors.New("fs: the first part must be the root")
	}
	if len(in) > maxParts {
		return nil, fmt.Errorf("fs: %d parts, at most %d", len(in), maxParts)
	}
	t := &tree{controlName: controlName, mountpoint: mountpoint}
	for _, p := range in {
		if err := t.add(p); err != nil {
			return nil, err
		}
	}
	for _, p := range t.parts[1:] {
		if err := t.graft(p); err != nil {
			return nil, err
		}
	}
	for i, p := range t.parts {
		if err := t.govern(p); err != nil {
			return nil, err
		}
		p.aside = newAside(p.vol, path.Join(t.mountpoint, p.At), p.covered)
		t.slotOf(i, slotAside).vol = p.aside
	}
	return t, nil
}

// add gives a part its slots.
func (t *tree) add(in Part) error {
	p := &part{Part: in, vol: in.Volume}
	p.access.Store(&in.Access)
	if in.At != "" {
		at, err := cleanRel(in.At)
		if err != nil {
			return fmt.Errorf("fs: mount point %q: %w", in.At, err)
		}
		p.At = at
	}
	if p.vol == nil {
		p.vol = &unavailable{reason: in.Unavailable}
	}
	t.parts = append(t.parts, p)
	for kind, vol := range [slotsOfPart]Volume{slotVolume: p.vol, slotControl: newControl(in.Control, p.vol), slotGap: nil, slotAside: nil} {
		t.slots = append(t.slots, &slot{n: uint16(len(t.slots)), vol: vol, part: p, kind: slotKind(kind)})
	}
	return nil
}

// graft enters a part into the part that holds its mount point: the one with
// the longest path that is a prefix on a path boundary.
func (t *tree) graft(p *part) error {
	var host *part
	hostIndex, index := 0, 0
	for i, q := range t.parts {
		if q == p {
			index = i
			continue
		}
		if q.At == p.At {
			return fmt.Errorf("fs: two volumes at %q: %s and %s", p.At, q.Name, p.Name)
		}
		if within(p.At, q.At) && (host == nil || len(q.At) > len(host.At)) {
			host, hostIndex = q, i
		}
	}
	if first, _, _ := strings.Cut(t.rel(host, p.At), "/"); first == t.controlName {
		return fmt.Errorf("fs: nothing can be mounted at %q: %s is wsmount's own", p.At, t.controlName)
	}
	host.covered = append(host.covered, t.rel(host, p.At))
	pl := t.placesOf(host, hostIndex).make(t.rel(host, p.At))
	pl.graft = t.slotOf(index, slotVolume)
	return nil
}

// govern enters a part's governing paths. Those that lie under a mount point
// are hidden and need no guard.
func (t *tree) govern(p *part) error {
	for i, q := range t.parts {
		if q != p {
			continue
		}
		for _, g := range p.Governing {
			rel, err := cleanRel(g)
			if err != nil {
				return fmt.Errorf("fs: governing file %q: %w", g, err)
			}
			t.placesOf(p, i).make(rel).governing = true
		}
	}
	return nil
}

func (t *tree) placesOf(p *part, index int) *places {
	if p.places == nil {
		p.places = newPlaces()
		gap := t.slotOf(index, slotGap)
		p.places.gap = gap
		gap.vol = &gapVolume{places: p.places}
	}
	return p.places
}

func (t *tree) rel(host *part, at string) string {
	return strings.TrimPrefix(strings.TrimPrefix(at, host.At), "/")
}

// slotOf is a slot of a part.
func (t *tree) slotOf(part int, kind slotKind) *slot { return t.slots[part*int(slotsOfPart)+int(kind)] }

// sibling is another slot of the same part.
func (t *tree) sibling(s *slot, kind slotKind) *slot { return t.slots[s.n-uint16(s.kind)+uint16(kind)] }

// at finds the slot and inode of a node id; the slot is nil for a node id that we never gave
// out.
func (t *tree) at(node uint64) (*slot, Ino) {
	n := node >> slotShift
	if n >= uint64(len(t.slots)) {
		return nil, 0
	}
	return t.slots[n], Ino(node) & MaxIno
}

// within reports whether p is dir or lies below it, on path boundaries:
// "abcd" is not within "abc".
func within(p, dir string) bool {
	return dir == "" || p == dir || strings.HasPrefix(p, dir+"/")
}

// cleanRel checks a path from a root: it drops slashes at the ends, and refuses a path that
// climbs.
func cleanRel(p string) (string, error) {
	t := strings.Trim(p, "/")
	if t == "" || strings.ContainsRune(t, 0) || path.Clean(t) != t || t == ".." || strings.HasPrefix(t, "../") {
		return "", errors.New("not a plain path below the root")
	}
	return t, nil
}

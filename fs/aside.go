package fs

import (
	"errors"
	"path"
	"strings"
	"syscall"
	"time"
)

// asideTTL is how long the kernel believes entries and content that will not change.
const asideTTL = time.Hour

// errAside is the refusal to change a file that a volume shows beside its own names.
var errAside = &reasonError{ErrReadOnly, "this shows the working copy to other programs and cannot be changed"}

// aside serves an Aside. An inode is a path with a version of its content, so that the pages of
// one version are never shown as another's: a file that a program has open or mapped stays the
// same when the path leads to something new.
type aside struct {
	readOnlyVolume
	Aside
	numbers[asideKey, Shown]
}

type asideKey struct{ path, version string }

type asideNode struct {
	asideKey
	shown Shown
}

func newAside(v Volume, root string, covered []string) *aside {
	a := &aside{numbers: newNumbers[asideKey, Shown]()}
	if s, ok := v.(Sided); ok {
		a.Aside = s.Aside(root, covered)
	}
	return a
}

// reaches looks up the entry behind a name in the root of the volume.
func (a *aside) reaches(op *Op, name string) (Entry, error) {
	return a.entry(op, a.Names[name])
}

// entry takes a reference to the inode that a path leads to now.
func (a *aside) entry(op *Op, p string) (Entry, error) {
	shown, err := a.Tree.Show(op, p)
	if errors.Is(err, syscall.ENOENT) {
		return Entry{}, nil
	}
	if err != nil {
		return Entry{}, err
	}
	n := &asideNode{asideKey{p, shown.Version}, shown}
	ino := a.take(n.asideKey, shown)
	e := Entry{Ino: ino, Attr: n.attr(ino)}
	if shown.Lasting {
		e.TTL = asideTTL
	}
	return e, nil
}

func (n *asideNode) attr(ino Ino) Attr {
	a := n.shown.attr(ino)
	if n.version != "" || n.shown.Lasting {
		a.TTL = asideTTL
	}
	return a
}

func (a *aside) Forget(ino Ino, n uint64) { a.give(ino, n) }

// node returns the inode's key and its last known state. An inode without a version, which is
// made anew each time, is shown again.
func (a *aside) node(op *Op, ino Ino) (*asideNode, error) {
	key, shown, ok := a.of(ino)
	if !ok {
		return nil, ErrStale
	}
	var err error
	if key.version == "" {
		if shown, err = a.Tree.Show(op, key.path); errors.Is(err, syscall.ENOENT) {
			err = ErrStale
		}
	}
	return &asideNode{key, shown}, err
}

func (a *aside) Lookup(op *Op, dir Ino, name string) (Entry, error) {
	n, err := a.node(op, dir)
	if err != nil {
		return Entry{}, err
	}
	return a.entry(op, path.Join(n.path, name))
}

func (a *aside) Attr(op *Op, ino Ino, f File) (Attr, error) {
	if s, ok := f.(*asideFile); ok { // an open file keeps its attributes
		return s.node.attr(ino), nil
	}
	n, err := a.node(op, ino)
	if err != nil {
		return Attr{}, err
	}
	return n.attr(ino), nil
}

func (a *aside) OpenDir(op *Op, ino Ino) (Dir, error) {
	n, err := a.node(op, ino)
	if err != nil {
		return nil, err
	}
	entries := dots(ino)
	for _, name := range n.shown.Names {
		name, isDir := strings.CutSuffix(name, "/")
		e := DirEntry{Name: name, Mode: syscall.S_IFREG}
		if isDir {
			e.Mode = syscall.S_IFDIR
		}
		entries = append(entries, e)
	}
	return &listDir{entries: entries}, nil
}

// Open opens an inode for reading. The kernel keeps its pages if the content has a version.
func (a *aside) Open(op *Op, ino Ino, flags uint32) (Opened, error) {
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		return Opened{}, errAside
	}
	n, err := a.node(op, ino)
	if err != nil {
		return Opened{}, err
	}
	if n.shown.Open == nil {
		return Opened{}, syscall.EISDIR
	}
	f, err := n.shown.Open(op)
	if err != nil {
		return Opened{}, err
	}
	keeps := n.version != ""
	return Opened{File: &asideFile{shownFile{f: f}, n}, KeepCache: keeps, Direct: !keeps, NoFlush: true}, nil
}

// asideFile is an open file of an aside.
type asideFile struct {
	shownFile
	node *asideNode
}

// sidedDir lists the files among an aside's names behind the volume's own.
type sidedDir struct {
	Dir
	names map[string]string // not the volume's
	tail  []DirEntry
	pos   int // in tail; -1: before it
}

// sidedCookie is above every cookie of a volume.
const sidedCookie = 1 << 62

func (d *sidedDir) Seek(cookie uint64) error {
	if cookie >= sidedCookie {
		d.pos = int(cookie - sidedCookie)
		return nil
	}
	d.pos = -1
	return d.Dir.Seek(cookie)
}

func (d *sidedDir) Next(op *Op) (DirEntry, bool, error) {
	for d.pos < 0 {
		e, ok, err := d.Dir.Next(op)
		if err != nil {
			return e, ok, err
		}
		if !ok {
			d.pos = 0
			break
		}
		if _, ours := d.names[e.Name]; !ours {
			return e, true, nil
		}
	}
	if d.pos >= len(d.tail) {
		return DirEntry{}, false, nil
	}
	e := d.tail[d.pos]
	d.pos++
	e.Cookie = sidedCookie + uint64(d.pos)
	return e, true, nil
}

// listed returns the entries that are added to a listing of the volume's root.
func (a *aside) listed(op *Op) []DirEntry {
	var list []DirEntry
	for _, name := range sortedKeys(a.Names) {
		e, err := a.reaches(op, name)
		if err != nil || e.Ino == 0 {
			continue
		}
		if e.Attr.Mode&syscall.S_IFMT == syscall.S_IFREG {
			list = append(list, DirEntry{Name: name, Ino: e.Ino, Mode: syscall.S_IFREG})
		}
		a.Forget(e.Ino, 1)
	}
	return list
}

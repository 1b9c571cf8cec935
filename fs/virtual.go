package fs

import (
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// readOnlyVolume has the methods common to the volumes that the front itself invents: nothing
// in them can be changed, and there is no name or attribute unless the embedding volume has it.
type readOnlyVolume struct{}

func (readOnlyVolume) Lookup(*Op, Ino, string) (Entry, error)             { return Entry{}, nil }
func (readOnlyVolume) Forget(Ino, uint64)                                 {}
func (readOnlyVolume) SetAttr(*Op, Ino, File, *SetAttr) (Attr, error)     { return Attr{}, ErrReadOnly }
func (readOnlyVolume) Readlink(*Op, Ino) (string, error)                  { return "", syscall.EINVAL }
func (readOnlyVolume) Mkdir(*Op, Ino, string, uint32) (Entry, error)      { return Entry{}, ErrReadOnly }
func (readOnlyVolume) Symlink(*Op, Ino, string, string) (Entry, error)    { return Entry{}, ErrReadOnly }
func (readOnlyVolume) Link(*Op, Ino, Ino, string) (Entry, error)          { return Entry{}, ErrReadOnly }
func (readOnlyVolume) Unlink(*Op, Ino, string) error                      { return ErrReadOnly }
func (readOnlyVolume) Rmdir(*Op, Ino, string) error                       { return ErrReadOnly }
func (readOnlyVolume) GetXattr(*Op, Ino, string) ([]byte, error)          { return nil, syscall.ENODATA }
func (readOnlyVolume) SetXattr(*Op, Ino, string, []byte, uint32) error    { return ErrReadOnly }
func (readOnlyVolume) ListXattr(*Op, Ino) ([]string, error)               { return nil, nil }
func (readOnlyVolume) RemoveXattr(*Op, Ino, string) error                 { return ErrReadOnly }
func (readOnlyVolume) Open(*Op, Ino, uint32) (Opened, error)              { return Opened{}, syscall.EISDIR }
func (readOnlyVolume) Rename(*Op, Ino, string, Ino, string, uint32) error { return ErrReadOnly }
func (readOnlyVolume) Mknod(*Op, Ino, string, uint32, uint32) (Entry, error) {
	return Entry{}, ErrReadOnly
}
func (readOnlyVolume) Create(*Op, Ino, string, uint32, uint32) (Entry, Opened, error) {
	return Entry{}, Opened{}, ErrReadOnly
}
func (readOnlyVolume) Tmpfile(*Op, Ino, uint32, uint32) (Entry, Opened, error) {
	return Entry{}, Opened{}, ErrReadOnly
}
func (readOnlyVolume) Statfs(*Op, Ino) (Statfs, error) {
	return Statfs{Bsize: 4096, Frsize: 4096, NameLen: 255}, nil
}

func dirAttr(ino Ino, perm uint32, ttl time.Duration) Attr {
	return Attr{Ino: ino, Mode: syscall.S_IFDIR | perm, Nlink: 2, Blksize: 4096, TTL: ttl}
}

func dots(ino Ino) []DirEntry {
	return []DirEntry{
		{Name: ".", Ino: ino, Mode: syscall.S_IFDIR},
		{Name: "..", Mode: syscall.S_IFDIR},
	}
}

// listDir is a directory stream over a list in memory; a cookie is an index.
type listDir struct {
	entries []DirEntry
	pos     int
}

func (d *listDir) Seek(cookie uint64) error {
	d.pos = int(min(cookie, uint64(len(d.entries))))
	return nil
}

func (d *listDir) Next(*Op) (DirEntry, bool, error) {
	if d.pos >= len(d.entries) {
		return DirEntry{}, false, nil
	}
	e := d.entries[d.pos]
	d.pos++
	e.Cookie = uint64(d.pos)
	return e, true, nil
}

func (d *listDir) Fsync(*Op, bool) error { return nil }
func (d *listDir) Release()              {}

// unavailable stands where an optional part could not be opened: a directory that no program
// can look into. Its mode lets every user ask for the reason, by user.wsmount.reason and in
// .wsmount, which need permission to read and to search; the directory's methods refuse the
// rest.
type unavailable struct {
	readOnlyVolume
	reason string
}

func (u *unavailable) err() error {
	return &reasonError{kind: syscall.EACCES, reason: "not available: " + u.reason}
}

func (u *unavailable) Attr(*Op, Ino, File) (Attr, error) {
	return dirAttr(RootIno, 0o555, time.Second), nil
}
func (u *unavailable) Describe(_ *Op, _ Ino, what string) (string, bool) {
	switch what {
	case "reason":
		return u.reason, true
	case "state":
		return "unavailable", true
	}
	return "", false
}
func (u *unavailable) Lookup(*Op, Ino, string) (Entry, error) { return Entry{}, u.err() }
func (u *unavailable) OpenDir(*Op, Ino) (Dir, error)          { return nil, u.err() }

type reasonError struct {
	kind   error
	reason string
}

func (e *reasonError) Error() string { return e.reason }
func (e *reasonError) Unwrap() error { return e.kind }

// control serves a ControlDir. A file's content is made for each request, so nothing of it is
// cached: no TTL, and reads bypass the page cache.
type control struct {
	readOnlyVolume
	dir ControlDir
	vol Shower

	numbers[string, struct{}] // by path; the root has none
}

type emptyControl struct{}

func (emptyControl) List() []string              { return nil }
func (emptyControl) Read(string) ([]byte, error) { return nil, syscall.ENOENT }
func (emptyControl) Harmless(string) bool        { return false }

type emptyShower struct{}

func (emptyShower) Show(*Op, string) (Shown, error) { return Shown{}, syscall.ENOENT }

// newControl shows d, and the names that the volume shows itself, if any.
func newControl(d ControlDir, v Volume) *control {
	if d == nil {
		d = emptyControl{}
	}
	shower, ok := v.(Shower)
	if !ok {
		shower = emptyShower{}
	}
	return &control{dir: d, vol: shower, numbers: newNumbers[string, struct{}]()}
}

// children maps the names in dir to whether they are directories.
func (c *control) children(dir string) map[string]bool {
	out := make(map[string]bool)
	for _, p := range c.dir.List() {
		rest := p
		if dir != "" {
			var ok bool
			if rest, ok = strings.CutPrefix(p, dir+"/"); !ok {
				continue
			}
		}
		if name, _, isDir := strings.Cut(rest, "/"); name != "" {
			out[name] = out[name] || isDir
		}
	}
	return out
}

// listed reports whether the ControlDir, rather than the volume, has a path, and whether as a
// directory.
func (c *control) listed(p string) (isDir, ok bool) {
	isDir, ok = c.children(strings.TrimPrefix(path.Dir(p), "."))[path.Base(p)]
	return isDir, ok
}

// harmless reports whether an inode shows nothing of the volume's content: the names in the
// root, which are always the same, or a file that the ControlDir calls harmless.
func (c *control) harmless(ino Ino) bool {
	p, known := c.path(ino)
	isDir, ok := c.listed(p)
	return known && (p == "" || ok && !isDir && c.dir.Harmless(p))
}

func (c *control) path(ino Ino) (string, bool) {
	if ino == RootIno {
		return "", true
	}
	p, _, ok := c.of(ino)
	return p, ok
}

func (c *control) Forget(ino Ino, n uint64) { c.give(ino, n) }

func (c *control) attr(ino Ino, p string, isDir bool) (Attr, error) {
	if isDir {
		return dirAttr(ino, 0o555, 0), nil
	}
	b, err := c.dir.Read(p)
	if err != nil {
		return Attr{}, err
	}
	return Attr{Ino: ino, Mode: syscall.S_IFREG | 0o444, Nlink: 1, Size: uint64(len(b)),
		Blocks: uint64(len(b)+511) / 512, Blksize: 4096}, nil
}

func (c *control) Lookup(op *Op, dir Ino, name string) (Entry, error) {
	parent, ok := c.path(dir)
	if !ok {
		return Entry{}, ErrStale
	}
	p := path.Join(parent, name)
	isDir, ok := c.children(parent)[name]
	if !ok {
		shown, err := c.vol.Show(op, p)
		if errors.Is(err, syscall.ENOENT) {
			return Entry{}, nil
		}
		if err != nil {
			return Entry{}, err
		}
		ino := c.take(p, struct{}{})
		return Entry{Ino: ino, Attr: shown.attr(ino)}, nil
	}
	a, err := c.attr(0, p, isDir)
	if err != nil {
		return Entry{}, err
	}
	a.Ino = c.take(p, struct{}{})
	return Entry{Ino: a.Ino, Attr: a}, nil
}

func (s *Shown) attr(ino Ino) Attr {
	a := Attr{Ino: ino, Mode: syscall.S_IFREG | s.Mode&0o555, Nlink: 1, UID: s.UID, GID: s.GID,
		Atime: s.Mtime, Mtime: s.Mtime, Ctime: s.Mtime,
		Size: uint64(s.Size), Blocks: uint64(s.Size+511) / 512, Blksize: 4096}
	if s.Target != "" {
		a.Mode, a.Size, a.Blocks = syscall.S_IFLNK|0o777, uint64(len(s.Target)), 0
	}
	if s.Names != nil {
		a.Mode, a.Nlink, a.Size, a.Blocks = syscall.S_IFDIR|s.Mode&0o555, 2, 0, 0
	}
	return a
}

func (c *control) Attr(op *Op, ino Ino, _ File) (Attr, error) {
	p, ok := c.path(ino)
	if !ok {
		return Attr{}, ErrStale
	}
	if p == "" {
		return dirAttr(ino, 0o555, 0), nil
	}
	isDir, ok := c.listed(p)
	if ok {
		return c.attr(ino, p, isDir)
	}
	shown, err := c.vol.Show(op, p)
	if errors.Is(err, syscall.ENOENT) {
		err = ErrStale
	}
	return shown.attr(ino), err
}

func (c *control) Readlink(op *Op, ino Ino) (string, error) {
	p, ok := c.path(ino)
	if !ok {
		return "", ErrStale
	}
	shown, err := c.vol.Show(op, p)
	if err == nil && shown.Target == "" {
		err = syscall.EINVAL
	}
	return shown.Target, err
}

func (c *control) OpenDir(op *Op, ino Ino) (Dir, error) {
	p, ok := c.path(ino)
	if !ok {
		return nil, ErrStale
	}
	entries := dots(ino)
	modes := map[string]uint32{}
	for name, isDir := range c.children(p) {
		modes[name] = syscall.S_IFREG
		if isDir {
			modes[name] = syscall.S_IFDIR
		}
	}
	if shown, err := c.vol.Show(op, p); err == nil {
		for _, name := range shown.Names {
			if dir, is := strings.CutSuffix(name, "/"); is {
				modes[dir] = syscall.S_IFDIR
			} else if modes[name] == 0 {
				modes[name] = 0 // the type is left to a lookup
			}
		}
	}
	for _, name := range sortedKeys(modes) {
		entries = append(entries, DirEntry{Name: name, Mode: modes[name]})
	}
	return &listDir{entries: entries}, nil
}

// Open reads the file once: a reader sees one version of it from end to end.
func (c *control) Open(op *Op, ino Ino, flags uint32) (Opened, error) {
	p, ok := c.path(ino)
	if !ok {
		return Opened{}, ErrStale
	}
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		return Opened{}, ErrReadOnly
	}
	if isDir, ok := c.listed(p); !ok || isDir {
		return c.openShown(op, p)
	}
	b, err := c.dir.Read(p)
	if err != nil {
		return Opened{}, err
	}
	return Opened{File: &bytesFile{data: b}, Direct: true, NoFlush: true}, nil
}

// openShown opens a file that the volume itself shows.
func (c *control) openShown(op *Op, p string) (Opened, error) {
	shown, err := c.vol.Show(op, p)
	if err != nil {
		return Opened{}, err
	}
	if shown.Open == nil {
		return Opened{}, syscall.EISDIR
	}
	f, err := shown.Open(op)
	if err != nil {
		return Opened{}, err
	}
	return Opened{File: &shownFile{f: f}, Direct: true, NoFlush: true}, nil
}

// shownFile is an open file of a Shower.
type shownFile struct {
	bytesFile
	f ShownFile
}

func (s *shownFile) Read(_ *Op, buf []byte, off int64) (Data, error) {
	n, err := s.f.ReadAt(buf, off)
	if err == io.EOF {
		err = nil
	}
	return Data{Bytes: buf[:n]}, err
}

func (s *shownFile) Release() { s.f.Close() }

// bytesFile is an open file of fixed content.
type bytesFile struct{ data []byte }

func (f *bytesFile) Read(_ *Op, buf []byte, off int64) (Data, error) {
	n, err := bytes.NewReader(f.data).ReadAt(buf, off)
	if err == io.EOF {
		err = nil
	}
	return Data{Bytes: buf[:n]}, err
}

func (*bytesFile) Write(*Op, []byte, int64) (int, error)    { return 0, ErrReadOnly }
func (*bytesFile) Flush(*Op) error                          { return nil }
func (*bytesFile) Fsync(*Op, bool) error                    { return nil }
func (*bytesFile) Allocate(*Op, int64, int64, uint32) error { return ErrReadOnly }
func (*bytesFile) Seek(*Op, int64, uint32) (int64, error)   { return 0, syscall.EINVAL }
func (*bytesFile) Release()                                 {}
func (*bytesFile) CopyRange(*Op, int64, File, int64, int64) (int64, error) {
	return 0, syscall.EXDEV
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

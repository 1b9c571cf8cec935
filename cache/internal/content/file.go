package content

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// File is the content of one inode, shared by all who use it. Its methods may
// be called at once, between the call that gave it and its [File.Release].
// Offsets and sizes are bytes.
type File struct {
	shared
	users int        // guarded by the lock of Store.inodes
	sum   checksum   // has a lock of its own
	held  lockedFile // see lock
}

// shared is what of a File needs no lock: it is fixed, or atomic.
type shared struct {
	s   *Store
	ino uint64

	err    error        // why it could not be opened; fixed once opened is set
	opened atomic.Bool  // opening is over, well or not
	whole  atomic.Bool  // no block is missing
	size   atomic.Int64 // changed under the lock of the file, as the next
	writes atomic.Uint64
	rd     atomic.Int32 // read-only descriptor, -1 until somebody needs it
}

// lockedFile is a File for who holds its lock, from File.lock until unlock. Every change
// of bytes is made through it. What is a method of File would wait for the lock for ever,
// and cannot be reached from here.
type lockedFile struct {
	*shared
	file *File
	mu   sync.Mutex

	wr      int // descriptor for changes, -1 when there is none
	part    string
	blank   bool // has no files on the disk yet
	path    string
	changed bool // since it is in use
	synced  bool // once
	syncErr error
	blocks  *blocks // nil when whole and the disk knows it
	src     Source
	srcGen  uint64
	flights []*flight
	views   []*Snapshot // that a change must be kept from
	pins    int         // goroutines that use the descriptors
	closing bool
	readers readers
	delta   *delta // nil: no account of changes is kept
	blind   bool   // nor can be
}

func (s *Store) newFile(ino uint64, path string) *File {
	f := &File{shared: shared{s: s, ino: ino}, users: 1, held: lockedFile{path: path, wr: -1}}
	f.held.shared, f.held.file = &f.shared, f
	f.rd.Store(-1)
	return f
}

// lock waits for the file, and gives it to the caller until unlock.
func (f *File) lock() *lockedFile {
	f.held.mu.Lock()
	return &f.held
}

func (f *lockedFile) unlock() { f.mu.Unlock() }

// unlocked runs do, which waits for something, without the lock. Everything may have
// changed when it returns.
func (f *lockedFile) unlocked(do func()) {
	f.mu.Unlock()
	defer f.mu.Lock()
	do()
}

// Create makes empty content for an inode, which is whole. Path is where its
// file has its name, for [Store.Each]; it is written down some time after the
// file was released with changes. Content that the inode had is replaced, and Files of
// it live on without a name.
func (s *Store) Create(ino uint64, path string) (*File, error) {
	return s.make(func() (*File, error) {
		f := s.newFile(ino, path)
		f.whole.Store(true)
		return f, f.publish(func(l *lockedFile, n names) (err error) {
			l.wr, err = n.create()
			return err
		})
	})
}

// make makes a new file, if need be in the room of clean content, also of such that was
// in use a moment ago.
func (s *Store) make(create func() (*File, error)) (f *File, err error) {
	err = s.afterReleases(s.work.ctx, func() error {
		return s.room.whileFull(0, func() (err error) {
			f, err = create()
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("content: create %d: %w", f.ino, err)
	}
	return f, nil
}

// Sparse makes content for an inode of which nothing is here yet: size bytes of
// one version that the file's source will bring. Digest is "sha256:" or "md5:"
// and the hash in hex, against which the bytes are compared when all are here;
// "" and digests of other kinds are not compared. Content that the inode had is
// replaced, as by [Store.Create].
//
// Nothing of it is on the disk before the first byte comes, or is written: so that it
// can be read on a disk that is full, and a File that is released before leaves nothing
// behind for [Store.Open].
func (s *Store) Sparse(ino uint64, path string, size int64, digest string) (*File, error) {
	if size == 0 {
		return s.Create(ino, path)
	}
	f := s.newFile(ino, path)
	f.size.Store(size)
	err := f.publish(func(l *lockedFile, n names) error {
		l.blocks = newBlocks(size, s.o.blockOf(size), digest, s.o.boot)
		l.blank = true
		return n.unlink()
	})
	if err != nil {
		return nil, fmt.Errorf("content: create %d: %w", ino, err)
	}
	return f, nil
}

// layOut makes the files of a blank one, all of them holes: without names when the inode
// has other content by now.
func (f *lockedFile) layOut() (err error) {
	n := f.s.dirs.lock(f.ino)
	defer n.unlock()
	named := f.s.inodes.named(n, f.file)
	switch {
	case f.blocks.single(): // gets its name when it is whole
		f.part, f.wr, err = f.s.dirs.part()
	case named:
		f.wr, err = f.blocks.create(n)
	default:
		f.wr, err = f.s.dirs.temp()
	}
	if err != nil {
		return err
	}
	if err = retry(func() error { return unix.Ftruncate(f.wr, f.size.Load()) }); err == nil {
		f.blank = false
		return nil
	}
	f.shutFiles()
	if named {
		err = errors.Join(err, n.unlink())
	}
	return err
}

// publish makes a new file the content of its inode, with what create opens.
func (f *File) publish(create func(*lockedFile, names) error) error {
	l := f.lock()
	defer l.unlock()
	n := f.s.dirs.lock(f.ino)
	defer n.unlock()
	err := create(l, n)
	if errors.Is(err, unix.EEXIST) {
		if err = f.s.displace(n); err == nil {
			err = create(l, n)
		}
	}
	if err != nil {
		l.shut()
		return err
	}
	f.s.forget(n) // what had no name yet
	f.opened.Store(true)
	f.s.inodes.name(n, f)
	return nil
}

// Open gives the content of an inode, whole or not. The error is
// [io/fs.ErrNotExist] when there is none, and [ErrDamaged] when nobody can tell
// which of it is present.
func (s *Store) Open(ino uint64) (*File, error) {
	for {
		f, err := s.openOnce(ino)
		if !errors.Is(err, errReplaced) {
			return f, err
		}
	}
}

// errReplaced says that the content was replaced while it was being opened.
var errReplaced = errors.New("replaced")

func (s *Store) openOnce(ino uint64) (*File, error) {
	all := s.inodes.lock()
	all.known.touch(ino)
	if f := all.files[ino]; f != nil {
		f.users++
		all.unlock()
		return f.wait()
	}
	f := s.newFile(ino, "")
	l := f.lock()
	defer l.unlock()
	l.delta = all.deltas[ino]
	all.files[ino] = f
	all.unlock()
	if f.err = l.load(); f.err != nil {
		if !errors.Is(f.err, errReplaced) {
			f.err = fmt.Errorf("content: open %d: %w", ino, f.err)
		}
		f.opened.Store(true)
		s.inodes.unlist(f)
		return nil, f.err
	}
	f.opened.Store(true)
	return f, nil
}

// wait gives a file that another call opens.
func (f *File) wait() (*File, error) {
	if !f.opened.Load() {
		l := f.lock() // until it is open
		defer l.unlock()
	}
	if f.err != nil {
		return nil, f.err
	}
	return f, nil
}

// load opens what is on the disk.
func (f *lockedFile) load() error {
	n := f.s.dirs.lock(f.ino)
	defer n.unlock()
	if !f.s.inodes.named(n, f.file) {
		return errReplaced
	}
	fd, err := f.s.dirs.open(f.ino, unix.O_RDONLY)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		f.blocks, st.Size, err = loadBlocks(n, f.s.o.boot, st.Size)
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	f.rd.Store(int32(fd))
	f.size.Store(st.Size)
	f.whole.Store(f.blocks == nil || f.blocks.missing == 0)
	return nil
}

// Release undoes one Create, Sparse or Open. With the last, fetches end and
// descriptors are closed.
func (f *File) Release() {
	last, named := f.s.inodes.release(f)
	if !last {
		return
	}
	l := f.lock()
	defer l.unlock()
	l.abandonAll()
	l.closing = true
	if named && l.changed && l.path != "" {
		f.s.paths.note(f.ino, l.path)
	}
	l.shutWriter() // even if a fetch takes its time to end: it would not look quiet
	if l.pins > 0 {
		f.s.released.leave(1)
	}
	l.shut()
}

// shut closes the descriptors, unless a goroutine still uses them.
func (f *lockedFile) shut() {
	if f.pins > 0 {
		return
	}
	f.shutFiles()
	f.s.released.gone()
}

// shutFiles closes the descriptors, and removes what has no name yet.
func (f *lockedFile) shutFiles() {
	f.shutWriter()
	if fd := f.rd.Swap(-1); fd >= 0 {
		unix.Close(int(fd))
	}
	if f.blocks != nil {
		f.blocks.close()
	}
	if f.part != "" {
		os.Remove(f.part)
		f.part = ""
	}
}

// shutWriter closes the descriptor for changes; the next one opens another.
func (f *lockedFile) shutWriter() {
	if f.wr >= 0 {
		unix.Close(f.wr)
		f.wr = -1
	}
}

// unpin ends one use of the descriptors by a goroutine.
func (f *lockedFile) unpin() {
	if f.pins--; f.pins == 0 && f.closing {
		f.s.released.leave(-1)
		f.shut()
	}
}

// reader is the descriptor for reading.
func (f *File) reader() (int, error) {
	if fd := f.rd.Load(); fd >= 0 {
		return int(fd), nil
	}
	l := f.lock()
	defer l.unlock()
	return l.reader()
}

func (f *lockedFile) reader() (int, error) {
	if fd := f.rd.Load(); fd >= 0 {
		return int(fd), nil
	}
	if f.wr < 0 {
		return -1, ErrClosed
	}
	fd, err := reopen(f.wr, unix.O_RDONLY)
	if err != nil {
		return -1, err
	}
	f.rd.Store(int32(fd))
	return fd, nil
}

// writer is the descriptor for changes.
func (f *lockedFile) writer() (int, error) {
	if f.wr >= 0 {
		return f.wr, nil
	}
	if f.blank && !f.closing {
		err := f.layOut()
		return f.wr, err
	}
	rd := int(f.rd.Load())
	if rd < 0 {
		return -1, ErrClosed
	}
	fd, err := reopen(rd, unix.O_RDWR)
	if err != nil {
		return -1, err
	}
	f.wr = fd
	return fd, nil
}

// Ino is the inode.
func (f *File) Ino() uint64 { return f.ino }

// Size is where the file ends.
func (f *File) Size() int64 { return f.size.Load() }

// Whole reports that nothing of the file is missing.
func (f *File) Whole() bool { return f.whole.Load() }

// Missing is how many bytes of the file are not here.
func (f *File) Missing() int64 {
	if f.whole.Load() {
		return 0
	}
	l := f.lock()
	defer l.unlock()
	if l.blocks == nil {
		return 0
	}
	return l.blocks.missingBytes()
}

// Fd is a read-only descriptor of the content file, -1 when it cannot be
// opened. It is valid until the caller's Release, and must not be closed.
// Blocks that are missing read as zeros from it: see [File.Present].
func (f *File) Fd() int {
	fd, err := f.reader()
	if err != nil {
		f.s.o.Log.Error("content: reopen", "ino", f.ino, "error", err)
		return -1
	}
	return fd
}

// Blocks is the space that the file takes here, in units of 512 bytes.
func (f *File) Blocks() int64 {
	l := f.lock()
	defer l.unlock()
	st, err := l.stat()
	if err != nil {
		return 0
	}
	return st.Blocks
}

// Mtime is when the content file last changed, in nanoseconds of the epoch by
// the disk's own account, 0 if it cannot be said. Fetches change it too.
func (f *File) Mtime() int64 {
	l := f.lock()
	defer l.unlock()
	st, err := l.stat()
	if err != nil {
		return 0
	}
	return st.Mtim.Nano()
}

// stat asks the disk.
func (f *lockedFile) stat() (st unix.Stat_t, err error) {
	fd := f.wr
	if fd < 0 {
		fd = int(f.rd.Load())
	}
	return st, unix.Fstat(fd, &st)
}

// Writes is a count that every change of bytes or size moves, and a fetch does
// not. Two equal counts of one File mean equal content, but for writers that
// are not ours: see [File.Quiet]. It waits for a change that is under way.
func (f *File) Writes() uint64 {
	l := f.lock()
	defer l.unlock()
	return f.writes.Load()
}

// SetSource says where missing blocks come from, from now on. It must bring
// the same version as the source before. Fetches that are under way go on, and
// are repeated with the new source should they fail.
func (f *File) SetSource(src Source) {
	l := f.lock()
	defer l.unlock()
	l.src = src
	l.srcGen++
}

// change prepares a change of the bytes from off to end: it moves the count, and
// gives the descriptor to use.
func (f *lockedFile) change(off, end int64) (int, error) {
	fd, err := f.writer()
	if err != nil {
		return -1, err
	}
	f.writes.Add(1)
	f.changed = true
	f.note(off, end)
	if f.blocks != nil {
		err = f.blocks.touch()
	}
	return fd, err
}

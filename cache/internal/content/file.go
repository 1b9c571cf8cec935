package content

import (
	"sync"
	"sync/atomic"
)

// File is the content of one inode, shared by all users. Its methods may be called at once,
// between the call that gave it and its [File.Release]. Offsets and sizes are bytes.
type File struct {
	shared
	users int        // see lockedInodes
	sum   checksum   // has a lock of its own
	held  lockedFile // see lock
}

// shared is the state of a File that needs no lock: it is fixed, or atomic.
type shared struct {
	s   *Store
	ino uint64

	err    error        // why opening failed; fixed once opened is set
	opened atomic.Bool  // opening is over, well or not
	whole  atomic.Bool  // no block is missing
	size   atomic.Int64 // changed under the lock of the file, as writes is
	writes atomic.Uint64
	rd     atomic.Int32 // read-only descriptor, -1 until it is needed
}

// lockedFile is a File for the holder of its lock, from File.lock until unlock. Every
// change of bytes is made through it. Methods of File that take the lock would wait for
// ever, and cannot be reached from it.
type lockedFile struct {
	*shared
	file *File
	mu   sync.Mutex // guards the rest, the ranges that came, and the changes since each view

	wr      int // descriptor for changes, -1 when there is none
	part    string
	blank   bool // has no files on the disk yet
	path    string
	changed bool // by a program, since it is in use
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
	blind   bool   // and none can be kept
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

// Size is the size of the file.
func (f *File) Size() int64 { return f.size.Load() }

// Whole reports that no block of the file is missing.
func (f *File) Whole() bool { return f.whole.Load() }

// Missing is how many bytes of the file are not local.
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

// Blocks is the space that the file takes on the local disk, in units of 512 bytes.
func (f *File) Blocks() int64 {
	l := f.lock()
	defer l.unlock()
	st, err := l.stat()
	if err != nil {
		return 0
	}
	return st.Blocks
}

// Mtime is when the content file last changed, in nanoseconds of the epoch by the disk's
// own account, 0 if it is not known. Fetches change it too.
func (f *File) Mtime() int64 {
	l := f.lock()
	defer l.unlock()
	st, err := l.stat()
	if err != nil {
		return 0
	}
	return st.Mtim.Nano()
}

// Writes is a count that every change of bytes or size moves, and a fetch does not. Two
// equal counts of one File mean equal content, but for foreign writers: see [File.Quiet].
// It waits for a change that is under way.
func (f *File) Writes() uint64 {
	l := f.lock()
	defer l.unlock()
	return f.writes.Load()
}

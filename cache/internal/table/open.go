package table

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The kinds of errors of this package.
var (
	// ErrNewer: the table was written by a later version of wsmount.
	ErrNewer = errors.New("made by a newer version of wsmount")
	// ErrDamaged: the files on the disk differ from those that were written.
	ErrDamaged = errors.New("damaged")
	// ErrMisuse: the caller broke a rule of this package. The changes at hand
	// cannot be committed; Abort and go on.
	ErrMisuse = errors.New("wrong use of the table")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("the table of the working copy is closed")
)

// Options of Open. The zero value works.
type Options struct {
	// Log gets the complaints of the database. Nil is silent.
	Log *slog.Logger
	// BlockCache bounds the memory, in bytes, for parts of the database that
	// were read from the disk. 0 means 16 MiB.
	BlockCache int64
	// Resident is how many decoded inodes, and how many names, stay in memory.
	// 0 means 32768.
	Resident int
	// NoSpace is called when the disk is full, before a write is tried once more; it may
	// free space. It runs on any goroutine, and must neither use the table nor wait for a
	// caller that does. Nil: no space can be freed.
	NoSpace func()
	// ReadOnly opens an existing table to be read: nothing is written, so that a disk
	// without any room is enough. A change fails the table. Several may be open so at once;
	// the caller ensures that it is not open for writing meanwhile.
	ReadOnly bool
	// Strict panics on wrong use, and checks more for it. For tests.
	Strict bool
	// FS replaces the file system. For tests.
	FS vfs.FS
	// BootID replaces the identity of this boot of the machine. For tests.
	BootID string

	memTable uint64 // bytes of changes in memory before they go to a file; 0: 4 MiB
}

// Table is an open table. One lock of the caller is held over every method,
// except Sync and Err.
type Table struct {
	options   Options
	dir       string
	lock      *pebble.Lock
	disk      *disk
	inspector inspector
	database

	session session
	numbers numbers
	edits   map[Ino]*Inode
	inodes  resident[Ino, *Inode]
	names   resident[Link, known]
	named   []Link // the names that were set since the last Commit
	cursors cursors
	dirty   dirtyIndex
	news    uint64 // see News
}

// Open opens the table in dir, which it makes if there is none. It fails with ErrNewer or
// ErrDamaged, or with the error of the file system: that the disk is full, or that the
// table is open elsewhere.
func Open(dir string, o Options) (*Table, error) {
	t := newTable(o)
	t.disk = newDisk(t.options.FS, t.options.NoSpace, t.fail)
	if err := t.open(dir); err != nil {
		return nil, fmt.Errorf("table %q: %w", dir, err)
	}
	return t, nil
}

func newTable(o Options) *Table {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.BlockCache == 0 {
		o.BlockCache = 16 << 20
	}
	if o.Resident == 0 {
		o.Resident = 32768
	}
	if o.memTable == 0 {
		o.memTable = 4 << 20
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.BootID == "" {
		o.BootID = bootID()
	}
	t := &Table{options: o, edits: map[Ino]*Inode{}}
	t.log, t.o = o.Log, &t.options
	t.inodes.init(o.Resident)
	t.names.init(o.Resident)
	return t
}

func (t *Table) open(dir string) error {
	t.dir = dir
	t.inspector = inspector{disk: t.disk, dir: dir, boot: t.options.BootID, log: t.log}
	found, err := readFormat(t.disk, dir)
	if err != nil {
		return err
	}
	made := found > 0
	if t.options.ReadOnly && !made {
		return fs.ErrNotExist
	}
	t.disk.opening.Store(true)
	defer t.disk.opening.Store(false)
	if err := t.openPebble(dir, made); err != nil {
		if made && missing(err) {
			err = damagedBy(err)
		}
		return damage(err)
	}
	t.readSession()
	t.readNumbers()
	t.checkGuard(dir)
	t.readDirty()
	if err = t.Err(); t.options.ReadOnly && err == nil {
		return nil
	}
	if made && err == nil {
		err = t.listLocal()
	}
	if err == nil && found < format {
		err = t.writeFormat(dir, found)
	}
	if err != nil {
		return errors.Join(err, t.closePebble())
	}
	return nil
}

func (t *Table) openPebble(dir string, made bool) (err error) {
	db := t.disk.PathJoin(dir, "db")
	o := t.pebbleOptions()
	o.ErrorIfNotExists, o.ReadOnly = made, t.options.ReadOnly
	// Relative: Pebble remembers it, and a state directory may be moved.
	o.WALDir = pebble.MakeStoreRelativePath(t.disk, "log")
	t.disk.logs = t.disk.PathJoin(db, "log")
	if !made {
		if err := makeDir(t.disk, db); err != nil {
			return err
		}
	}
	locked := vfs.FS(t.disk)
	if t.options.ReadOnly {
		locked = unlocked{t.disk}
	}
	if t.lock, err = pebble.LockDirectory(db, locked); err != nil {
		return err
	}
	o.Lock = t.lock
	if made {
		err = t.inspector.checkHoles(db)
	}
	if made && !o.ReadOnly {
		err = errors.Join(err, t.disk.dropSpare())
	}
	if err != nil {
		return errors.Join(err, t.lock.Close())
	}
	if !o.ReadOnly {
		t.openMark(dir)
	}
	if t.db, err = pebble.Open(db, o); err != nil {
		return errors.Join(openError{err}, t.disk.mark.close(), t.lock.Close())
	}
	return nil
}

// unlocked is a file system whose locks lock nothing: Pebble knows none that readers share.
type unlocked struct{ vfs.FS }

func (unlocked) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func (t *Table) openMark(dir string) {
	t.disk.mark.open(t.disk.FS, markPath(dir), func(err error) {
		t.log.Warn("the mark of the table was not written", slog.Any("err", err))
	})
}

// openError is an error of Pebble while it looks at its files.
type openError struct{ error }

func (e openError) Unwrap() error { return e.error }

// missing reports whether an error says that files are missing or have changed: Pebble does
// not always call that corruption. An error of the system is none of these, but for ENOENT.
func missing(err error) bool {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno == syscall.ENOENT
	}
	var e openError
	return errors.As(err, &e) || errors.Is(err, fs.ErrNotExist)
}

func (t *Table) closePebble() error {
	close(t.disk.closing)
	err := t.db.Close()
	if !t.options.ReadOnly {
		err = errors.Join(err, t.disk.dropSpare())
	}
	return errors.Join(err, t.disk.mark.close(), t.lock.Close())
}

// Close ends the session, and marks the end as clean if no error stood in the
// way. Uncommitted changes are forgotten. The table answers nothing afterwards: ErrClosed.
func (t *Table) Close() error {
	t.Abort()
	t.numbers.wait()
	err := t.Err()
	if err == nil && t.session.begun {
		t.endSession()
		if t.setGuard(t.numbers.ino.next, t.numbers.seq.next) { // before the table has the lower numbers
			t.keepNumbers()
		}
		err = t.Commit()
	}
	closed := ErrClosed
	t.first.CompareAndSwap(nil, &closed)
	return errors.Join(err, t.closePebble())
}

// bootID is the identity that Linux gave this boot; "" when it is not known, which matches
// no boot.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

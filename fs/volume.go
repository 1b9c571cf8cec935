package fs

import (
	"io"
	"time"
)

// Ino is a volume's number for one of its inodes: 48 bits, RootIno for the
// root, and never given to another inode while the volume is served.
type Ino uint64

const (
	// RootIno is the number of every volume's root directory.
	RootIno Ino = 1

	// MaxIno is the largest number that a volume may use. The bits above it
	// carry the volume's slot in a node id.
	MaxIno Ino = 1<<48 - 1
)

// Attr is the attributes of an inode, as stat shows them.
type Attr struct {
	Ino     Ino // st_ino within the volume; may differ from the inode's number
	Size    uint64
	Blocks  uint64 // of 512 bytes
	Atime   time.Time
	Mtime   time.Time
	Ctime   time.Time
	Mode    uint32 // type and permission bits, as st_mode
	Nlink   uint32
	UID     uint32
	GID     uint32
	Rdev    uint32 // as the kernel's new_encode_dev
	Blksize uint32

	// TTL is how long the kernel may answer stat from its own memory.
	TTL time.Duration
}

// An Entry is the answer for a name: its inode, and how long name and attributes may be cached.
// An Entry with Ino 0 means that the name does not exist, which may be cached for TTL.
type Entry struct {
	Ino  Ino
	Attr Attr
	TTL  time.Duration // of the name
}

// SetAttr is a change of attributes. A nil field stays as it is.
type SetAttr struct {
	Mode     *uint32
	UID, GID *uint32
	Size     *uint64
	Atime    *time.Time
	Mtime    *time.Time
	Ctime    *time.Time // sent by the kernel only with its own write-back cache
	AtimeNow bool       // utimes(NULL): any writer may, not only the owner
	MtimeNow bool
}

// A DirEntry is one name of a directory stream.
type DirEntry struct {
	Name string
	Ino  Ino    // as Attr.Ino
	Mode uint32 // type bits only

	// Cookie is the position after this entry, for a later Seek. It is not 0, and an entry that
	// stays in the directory keeps its place in the order of the stream while others come and
	// go.
	Cookie uint64
}

// A Volume is one tree of inodes that the front serves to the kernel: a local directory, a
// working copy, a snapshot. The front knows of storage only this, and a volume knows nothing of
// FUSE.
//
// Numbers and references. Lookup and every call that creates return an Entry that counts as one
// reference to its inode; Forget gives references back. The root needs none. The volume counts
// in the critical section that maps a file to its number, so that a Forget and a concurrent
// Lookup cannot separate a number from its inode. An inode with open files stays usable, by its
// number, until the last is released, also without a name.
//
// Permissions. The kernel has checked the caller against Attr (mode, owner,
// ACL) before a call arrives; a volume checks nothing of that again, and
// creates under Op.UID and Op.GID by the rules of the parent (set-group-id).
//
// Errors. A volume returns a syscall.Errno, an error that wraps one, or one of the kinds in
// io/fs and of this package; errno.go maps it to an errno.
//
// Concurrency. Every method may be called from many goroutines at once. No method that changes
// names waits for a remote backend: the kernel holds a lock of the directory, or of the whole
// mount, while the method waits.
type Volume interface {
	// Lookup finds a name. A name that does not exist is an Entry with Ino 0
	// and no error.
	Lookup(op *Op, dir Ino, name string) (Entry, error)

	// Forget gives n references back. It does no I/O and cannot fail.
	Forget(ino Ino, n uint64)

	// Attr reads attributes, of the open file when f is not nil.
	Attr(op *Op, ino Ino, f File) (Attr, error)

	// SetAttr changes attributes, through the open file when f is not nil, and
	// returns them as they are afterwards.
	SetAttr(op *Op, ino Ino, f File, in *SetAttr) (Attr, error)

	Readlink(op *Op, ino Ino) (string, error)

	Mknod(op *Op, dir Ino, name string, mode, rdev uint32) (Entry, error)
	Mkdir(op *Op, dir Ino, name string, mode uint32) (Entry, error)
	Symlink(op *Op, dir Ino, name, target string) (Entry, error)
	Link(op *Op, ino, dir Ino, name string) (Entry, error)
	Unlink(op *Op, dir Ino, name string) error
	Rmdir(op *Op, dir Ino, name string) error

	// Rename moves a name. flags are those of renameat2(2); a flag that the
	// volume does not know is EINVAL.
	Rename(op *Op, dir Ino, name string, newDir Ino, newName string, flags uint32) error

	// GetXattr returns the value; ENODATA when there is none. A volume without ACLs answers
	// ENODATA for system.posix_acl_* as well: the kernel asks on every check of a permission,
	// and ENOTSUP would fail the check. ENOTSUP is for a kind of attribute that the volume
	// cannot store.
	GetXattr(op *Op, ino Ino, name string) ([]byte, error)
	SetXattr(op *Op, ino Ino, name string, value []byte, flags uint32) error
	ListXattr(op *Op, ino Ino) ([]string, error)
	RemoveXattr(op *Op, ino Ino, name string) error

	// Open opens a file. flags are those of open(2) without O_CREAT and O_EXCL; the volume
	// handles O_TRUNC.
	Open(op *Op, ino Ino, flags uint32) (Opened, error)

	// Create makes and opens a file in one step. With O_EXCL an existing name
	// is EEXIST; without it a name that appeared since the kernel looked is
	// opened.
	Create(op *Op, dir Ino, name string, flags, mode uint32) (Entry, Opened, error)

	// Tmpfile makes and opens a file without a name (O_TMPFILE), which Link
	// may give one later.
	Tmpfile(op *Op, dir Ino, flags, mode uint32) (Entry, Opened, error)

	OpenDir(op *Op, ino Ino) (Dir, error)

	Statfs(op *Op, ino Ino) (Statfs, error)
}

// Statfs is the result of statvfs(3).
type Statfs struct {
	Blocks, Bfree, Bavail uint64 // of Frsize bytes
	Files, Ffree          uint64
	Bsize, Frsize         uint32
	NameLen               uint32
}

// Opened is an open file and the kernel's permissions to cache and pass it through.
type Opened struct {
	File File

	// KeepCache says that the content is the same as the kernel last saw of this inode, so that
	// the pages it still has are right.
	KeepCache bool

	// NewAttr says that the kernel's attributes of this inode may be of other content: they are
	// forgotten before the program gets the file, which otherwise could not be read beyond the
	// old size. Nor are pages kept then: the kernel, when it learns the size, may truncate
	// bytes that a program has just written.
	NewAttr bool

	// Direct asks that reads and writes come to File one by one, not through the page cache.
	Direct bool

	// Backing, when PassRead or PassWrite is set, is a descriptor of the regular file that
	// holds the whole content. The kernel reads (PassRead) and writes (PassWrite) it without
	// asking, where it can. It stays open until Release and is the same file for every open of
	// the inode. A writer that was offered PassRead only still maps this file while others read
	// in passthrough: its stores are seen by comparing times, not by Write.
	Backing             int
	PassRead, PassWrite bool

	// NoFlush says that File has nothing to do at close(2).
	NoFlush bool
}

// Data is the result of a read: Bytes, or, when Bytes is nil, N bytes of the descriptor FD at
// offset Off, which stays open until the file is released.
type Data struct {
	Bytes []byte
	FD    int
	Off   int64
	N     int
}

// A File is an open file. Its methods may be called at once from many
// goroutines; Release comes last and once.
type File interface {
	// Read reads up to len(buf) bytes at off, into buf or elsewhere; fewer
	// only at the end of the file.
	Read(op *Op, buf []byte, off int64) (Data, error)

	// Write writes all of data at off. In a file opened with O_APPEND the
	// kernel has chosen off by the size it knows; the volume appends.
	Write(op *Op, data []byte, off int64) (int, error)

	// Flush is a close(2) of one of the file's descriptors.
	Flush(op *Op) error

	// Fsync makes content (and, unless dataOnly, attributes) durable.
	Fsync(op *Op, dataOnly bool) error

	// Allocate is fallocate(2) with its mode bits.
	Allocate(op *Op, off, size int64, mode uint32) error

	// Seek finds data or a hole (SEEK_DATA, SEEK_HOLE); ENXIO past the end.
	Seek(op *Op, off int64, whence uint32) (int64, error)

	// CopyRange copies up to n bytes to dst, an open file of the same volume.
	// It may copy fewer.
	CopyRange(op *Op, off int64, dst File, dstOff int64, n int64) (int64, error)

	Release()
}

// An Unpassed is a File that needs to know that PassWrite was not used: the kernel has no
// passthrough, or the inode is already open through the page cache. Unpassed is called before
// the program has the file.
type Unpassed interface{ Unpassed() }

// A Dir is an open directory stream. The front calls its methods one at a time.
type Dir interface {
	// Seek moves to a cookie; 0 is the beginning, where the directory is read
	// anew.
	Seek(cookie uint64) error

	// Next returns the next entry, "." and ".." included. ok is false at the
	// end.
	Next(op *Op) (e DirEntry, ok bool, err error)

	Fsync(op *Op, dataOnly bool) error
	Release()
}

// Further abilities of a volume, each optional.

// A Binder is a volume that reports changes which did not come through the mount. Bind is
// called once, before the first request.
type Binder interface{ Bind(n Notifier) }

// A Describer answers the user.wsmount.* attributes (provider, revision, state, version, etag,
// reason) of an inode. ok is false for a name it does not have.
type Describer interface {
	Describe(op *Op, ino Ino, what string) (value string, ok bool)
}

// A Pather names an inode by a path from the volume's root, without a leading
// slash, for events and messages. ok is false for an inode without a name.
type Pather interface {
	Path(ino Ino) (path string, ok bool)
}

// A Closer is a volume with resources to release at the end: Close is called once, after the
// last request. An error says that data which was acknowledged to a program as safe, or which
// policy wanted sent, is not; Server.Wait returns it.
type Closer interface{ Close() error }

// A Shower is a volume that shows files of its own in .wsmount, beside those of Part.Control,
// which come first. Its methods are called for every access, from many goroutines.
type Shower interface {
	// Show describes a slash-separated path below .wsmount; "" is .wsmount itself. ENOENT when
	// the volume shows nothing at that path.
	Show(op *Op, path string) (Shown, error)
}

// Shown is a file, a directory or a symbolic link of a Shower. It cannot be changed.
type Shown struct {
	// Names are a directory's entries, those of directories with a slash at the end; nil for
	// all else.
	Names []string

	Mode     uint32 // permission bits; write bits are ignored
	UID, GID uint32
	Size     int64 // of a file
	Mtime    time.Time
	Target   string // of a symbolic link; "" for all else

	// Version and Lasting are for an Aside. Version is that of a file's content; "" when that
	// is made anew each time. Lasting says that the path leads to this or to nothing while the
	// volume is served.
	Version string
	Lasting bool

	// Open opens a file. Its content is closed once.
	Open func(op *Op) (ShownFile, error)
}

// ShownFile is the content of a file of a Shower, which does not change while it is open.
type ShownFile interface {
	io.ReaderAt
	io.Closer
}

// A Sided is a volume that shows entries beside its own names, for programs that look for them
// in its root (git's .git). root is the path at which its root is mounted, and covered are the
// paths in it where other volumes stand.
type Sided interface {
	Aside(root string, covered []string) Aside
}

// Aside is the tree that a Sided shows. Nothing in it can be changed, and nothing can be made
// or removed under its names.
type Aside struct {
	// Names are names in the root of the volume, each with the path in Tree that it leads to.
	// Files among them are listed in the root, directories are not.
	Names map[string]string
	Tree  Shower
}

// A Notifier takes a volume's reports. Its methods return at once; a worker tells the kernel,
// never while a request that waits for the same lock could be waiting for the volume.
type Notifier interface {
	// EntryChanged says that the kernel's belief about a name, also that it does not exist, may
	// be wrong. Not for a directory that still exists: the kernel would unmount anything that a
	// sandbox mounted below it.
	EntryChanged(dir Ino, name string)

	// EntryAppeared is EntryChanged for a name that the kernel may believe not to exist. The
	// worker calls seen right before it tells the kernel: true says that a request has looked
	// up the directory of that name by now. Then the kernel is not told, since a sandbox may
	// have mounted something on it meanwhile.
	EntryAppeared(dir Ino, name string, seen func() bool)

	// AttrChanged says that attributes may have changed, not the content.
	AttrChanged(ino Ino)

	// ContentChanged says that content and attributes may have changed.
	ContentChanged(ino Ino)

	// Wrote and Deleted report a change for the lifecycle bus (`write` and `delete` of AIP-37),
	// by path, whichever side made it. The volume emits both, the front neither, also for
	// changes that came through the mount: only the volume knows when content is final (the
	// last close, the end of a pull, another program's write), and which of two reports is the
	// same change. A rename is Deleted of the old path and Wrote of the new one.
	Wrote(path string)
	Deleted(path string)

	// Failed reports a failure that was found after the reply to the request which caused it,
	// or that no request caused: an upload in the background, a pull. It is logged, counted in
	// Stats.Failed and passed to Options.OnFailure, as a failed request is; err is not nil, and
	// path is "" where the failure is the whole volume's. It counts also after the unmount,
	// from Close.
	Failed(path string, err error)
}

// DiscardNotifier is the Notifier of a volume that is not served: it drops all reports.
type DiscardNotifier struct{}

var _ Notifier = DiscardNotifier{}

func (DiscardNotifier) EntryChanged(Ino, string)               {}
func (DiscardNotifier) EntryAppeared(Ino, string, func() bool) {}
func (DiscardNotifier) AttrChanged(Ino)                        {}
func (DiscardNotifier) ContentChanged(Ino)                     {}
func (DiscardNotifier) Wrote(string)                           {}
func (DiscardNotifier) Deleted(string)                         {}
func (DiscardNotifier) Failed(string, error)                   {}

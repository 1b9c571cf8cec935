package fs

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// front answers the kernel: it finds the volume that a node id belongs to, applies the rules
// common to all volumes (read-only parts, governing files, composition, handles, io modes), and
// turns results into the protocol's. Its methods are in files named after families of kernel
// operations.
type front struct {
	fuse.RawFileSystem

	tree    *tree
	handles handles
	modes   *ioModes
	stats   *stats
	notes   *notes
	log     *slog.Logger
	tell    func(Failure)
	now     func() time.Time
	nudger  atomic.Int64 // Server.Nudger; 0: none
}

// A Failure is a request that failed for a reason that a person should see, or a failure that a
// volume reported with [Notifier].Failed.
type Failure struct {
	Time  time.Time
	Part  string
	Op    string // the kernel's operation; "background" where no request is to blame
	Path  string // in the part, "/" for its root; with the name for operations on one
	Errno syscall.Errno
	Err   error
}

// An Event is a change of content for the lifecycle bus: "write" or "delete"
// (AIP-37).
type Event struct {
	Name string
	Part string
	Path string
}

// call is one request in progress: the Op that the volume gets, and the data to count the
// request and to report its failure.
type call struct {
	Op
	f     *front
	kind  opKind
	s     *slot
	ino   Ino
	name  string
	start time.Time
}

func (f *front) begin(kind opKind, cancel <-chan struct{}, h *fuse.InHeader) *call {
	c := &call{
		Op:    Op{Cancel: cancel, UID: h.Uid, GID: h.Gid, PID: h.Pid},
		f:     f,
		kind:  kind,
		start: time.Now(),
	}
	if c.s, c.ino = f.tree.at(h.NodeId); c.s == nil {
		c.s = lost
	}
	return c
}

// lost answers for node ids that were never given out, which a kernel does not send.
var lost = &slot{vol: &unavailable{reason: "unknown node"}, part: &part{}, kind: slotGap}

// end counts the request, reports a failure that a person should see, and returns the status
// for the kernel.
func (c *call) end(err error) fuse.Status {
	errno := Errno(err)
	c.f.stats.done(c.kind, errno, time.Since(c.start))
	if errno != 0 && worthTelling(errno, err) {
		c.report(errno, err)
	}
	return fuse.Status(errno)
}

func (c *call) report(errno syscall.Errno, err error) {
	level := slog.LevelWarn
	if errno == syscall.EROFS {
		level = slog.LevelDebug // counted, and a program may try a thousand times
	}
	c.f.failed(Failure{Time: c.f.now(), Part: c.s.part.Name, Op: c.kind.String(),
		Path: c.path(), Errno: errno, Err: err}, level, "request failed")
}

// failed logs a failure and passes it to Options.OnFailure.
func (f *front) failed(fl Failure, level slog.Level, what string) {
	f.log.Log(context.Background(), level, what, "part", fl.Part, "op", fl.Op,
		"path", fl.Path, "errno", fl.Errno.Error(), "err", fl.Err)
	if f.tell != nil {
		f.tell(fl)
	}
}

// path names the subject of the request, as far as the volume can tell.
func (c *call) path() string {
	p := ""
	if pr, ok := c.s.vol.(Pather); ok && c.ino != RootIno {
		p, _ = pr.Path(c.ino)
	}
	switch {
	case c.name == "" && c.ino == RootIno:
		return "/"
	case c.name == "":
		return p
	case p == "":
		return c.name
	}
	return p + "/" + c.name
}

// panicked contains a panic of a handler: the caller gets EIO, the mount lives
// on, and the log has the stack.
func (f *front) panicked(v any) fuse.Status {
	f.stats.panics.Add(1)
	f.log.Error("panic in a request", "panic", v, "stack", string(debug.Stack()))
	if f.tell != nil {
		f.tell(Failure{Time: f.now(), Op: "panic", Errno: syscall.EIO, Err: &reasonError{syscall.EIO, "internal error, see the log"}})
	}
	return fuse.EIO
}

func (f *front) String() string { return "wsmount" }

// attr fills the kernel's attributes from a volume's. The slot's number in the
// high bits of st_ino keeps files of two volumes apart for programs that
// compare inode numbers.
func (s *slot) attr(a *Attr, out *fuse.Attr) {
	out.Ino = s.node(a.Ino & MaxIno)
	out.Size = a.Size
	out.Blocks = a.Blocks
	out.Atime, out.Atimensec = stamp(a.Atime)
	out.Mtime, out.Mtimensec = stamp(a.Mtime)
	out.Ctime, out.Ctimensec = stamp(a.Ctime)
	out.Mode = a.Mode
	out.Nlink = a.Nlink
	out.Uid, out.Gid = a.UID, a.GID
	out.Rdev = a.Rdev
	out.Blksize = a.Blksize
}

// stamp splits a time as the protocol does: seconds since 1970, which may be
// negative, and nanoseconds. The zero time is the epoch.
func stamp(t time.Time) (uint64, uint32) {
	if t.IsZero() {
		return 0, 0
	}
	return uint64(t.Unix()), uint32(t.Nanosecond())
}

func (s *slot) attrOut(a *Attr, out *fuse.AttrOut) {
	s.attr(a, &out.Attr)
	out.SetTimeout(a.TTL)
}

// entryOut fills the answer to a lookup or a create; an Entry without an inode makes a negative
// answer.
func (s *slot) entryOut(e *Entry, out *fuse.EntryOut) {
	out.SetEntryTimeout(e.TTL)
	if e.Ino == 0 {
		return
	}
	out.NodeId = s.node(e.Ino)
	s.attr(&e.Attr, &out.Attr)
	out.SetAttrTimeout(e.Attr.TTL)
}

package direct

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// Options change how a directory is served. The zero value is valid.
type Options struct {
	Log *slog.Logger // nil is silent

	// Watch reports changes made by others to the kernel, so that it can believe names and
	// attributes for long. Without it they are believed for a second.
	Watch bool

	// Root, when set, is the directory to serve; the path is then only a name for messages. It
	// is opened a second time, and stays the caller's.
	Root *os.File

	// Dev and Ino, when Ino is not 0, must be the stat(2) numbers of the directory: it was
	// checked under its path, which may lead to another directory now.
	Dev, Ino uint64

	// Now is the clock; nil is time.Now.
	Now func() time.Time

	// NoPassthrough keeps the kernel from reading and writing by itself.
	NoPassthrough bool

	// Provider is the value of user.wsmount.provider; "local" when empty.
	Provider string

	tune tuning
}

// tuning has the settings that tests change.
type tuning struct {
	ring    int // directory descriptors; 0 is a share of RLIMIT_NOFILE
	files   int // as if RLIMIT_NOFILE were that; 0 is the real limit
	noBirth bool

	remote      string         // as if the root lay on that kind of file system
	refuseWatch func(int) bool // with so many watches, as if the kernel gave no more
	loseEvents  func() bool    // true loses a batch of events, as an overflow does
	quiet       time.Duration  // instead of the constant quiet; 0 is that constant
	looked      func(key)      // is called between the stat of a name and its entry in the table
}

// A Volume serves one local directory. See the package comment.
type Volume struct {
	log      *slog.Logger
	now      func() time.Time
	provider string
	root     *handle
	place    string // path of the root at first, as the kernel names it
	pass     bool   // the kernel may be offered descriptors
	ids      creds
	others   otherMounts
	files    atomic.Int64
	requests atomic.Uint32 // for names and opens, so that the walk can give way

	disk   disk        // identifies files
	fds    descriptors // counts them
	tab    table       // the inodes
	res    resolver    // reaches an inode
	opener opener      // opens a file
	hot    hot         // names that others keep replacing
	leases leases      // whether a mapping is left
	setID  setIDs      // set-id bits and passthrough
	tell   teller      // the kernel and the bus
	watch  *watch      // nil without
}

var (
	_ wsfs.Volume    = (*Volume)(nil)
	_ wsfs.Binder    = (*Volume)(nil)
	_ wsfs.Pather    = (*Volume)(nil)
	_ wsfs.Closer    = (*Volume)(nil)
	_ wsfs.Describer = (*Volume)(nil)
)

// Open makes a volume of the directory at root. The process's umask becomes 0, because requests
// carry their own and a thread has none of its own.
func Open(ctx context.Context, root string, o Options) (*Volume, error) {
	v, err := open(root, o)
	if err != nil {
		return nil, fmt.Errorf("direct: open %q: %w", root, err)
	}
	if err := ctx.Err(); err != nil {
		v.root.drop()
		return nil, err
	}
	if o.Watch {
		v.startWatch(o.tune)
	}
	return v, nil
}

func open(root string, o Options) (*Volume, error) {
	if err := hasProc(); err != nil {
		return nil, fmt.Errorf("/proc is needed: %w", err)
	}
	fd, err := openRoot(root, o.Root)
	if err != nil {
		return nil, err
	}
	v := newVolume(o)
	v.root = v.fds.handle(fd, false)
	if err := v.adoptRoot(o); err != nil {
		v.root.drop()
		return nil, err
	}
	v.place = v.whereRoot()
	v.ids = readCreds()
	v.pass = !o.NoPassthrough && v.ids.admin
	syscall.Umask(0)
	return v, nil
}

// newVolume connects the parts of a volume.
func newVolume(o Options) *Volume {
	v := &Volume{log: o.Log, now: o.Now, provider: o.Provider}
	if v.log == nil {
		v.log = slog.New(slog.DiscardHandler)
	}
	if v.now == nil {
		v.now = time.Now
	}
	if v.provider == "" {
		v.provider = "local"
	}
	if v.fds.limit = o.tune.files; v.fds.limit == 0 {
		v.fds.limit = fileLimit()
	}
	ringCap := o.tune.ring
	if ringCap == 0 {
		ringCap = ringSize(v.fds.limit)
	}
	v.disk.noBirth = o.tune.noBirth
	v.tab.init()
	v.tell.tab = &v.tab
	v.hot.tab, v.hot.now = &v.tab, v.now
	v.res = resolver{tab: &v.tab, disk: &v.disk, fds: &v.fds, ring: ring{tab: &v.tab, fds: &v.fds, cap: ringCap}}
	v.opener = opener{res: &v.res, hot: &v.hot, tell: &v.tell}
	v.leases = leases{open: &v.opener, log: v.log}
	v.setID = setIDs{tab: &v.tab, res: &v.res, log: v.log, now: v.now}
	return v
}

func openRoot(path string, f *os.File) (int, error) {
	if f == nil {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	// A second open, not a dup: the caller keeps its own position in the directory.
	return openAt(int(f.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

// adoptRoot checks the root and gives it its number, for the lifetime of the volume.
func (v *Volume) adoptRoot(o Options) error {
	var st stat
	if err := statAt(v.root.fd, "", &st); err != nil {
		return err
	}
	v.disk.dev, v.disk.mount = unix.Mkdev(st.Dev_major, st.Dev_minor), st.Mnt_id
	if o.Ino != 0 && (o.Ino != st.Ino || o.Dev != v.disk.dev) {
		return fmt.Errorf("another directory lies there now: %w", syscall.ESTALE)
	}
	v.tab.root(v.disk.identOf(v.root.fd, "", &st), v.root.hold())
	return nil
}

// Bind takes the notifier. The volume reports nothing before, and then first that watches have
// failed, if they have.
func (v *Volume) Bind(n wsfs.Notifier) {
	v.tell.bind(n)
	if v.watch == nil {
		return
	}
	if err := v.watch.in.Failure(); err != nil {
		n.Failed("", err)
	}
}

// Close releases all descriptors. No request may be running, and none may follow.
func (v *Volume) Close() error {
	v.tell.note.Store(nil)
	if v.watch != nil {
		v.watch.close()
	}
	v.tab.each(func(_ wsfs.Ino, n *inode) {
		if n.ext == nil {
			return
		}
		n.ext.pin.drop()
		n.ext.dir.drop()
		n.ext.pin, n.ext.dir = nil, nil
	})
	v.root.drop()
	return nil
}

// Status is the state of a volume.
type Status struct {
	Watch       string // "off", "on", "partial" or "exhausted"
	WatchWhy    string // for partial, exhausted, and off although wanted
	Watched     int    // directories
	Overflows   int64  // times that the kernel lost events and the whole tree was read anew
	Inodes      int    // known to the kernel or watched
	OpenFiles   int
	Descriptors int
	Refused     int64    // lookups that led to another mount
	OtherMounts []string // the first paths of those lookups
	Moved       string   // present path of the root, when it has changed
}

// whereRoot is the present path of the root directory. The kernel knows it without asking the
// disk.
func (v *Volume) whereRoot() string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", v.root.fd))
	return path
}

// Root is a path that leads this process to the served directory until Close, even when its own
// path leads elsewhere.
func (v *Volume) Root() string { return procPath(v.root.fd) }

// Status may be called at any time.
func (v *Volume) Status() Status {
	st := Status{
		Watch:       "off",
		Inodes:      v.tab.count(),
		OpenFiles:   int(v.files.Load()),
		Descriptors: int(v.fds.open.Load()),
	}
	st.Refused, st.OtherMounts = v.others.known()
	if v.fds.open.Load() > 0 { // the root is the last to be closed
		if now := v.whereRoot(); now != v.place {
			st.Moved = now
		}
	}
	if v.watch != nil {
		v.watch.status(&st)
	}
	return st
}

package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// A Server is a mounted tree.
type Server struct {
	front      *front
	fuse       *fuse.Server
	mountpoint string
	devMinor   uint32
	privileged bool
	served     chan struct{} // closed when the last request has been answered
	closed     error         // of the volumes' Close; written before served is closed
}

const (
	// maxWrite is the largest read or write request: as many pages as the
	// kernel sends at once.
	maxWrite = 1 << 20

	// maxBackground is how many asynchronous requests (read-ahead, direct
	// I/O) the kernel keeps under way.
	maxBackground = 128

	// readAhead is how far the kernel reads ahead of a sequential reader, in KiB; its own
	// default of 128 leaves each request an eighth of maxWrite.
	readAhead = 1024
)

// Serve mounts the tree of parts at a directory and serves it in the background. When it
// returns the tree can be used. The parts' volumes belong to the Server from then on: they are
// closed after the last request.
func Serve(mountpoint string, parts []Part, o Options) (*Server, error) {
	o.setDefaults()
	t, err := newTree(parts, o.ControlName, mountpoint)
	if err != nil {
		return nil, err
	}
	mountpoint, err = filepath.Abs(mountpoint)
	if err != nil {
		return nil, err
	}
	f := newFront(t, &o)
	s := &Server{front: f, mountpoint: mountpoint, privileged: os.Geteuid() == 0, served: make(chan struct{})}
	if err = s.connect(mountpoint, &o); err != nil {
		return nil, fmt.Errorf("fs: mount %s: %w", mountpoint, err)
	}
	f.start(s.fuse, s.privileged && !o.NoPassthrough)
	// The kernel holds requests until the loop takes them, so there is no need to wait for it.
	// The library's WaitMount would open a file of the mount from within this process; killed
	// in that moment, the process would wait for itself to flush it, and the mount would hang
	// for ever.
	go s.serve()
	s.devMinor = mountMinor(mountpoint)
	s.raiseReadAhead()
	return s, nil
}

// connect mounts. The library opens the connection to the kernel so that programs started by
// this process inherit it: such a program would keep the mount when this process is killed, and
// programs that use the mount would wait for ever instead of getting an error.
func (s *Server) connect(mountpoint string, o *Options) (err error) {
	if s.privileged { // else a helper has to be forked; the descriptor it returns is not inherited
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
	}
	if s.fuse, err = fuse.NewServer(s.front, mountpoint, s.mountOptions(o)); err != nil {
		return err
	}
	for _, fd := range connections() {
		unix.CloseOnExec(fd)
	}
	return nil
}

// connections are this process's descriptors of the kernel's FUSE device.
func connections() (fds []int) {
	const dir = "/proc/self/fd"
	names, _ := os.ReadDir(dir)
	for _, name := range names {
		if to, _ := os.Readlink(filepath.Join(dir, name.Name())); to == "/dev/fuse" {
			fd, _ := strconv.Atoi(name.Name())
			fds = append(fds, fd)
		}
	}
	return fds
}

func newFront(t *tree, o *Options) *front {
	st := &stats{}
	f := &front{RawFileSystem: fuse.NewDefaultRawFileSystem(), tree: t, stats: st,
		modes: newIOModes(o.Log), notes: newNotes(st, o.OnEvent),
		log: o.Log, tell: o.OnFailure, now: o.Now}
	f.modes.notify = func(node uint64) { f.notes.add(note{kind: noteContent, node: node}) }
	for _, s := range t.slots {
		if b, ok := s.vol.(Binder); ok && s.kind == slotVolume {
			b.Bind(&slotNotifier{s: s, n: f.notes, f: f})
		}
	}
	for _, s := range t.slots {
		if s.kind == slotVolume && s.part.places != nil {
			f.bindGoverning(&Op{}, s)
		}
	}
	return f
}

func (f *front) start(srv *fuse.Server, passthrough bool) {
	f.modes.mapped = srv.KernelSettings().Flags64()&fuse.CAP_DIRECT_IO_ALLOW_MMAP != 0
	why := "needs privilege (CAP_SYS_ADMIN)"
	switch {
	case !passthrough:
		f.modes.disabled.Store(&why)
	case srv.KernelSettings().Flags64()&fuse.CAP_PASSTHROUGH == 0:
		why = "this kernel has no FUSE passthrough (6.9 and later have it)"
		f.modes.disabled.Store(&why)
	default:
		f.modes.backing = srv
	}
	go f.notes.run(srv)
}

var _ io.Writer = (*slogWriter)(nil)

func (s *Server) serve() {
	s.fuse.Serve()
	s.finish()
}

// finish releases all handles, volumes and the notifier, after the last request.
func (s *Server) finish() {
	s.front.notes.close()
	for _, h := range s.front.handles.all() {
		if h.file != nil {
			h.file.Release()
		} else {
			h.dir.dir.Release()
		}
	}
	s.closed = s.front.closeVolumes()
	s.front.notes.end()
	close(s.served)
}

// closeVolumes closes every volume, whether or not another one fails.
func (f *front) closeVolumes() error {
	var errs []error
	for _, p := range f.tree.parts {
		c, ok := p.vol.(Closer)
		if !ok {
			continue
		}
		if err := c.Close(); err != nil {
			f.log.Error("closing a volume", "part", p.Name, "err", err)
			errs = append(errs, fmt.Errorf("%s: %w", p.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Wait returns when the tree has been unmounted, by us or another, and its volumes are closed.
// The error joins those of the volumes' Close: data that the volumes hold is not safe, or not
// where policy wanted it. It may be called any number of times, from many goroutines.
func (s *Server) Wait() error {
	<-s.served
	return s.closed
}

// Unmount removes the mount. It fails with EBUSY while a program uses it.
func (s *Server) Unmount() error {
	err := unix.EBUSY
	if s.privileged {
		err = errnoOf(unix.Unmount(s.mountpoint, unix.UMOUNT_NOFOLLOW))
	} else if out, uerr := exec.CommandContext(context.Background(), "fusermount3", "-u", s.mountpoint).CombinedOutput(); uerr == nil {
		err = 0
	} else if !strings.Contains(string(out), "busy") {
		return fmt.Errorf("fs: unmount %s: %s", s.mountpoint, strings.TrimSpace(string(out)))
	}
	if err != 0 {
		return fmt.Errorf("fs: unmount %s: %w", s.mountpoint, err)
	}
	s.front.notes.close()
	return nil
}

func errnoOf(err error) syscall.Errno {
	var e syscall.Errno
	errors.As(err, &e)
	return e
}

// Abort cuts the mount off: every program in it gets ENOTCONN. It is the last resort when a
// mount does not answer.
func (s *Server) Abort() error {
	return os.WriteFile(fmt.Sprintf("/sys/fs/fuse/connections/%d/abort", s.devMinor), []byte("1"), 0)
}

// Device is the device number of the mount, as in /proc/self/mountinfo; "" when it is unknown.
func (s *Server) Device() string {
	if s.devMinor == 0 {
		return ""
	}
	return fmt.Sprintf("0:%d", s.devMinor)
}

// Told returns when the kernel knows of all changes that volumes have reported so far, or when
// ctx ends: the kernel may delay a notification for as long as a request takes. It must not be
// called by handlers of requests.
func (s *Server) Told(ctx context.Context) { s.front.notes.wait(ctx) }

// Nudger names the process, 0 for none, that sets the time of files of this mount only to make
// the kernel notify programs that watch them: such a request changes nothing. FUSE has no
// notification for that. A request that did change the time would race with the writer of the
// file's next version.
func (s *Server) Nudger(pid int) { s.front.nudger.Store(int64(pid)) }

// Stats reports what the mount has done so far.
func (s *Server) Stats() Stats { return s.front.stats.snapshot(s.front.tree.parts) }

// Restrict limits the access of programs to a part from now on. Files that a program has open
// for writing are not reached where the kernel reads and writes local files by itself: a mount
// that is to be restricted needs Options.NoPassthrough.
func (s *Server) Restrict(name string, a Access) {
	for _, p := range s.front.tree.parts {
		if p.Name == name {
			p.access.Store(&a)
		}
	}
}

// Passthrough reports whether the kernel reads and writes local files without
// the daemon, and if not, why.
func (s *Server) Passthrough() (bool, string) {
	if why := s.front.modes.disabled.Load(); why != nil {
		return false, *why
	}
	return true, ""
}

// OpenFile is an open inode, for status.
type OpenFile struct {
	Part, Path     string
	Mode           string // passthrough or cached
	Opens, Writers int
}

// OpenFiles lists up to max open inodes and returns how many there are.
func (s *Server) OpenFiles(max int) (files []OpenFile, total int) {
	seen := make(map[uint64]bool)
	for _, h := range s.front.handles.all() {
		node := h.s.node(h.ino)
		if h.file == nil || seen[node] {
			continue
		}
		seen[node] = true
		if len(files) >= max {
			continue
		}
		mode, opens, writers := s.front.modes.state(node)
		of := OpenFile{Part: h.s.part.Name, Mode: mode.String(), Opens: opens, Writers: writers}
		if p, ok := h.s.vol.(Pather); ok {
			of.Path, _ = p.Path(h.ino)
		}
		files = append(files, of)
	}
	return files, len(seen)
}

// mountMinor finds the device number of our mount; 0 when it is not there. It takes the
// kernel's cached attributes (AT_STATX_DONT_SYNC): a request to this process itself could wait
// for ever.
func mountMinor(mountpoint string) uint32 {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, mountpoint, unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, 0, &st) != nil {
		return 0
	}
	return st.Dev_minor
}

// raiseReadAhead lets the kernel read ahead as much as one request can hold.
// Only root may; others keep the default.
func (s *Server) raiseReadAhead() {
	path := fmt.Sprintf("/sys/class/bdi/0:%d/read_ahead_kb", s.devMinor)
	if err := os.WriteFile(path, []byte(strconv.Itoa(readAhead)), 0); err != nil && s.privileged {
		s.front.log.Debug("read-ahead stays as it is", "err", err)
	}
}

package direct

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// A watch learns of changes by others from inotify(7): from the system calls,
// because fsnotify adds watches by path, where a directory may have been swapped
// for a link, and does not pass on which events were lost. Linux has nothing
// else for this that an unprivileged daemon may use.
//
// Each directory has its own watch. One that the kernel looks into gets it
// before the first answer that is good for long; a walk in the background sees
// to the others, because every change is also an event for the lifecycle bus.
//
// Lock order: judging, mu, shard.
type watch struct {
	v    *Volume
	fd   int
	bell bell // wakes the reader
	tune tuning

	// remote names a file system whose changes by other machines inotify does
	// not see: there is no watch then.
	remote string

	// behind says that events were lost and not everything is read anew yet:
	// nothing is to be believed for long.
	behind    atomic.Bool
	overflows atomic.Int64

	mu        sync.Mutex // guards what follows, up to the next blank line
	dirs      map[int32]wsfs.Ino
	own       map[key]ownName
	change    uint64    // the number of the last own change that began
	forgotten uint64    // of the last one of a name that is in own no more
	batch     uint64    // number of the last batch that the reader began
	why       string    // the last failure to add a watch
	retryAt   time.Time // when to try again after it
	retry     time.Duration
	tasks     []task
	walking   bool
	closed    bool
	purgedAt  time.Time

	lastRequests uint32 // of the walker alone

	judging judging
	ending  chan struct{} // closed when the watch ends
	wake    chan struct{} // for the walker; has room for one
	done    sync.WaitGroup
}

// A key is a name in a directory.
type key struct {
	dir  wsfs.Ino
	name string
}

// watchMask leaves out IN_OPEN, IN_ACCESS and IN_CLOSE_NOWRITE: reading tells
// nobody anything.
const watchMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// retryWatch is how long no watch is tried after one was refused, and
// maxRetryWatch when it is refused again and again: each success makes for a
// walk through the whole tree.
const (
	retryWatch    = 10 * time.Second
	maxRetryWatch = 10 * time.Minute
)

func (v *Volume) startWatch(t tuning) {
	w := &watch{v: v, tune: t, fd: -1, dirs: map[int32]wsfs.Ino{}, own: map[key]ownName{},
		wake: make(chan struct{}, 1), ending: make(chan struct{})}
	w.judging.init()
	v.watch = w
	if w.remote = remoteKind(v.root.fd); w.remote != "" {
		v.log.Warn("no watch: other machines may change the files unseen", "filesystem", w.remote)
		w.closed = true
		return
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		w.fail(err)
		w.closed = true
		return
	}
	w.fd = fd
	if w.bell, err = newBell(); err != nil {
		unix.Close(fd)
		w.fail(err)
		w.closed = true
		return
	}
	v.fds.open.Add(2)
	w.add(wsfs.RootIno, v.root)
	w.walk(task{dir: wsfs.RootIno})
	w.done.Add(2)
	go w.read()
	go w.walker()
}

// remoteKind names the kind of file system that fd lies on if other machines may
// change it.
func remoteKind(fd int) string {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return ""
	}
	return remoteKinds[uint32(st.Type)]
}

var remoteKinds = map[uint32]string{
	unix.NFS_SUPER_MAGIC:   "NFS",
	unix.SMB_SUPER_MAGIC:   "SMB",
	unix.CIFS_SUPER_MAGIC:  "SMB",
	unix.SMB2_SUPER_MAGIC:  "SMB",
	unix.FUSE_SUPER_MAGIC:  "FUSE",
	unix.V9FS_MAGIC:        "9P",
	unix.CEPH_SUPER_MAGIC:  "Ceph",
	unix.AFS_SUPER_MAGIC:   "AFS",
	unix.AFS_FS_MAGIC:      "AFS",
	unix.CODA_SUPER_MAGIC:  "Coda",
	unix.OCFS2_SUPER_MAGIC: "OCFS2",
	0x01161970:             "GFS2",
	0x0bd00bd0:             "Lustre",
}

func (w *watch) close() {
	w.mu.Lock()
	running := !w.closed
	w.closed = true
	w.mu.Unlock()
	if !running {
		return
	}
	close(w.ending)
	close(w.wake)
	w.bell.ring()
	w.done.Wait()
	unix.Close(w.fd)
	w.bell.close()
	w.v.fds.open.Add(-2)
}

// add puts a watch on a directory. false: it has none, and nothing about its
// names may be believed for long.
func (w *watch) add(dir wsfs.Ino, h *handle) bool {
	wd, ok := w.addWatch(dir, h)
	if !ok {
		return false
	}
	if !w.watches(dir, wd) {
		w.remove(wd)
		return false
	}
	return true
}

// watches notes that a directory has a watch, unless it was removed, and is only held.
func (w *watch) watches(dir wsfs.Ino, wd int32) bool {
	n, ok := w.v.tab.lock(dir)
	if !ok {
		return false
	}
	defer n.unlock()
	if n.name == "" && dir != wsfs.RootIno {
		return false
	}
	n.more().wd = wd
	n.flags |= flagWatched
	return true
}

// current says that no event is missing: what is watched may be believed.
func (w *watch) current() bool { return w != nil && !w.behind.Load() }

func (w *watch) addWatch(dir wsfs.Ino, h *handle) (int32, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.why != "" && w.v.now().Before(w.retryAt) {
		return 0, false
	}
	var wd int
	var err error = unix.ENOSPC
	if w.tune.maxWatches == 0 || len(w.dirs) < w.tune.maxWatches {
		wd, err = unix.InotifyAddWatch(w.fd, h.procPath(), watchMask)
	}
	if err != nil {
		w.fail(err)
		return 0, false
	}
	if w.why != "" {
		w.why = ""
		w.enqueue(task{dir: wsfs.RootIno})
	}
	w.dirs[int32(wd)] = dir
	return int32(wd), true
}

// fail notes that a watch was refused. mu is held, or nobody else is there yet.
func (w *watch) fail(err error) {
	news := w.why == ""
	w.why = err.Error()
	switch {
	case errors.Is(err, unix.ENOSPC):
		w.why = "fs.inotify.max_user_watches is used up"
	case errors.Is(err, unix.EMFILE):
		w.why = "fs.inotify.max_user_instances or the limit of open files is used up"
	}
	w.retry = min(max(2*w.retry, retryWatch), maxRetryWatch)
	w.retryAt = w.v.now().Add(w.retry)
	if n := w.v.tell.notifier(); news && n != nil {
		n.Failed("", w.failure())
	}
}

// failure is why directories are without a watch; nil: none is. mu is held, or nobody
// else is there yet.
func (w *watch) failure() error {
	if w.why == "" {
		return nil
	}
	return fmt.Errorf("directories are without a watch, and changes by others may show a second late: %s", w.why)
}

func (w *watch) remove(wd int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.dirs, wd)
	if !w.closed {
		unix.InotifyRmWatch(w.fd, uint32(wd))
	}
}

// lost is told of a watch that the kernel removed, with its directory.
func (w *watch) lost(wd int32) {
	w.mu.Lock()
	dir, ok := w.dirs[wd]
	delete(w.dirs, wd)
	w.mu.Unlock()
	if !ok {
		return
	}
	n, ok := w.v.tab.lock(dir)
	if !ok {
		return
	}
	if n.ext == nil || n.ext.wd != wd || dir == wsfs.RootIno {
		n.unlock()
		return
	}
	n.unwatch()
	n.trim()
	n.settle()
}

func (w *watch) dirOf(wd int32) (wsfs.Ino, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	dir, ok := w.dirs[wd]
	return dir, ok
}

func (w *watch) status(st *Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	st.Watched = len(w.dirs)
	st.Overflows = w.overflows.Load()
	switch {
	case w.remote != "":
		st.Watch, st.WatchWhy = "off", "inotify does not see what other machines do on "+w.remote
	case w.why != "":
		st.Watch, st.WatchWhy = "exhausted", w.why
	case w.behind.Load():
		st.Watch, st.WatchWhy = "partial", "events were lost; reading everything anew"
	case w.walking || len(w.tasks) > 0:
		st.Watch, st.WatchWhy = "partial", "still walking the tree"
	default:
		st.Watch = "on"
	}
}

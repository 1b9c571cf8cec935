package inotify

import (
	"sync"
	"sync/atomic"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
)

// A Key is a name in a directory. "" is the directory itself.
type Key struct {
	Dir  wsfs.Ino
	Name string
}

// A Batch sums up the events of a few milliseconds.
type Batch struct {
	Number   uint64 // from 1 on
	Reports  []Report
	Gone     []Watch // that the kernel removed, with their directories
	Overflow bool    // events were lost; the tree is walked with Rescan after this
}

// A Report has the events of a name, as bits of inotify(7).
type Report struct {
	Key
	Mask uint32
}

// A Watch is the kernel's watch of a directory.
type Watch struct {
	WD  int32
	Dir wsfs.Ino
}

const (
	// Found marks a name that was met by reading a new directory, and Rescan one that
	// is looked at because events were lost. inotify does not use these bits.
	Found  = 1 << 16
	Rescan = 1 << 17
)

// A User receives the reports. One goroutine calls Handle, another Enter, Visit, Leave, Walked
// and Requests; Failed is called by New and by any goroutine that calls Add.
type User interface {
	// Handle takes a batch, perhaps an empty one, and returns the time after which it must be
	// called again even without an event; negative: never.
	Handle(b *Batch) time.Duration

	// Enter returns the directory at a name, or 0, and Visit the directories in a directory,
	// each to be kept until Leave. A visit adds the watch, and with a mask it looks at every
	// name as if a report with that mask had come.
	Enter(k Key) wsfs.Ino
	Visit(dir wsfs.Ino, mask uint32) []wsfs.Ino
	Leave(dir wsfs.Ino)

	// Walked is called when the tree was walked with Rescan. The user must look at the names
	// that it knows and the walk did not meet.
	Walked()

	// Requests counts the requests that the walk gives way to.
	Requests() uint32

	// Failed is called with the reason why directories are without a watch.
	Failed(err error)
}

// Options of a Watcher.
type Options struct {
	Root    int      // a descriptor of the root
	RootDir wsfs.Ino // its number; the user keeps it
	Now     func() time.Time

	Remote string         // as if the root lay on that kind of file system
	Refuse func(int) bool // with so many watches, as if the kernel gave no more; may be nil
	Lose   func() bool    // true drops the bytes read, as an overflow does; may be nil
}

// A Watcher watches the directories of one tree.
type Watcher struct {
	user      User
	on        bool
	remote    string // the kind of file system, if that is why it is off
	root      wsfs.Ino
	dirs      dirs
	queue     queue
	walks     walks
	overflows atomic.Int64
	done      sync.WaitGroup
}

// New makes a watcher. Where nothing can be watched it is off, and Status has the reason.
func New(user User, o Options) *Watcher {
	w := &Watcher{user: user, root: o.RootDir, remote: o.Remote, queue: queue{lose: o.Lose}}
	w.dirs = dirs{now: o.Now, refuse: o.Refuse, failed: user.Failed, by: map[int32]wsfs.Ino{}, closed: true}
	w.walks.init()
	if w.remote == "" {
		w.remote = remoteKind(o.Root)
	}
	if w.remote != "" {
		return w
	}
	if err := w.queue.open(); err != nil {
		w.dirs.fail(err)
		return w
	}
	w.on = true
	w.dirs.open(w.queue.fd)
	w.walks.open()
	return w
}

// Start starts the goroutines that call the user, and the walk of the tree.
func (w *Watcher) Start() {
	if !w.on {
		return
	}
	w.Walk(Key{Dir: w.root}, 0)
	w.done.Add(2)
	go w.read()
	go w.walk()
}

// Descriptors is the number of descriptors that it has open until Close.
func (w *Watcher) Descriptors() int64 {
	if !w.on {
		return 0
	}
	return 2
}

// Close ends the watch. The user is called no more.
func (w *Watcher) Close() {
	if !w.dirs.close() {
		return
	}
	w.walks.close()
	w.queue.bell.ring()
	w.done.Wait()
	w.queue.close()
}

// Closed reports whether Close was called, or nothing is watched. A long walk ends then.
func (w *Watcher) Closed() bool { return w.dirs.isClosed() }

// Add puts a watch on a directory, by a path that leads to it even if its name changes. false:
// it has none, and nothing about its names may be believed for long.
func (w *Watcher) Add(dir wsfs.Ino, path string) (Watch, bool) {
	wd, recovered, ok := w.dirs.add(dir, path)
	if recovered {
		w.Walk(Key{Dir: w.root}, 0)
	}
	return Watch{wd, dir}, ok
}

// Remove takes a watch away. No report of it follows.
func (w *Watcher) Remove(wd int32) { w.dirs.remove(wd) }

// Watches returns all watches.
func (w *Watcher) Watches() []Watch { return w.dirs.all() }

// Walk adds a job: the tree at a name.
func (w *Watcher) Walk(k Key, mask uint32) { w.walks.put(job{k, mask}) }

// Rescan has every name compared with the disk, as after lost events.
func (w *Watcher) Rescan() {
	w.overflows.Add(1)
	w.walks.rescan(w.root)
}

// Current reports whether no event is missing: watched names may be believed.
func (w *Watcher) Current() bool { return !w.walks.behind.Load() }

// Batch is the number of the last batch that began. A system call made before is reported in
// that one or in the next.
func (w *Watcher) Batch() uint64 { return w.queue.number.Load() }

// Wake makes Handle be called within a time even without an event.
func (w *Watcher) Wake(in time.Duration) { w.queue.wake(in) }

// read is the goroutine that takes events from the kernel.
func (w *Watcher) read() {
	defer w.done.Done()
	for !w.Closed() {
		b := w.queue.next(&w.dirs)
		if again := w.user.Handle(b); again >= 0 {
			w.queue.alarm.set(again)
		}
		if b.Overflow {
			w.Rescan()
		}
	}
}

// Failure is the reason why directories are without a watch; nil: all have one.
func (w *Watcher) Failure() error { return w.dirs.failure() }

// Status is the state of a watcher.
type Status struct {
	State     string // "off", "on", "partial" or "exhausted"
	Why       string // for all but "on"
	Watched   int    // directories
	Overflows int64
}

// Status may be called at any time.
func (w *Watcher) Status() Status {
	watched, why := w.dirs.status()
	st := Status{Watched: watched, Overflows: w.overflows.Load()}
	switch {
	case w.remote != "":
		st.State, st.Why = "off", "inotify does not see what other machines do on "+w.remote
	case why != "":
		st.State, st.Why = "exhausted", why
	case !w.Current():
		st.State, st.Why = "partial", "events were lost; reading everything anew"
	case w.walks.busy():
		st.State, st.Why = "partial", "still walking the tree"
	default:
		st.State = "on"
	}
	return st
}

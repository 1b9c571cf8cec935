package inotify

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// A job is a tree to walk, named by its top.
type job struct {
	Key
	mask uint32
}

// walks are the jobs of the walk.
type walks struct {
	// behind says that events were lost and not every name was compared yet.
	behind atomic.Bool

	mu      sync.Mutex // guards jobs, walking and closed
	jobs    []job
	walking bool
	closed  bool
	ready   chan struct{} // has room for one
	ending  chan struct{} // closed when the watch ends
	seen    uint32        // requests when the walk last gave way; of the walk alone
}

func (w *walks) init() {
	w.closed = true
	w.ready, w.ending = make(chan struct{}, 1), make(chan struct{})
}

func (w *walks) open() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = false
}

func (w *walks) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	close(w.ending)
	close(w.ready)
}

func (w *walks) put(j job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || slices.Contains(w.jobs, j) {
		return
	}
	w.jobs = append(w.jobs, j)
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// rescan begins the time in which nothing is believed for long.
func (w *walks) rescan(root wsfs.Ino) {
	w.behind.Store(true)
	w.put(job{Key{Dir: root}, Rescan})
}

// rescanned ends it, unless events were lost again meanwhile.
func (w *walks) rescanned() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.ContainsFunc(w.jobs, func(j job) bool { return j.mask&Rescan != 0 }) {
		w.behind.Store(false)
	}
}

func (w *walks) take() (job, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.walking = len(w.jobs) > 0 && !w.closed
	if !w.walking {
		return job{}, false
	}
	j := w.jobs[0]
	w.jobs = w.jobs[1:]
	return j, true
}

func (w *walks) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.walking || len(w.jobs) > 0
}

// breather is how long the walk through the tree pauses before each directory while requests
// are under way: none of them waits for it, because a directory that the kernel looks into gets
// its watch at once.
const breather = 10 * time.Millisecond

// giveWay pauses if there were requests since the last time.
func (w *walks) giveWay(requests uint32) {
	if requests == w.seen {
		return
	}
	w.seen = requests
	select {
	case <-w.ending:
	case <-time.After(breather):
	}
}

// walk is the goroutine that walks. It has a thread of its own, so that it can have a lower
// priority than the requests; the thread ends with it.
func (w *Watcher) walk() {
	defer w.done.Done()
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 10)
	for range w.walks.ready {
		for j, ok := w.walks.take(); ok; j, ok = w.walks.take() {
			w.do(j)
		}
		w.dirs.walked()
	}
}

func (w *Watcher) do(j job) {
	top := w.user.Enter(j.Key)
	if top == 0 {
		return
	}
	stack := []wsfs.Ino{top}
	for len(stack) > 0 {
		dir := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if j.mask == 0 {
			w.walks.giveWay(w.user.Requests())
		}
		if !w.Closed() {
			stack = append(stack, w.user.Visit(dir, j.mask)...)
		}
		w.user.Leave(dir)
	}
	if j.mask&Rescan != 0 {
		w.user.Walked()
		w.walks.rescanned()
	}
}

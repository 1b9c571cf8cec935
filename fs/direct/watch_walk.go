package direct

import (
	"runtime"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// A task is a tree to walk: to watch its directories, and, with a mask, to judge
// every name in it as if an event with that mask had come.
type task struct {
	dir  wsfs.Ino
	name string // "" for dir itself
	mask uint32
}

// walk hands a task to the walker.
func (w *watch) walk(t task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enqueue(t)
}

// enqueue is walk with mu held.
func (w *watch) enqueue(t task) {
	if w.closed {
		return
	}
	for _, other := range w.tasks {
		if other == t {
			return
		}
	}
	w.tasks = append(w.tasks, t)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watch) nextTask() (task, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.walking = len(w.tasks) > 0 && !w.closed
	if !w.walking {
		if w.why == "" {
			w.retry = 0
		}
		return task{}, false
	}
	t := w.tasks[0]
	w.tasks = w.tasks[1:]
	return t, true
}

func (w *watch) stopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// walker is the goroutine that walks. It has a thread of its own, so that it can
// be less urgent than the requests; the thread ends with it.
func (w *watch) walker() {
	defer w.done.Done()
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 10)
	for range w.wake {
		for t, ok := w.nextTask(); ok; t, ok = w.nextTask() {
			w.do(t)
		}
	}
}

func (w *watch) do(t task) {
	top := t.dir
	if t.name == "" {
		w.v.tab.begin(top)
	} else if top = w.know(t.dir, t.name); top == 0 {
		return
	}
	stack := []wsfs.Ino{top}
	for len(stack) > 0 {
		dir := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if t.mask == 0 {
			w.giveWay()
		}
		if !w.stopped() {
			stack = append(stack, w.visit(dir, t.mask)...)
		}
		w.v.tab.notBusy(dir)
	}
	if t.mask&maskRescan != 0 {
		w.checkKnown()
		w.caughtUp()
	}
}

// breather is how long the walk through the tree pauses before each directory
// while requests are under way: nothing waits for it, because a directory that
// the kernel looks into gets its watch at once.
const breather = 10 * time.Millisecond

// giveWay pauses if there were requests since the last time.
func (w *watch) giveWay() {
	n := w.v.requests.Load()
	if n == w.lastRequests {
		return
	}
	w.lastRequests = n
	select {
	case <-w.ending:
	case <-time.After(breather):
	}
}

// visit watches one directory, judges its names and returns its directories,
// held.
func (w *watch) visit(dir wsfs.Ino, mask uint32) (sub []wsfs.Ino) {
	h, watched, err := w.v.res.holdDir(dir)
	if err != nil {
		return nil
	}
	defer h.drop()
	if !watched && !w.add(dir, h) && mask == 0 {
		return nil // without a watch nothing is gained
	}
	d, err := openStream(h, unix.O_NOATIME) // our reading is nobody's
	if err != nil {
		return nil
	}
	defer d.Release()
	w.listed(dir)
	for {
		e, ok, err := d.Next(nil)
		if !ok || err != nil {
			return sub
		}
		if e.Name == "." || e.Name == ".." {
			continue
		}
		if mask != 0 {
			w.found(key{dir, e.Name}, mask)
		}
		if e.Mode == unix.S_IFDIR {
			if ino := w.know(dir, e.Name); ino != 0 {
				sub = append(sub, ino)
			}
		}
	}
}

func (w *watch) listed(dir wsfs.Ino) {
	n, ok := w.v.tab.lock(dir)
	if !ok {
		return
	}
	defer n.unlock()
	if n.flags&flagWatched != 0 {
		n.flags |= flagListed
	}
}

// found judges a name that the walk met. A directory that is met in a new one
// is walked with it.
func (w *watch) found(k key, mask uint32) {
	w.judging.mu.Lock()
	defer w.judging.mu.Unlock()
	now := w.v.now()
	w.judge(k, mask, 0, now)
	if j := &w.judging; len(j.retries)+len(j.written)+len(j.orphans) > 0 && j.armed.IsZero() {
		if w.arm(j.due(now), now) {
			w.bell.ring()
		}
	}
}

// know enters a directory that perhaps only the watch knows, and keeps it until
// notBusy; 0 when there is none.
func (w *watch) know(dir wsfs.Ino, name string) wsfs.Ino {
	v := w.v
	h, _, err := v.res.holdDir(dir)
	if err != nil {
		return 0
	}
	defer h.drop()
	var st stat
	if statAt(h.fd, name, &st) != nil || v.disk.crosses(&st) || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return 0
	}
	n, made := v.tab.intern(v.disk.identOf(h.fd, name, &st))
	n.typ = unix.S_IFDIR
	n.more().busy++
	if made || n.name == "" {
		n.setName(dir, name)
		n.observe(&st, true)
	}
	n.unlock()
	return n.ino
}

// checkKnown judges the names that the kernel knows and the walk did not meet.
func (w *watch) checkKnown() {
	var keys []key
	w.v.tab.each(func(_ wsfs.Ino, n *inode) {
		if n.name != "" {
			keys = append(keys, key{n.parent, n.name})
		}
	})
	for _, k := range keys {
		if w.stopped() {
			return
		}
		w.found(k, maskRescan)
	}
}

// caughtUp ends the time in which nothing is believed for long, unless events
// were lost again meanwhile.
func (w *watch) caughtUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.tasks {
		if t.mask&maskRescan != 0 {
			return
		}
	}
	w.behind.Store(false)
}

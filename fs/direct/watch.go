package direct

import (
	"cmp"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/direct/internal/inotify"
)

// A watch keeps the kernel's beliefs up to date with changes that others make below the root.
// The mechanism is in package inotify; a watch compares the disk with the table for each
// report, and tells the kernel.
//
// Lock order: judging, own changes, shard.
type watch struct {
	v       *Volume
	in      *inotify.Watcher
	own     *inotify.Own[ident]
	looked  func(key) // of tests, see tuning
	quiet   time.Duration
	judging judging
}

var _ inotify.User = (*watch)(nil)

// A key is a name in a directory.
type key = inotify.Key

func (v *Volume) startWatch(t tuning) {
	w := &watch{v: v, looked: t.looked, quiet: cmp.Or(t.quiet, quiet)}
	w.judging.init()
	w.in = inotify.New(w, inotify.Options{Root: v.root.fd, RootDir: wsfs.RootIno, Now: v.now,
		Remote: t.remote, Refuse: t.refuseWatch, Lose: t.loseEvents})
	w.own = inotify.NewOwn[ident](w.in.Batch, v.now)
	v.watch = w
	v.fds.open.Add(w.in.Descriptors())
	if st := w.in.Status(); st.State == "off" {
		v.log.Warn("no watch: other machines may change the files unseen", "why", st.Why)
		return
	}
	w.add(wsfs.RootIno, v.root)
	w.in.Start()
}

func (w *watch) close() {
	w.in.Close()
	w.v.fds.open.Add(-w.in.Descriptors())
}

// current reports whether no event is missing: watched names may be believed.
func (w *watch) current() bool { return w != nil && w.in.Current() }

// add puts a watch on a directory. false: it has none, and nothing about its names may be
// believed for long.
func (w *watch) add(dir wsfs.Ino, h *handle) bool {
	at, ok := w.in.Add(dir, h.procPath())
	if ok && !w.watches(at) {
		w.in.Remove(at.WD)
		return false
	}
	return ok
}

// watches records a directory's watch, unless the directory was removed and is only open.
func (w *watch) watches(at inotify.Watch) bool {
	n, ok := w.v.tab.lock(at.Dir)
	if !ok {
		return false
	}
	defer n.unlock()
	if n.name == "" && at.Dir != wsfs.RootIno {
		return false
	}
	n.more().wd = at.WD
	n.flags |= flagWatched
	return true
}

// lost notes that a directory has no watch any more.
func (w *watch) lost(at inotify.Watch) {
	n, ok := w.v.tab.lock(at.Dir)
	if !ok {
		return
	}
	if n.ext == nil || n.ext.wd != at.WD || at.Dir == wsfs.RootIno {
		n.unlock()
		return
	}
	n.unwatch()
	n.trim()
	n.settle()
}

// Failed reports why directories are without a watch.
func (w *watch) Failed(err error) {
	if n := w.v.tell.notifier(); n != nil {
		n.Failed("", err)
	}
}

// Requests counts the requests that the walk gives way to.
func (w *watch) Requests() uint32 { return w.v.requests.Load() }

func (w *watch) status(st *Status) {
	in := w.in.Status()
	st.Watch, st.WatchWhy, st.Watched, st.Overflows = in.State, in.Why, in.Watched, in.Overflows
}

// An ownChange is a change of a name by a request. Until its end, reports of the name are put
// off.
type ownChange struct {
	w       *watch // nil where the name is not watched
	key     key
	changed bool  // it succeeded
	made    ident // the file that it gave the name, if any
	gone    bool  // it left the name without a file
}

// ownBegin notes that a request is about to change a name.
func (v *Volume) ownBegin(watched bool, dir wsfs.Ino, name string) ownChange {
	c := ownChange{key: key{Dir: dir, Name: name}}
	if v.watch != nil && watched {
		c.w = v.watch
		c.w.own.Begin(c.key)
	}
	return c
}

// end notes that the change is over and entered in the table.
func (c *ownChange) end() {
	switch {
	case c.w == nil:
	case c.changed:
		c.w.own.End(c.key, c.made, c.gone)
	default:
		c.w.own.Fail(c.key)
	}
}

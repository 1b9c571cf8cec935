package direct

import (
	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/direct/internal/inotify"
	"golang.org/x/sys/unix"
)

// Visit watches one directory, judges its names and returns its directories, each kept until
// Leave.
func (w *watch) Visit(dir wsfs.Ino, mask uint32) (sub []wsfs.Ino) {
	h, watched, err := w.v.res.holdDir(dir)
	if err != nil {
		return nil
	}
	defer h.drop()
	if !watched && !w.add(dir, h) && mask == 0 {
		return nil // without a watch nothing is gained
	}
	d, err := openStream(h, unix.O_NOATIME) // our reading must not change the access time
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
			w.found(key{Dir: dir, Name: e.Name}, mask)
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

// found judges a name that the walk met. A directory that is met in a new one is walked with
// it.
func (w *watch) found(k key, mask uint32) {
	j := w.judge()
	defer j.done()
	j.report(inotify.Report{Key: k, Mask: mask}, 0)
	if j.armed {
		return
	}
	if again := j.due(); again >= 0 {
		j.armed = true
		w.in.Wake(again)
	}
}

// Enter returns the directory at a name, and keeps it until Leave.
func (w *watch) Enter(k key) wsfs.Ino {
	if k.Name != "" {
		return w.know(k.Dir, k.Name)
	}
	w.v.tab.begin(k.Dir)
	return k.Dir
}

// Leave releases a directory that Enter or Visit kept.
func (w *watch) Leave(dir wsfs.Ino) { w.v.tab.notBusy(dir) }

// know enters a directory that perhaps only the watch knows, and keeps it until Leave; 0 when
// there is none.
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

// Walked judges the names that the kernel knows and the walk did not meet.
func (w *watch) Walked() {
	var keys []key
	w.v.tab.each(func(_ wsfs.Ino, n *inode) {
		if n.name != "" {
			keys = append(keys, key{Dir: n.parent, Name: n.name})
		}
	})
	for _, k := range keys {
		if w.in.Closed() {
			return
		}
		w.found(k, inotify.Rescan)
	}
}

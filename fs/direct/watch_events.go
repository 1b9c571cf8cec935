package direct

import (
	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// wrote makes one `write` event for each change by others: when the writer has closed the file,
// or left it alone for a while. A directory is not written.
func (j judge) wrote(s *seen) {
	sig := signature(&s.st)
	if s.st.Mode&unix.S_IFMT == unix.S_IFDIR && s.mask&unix.IN_MOVED_TO == 0 || s.own.Said == sig {
		return
	}
	if s.mask&(unix.IN_CLOSE_WRITE|unix.IN_MOVED_TO) != 0 {
		delete(j.written, s.key)
		j.say(s.key, sig)
		return
	}
	j.written[s.key] = pendingWrite{sig, j.now.Add(j.quiet)}
}

func (w *watch) say(k key, sig uint64) {
	w.own.Say(k, sig)
	w.v.tell.wrote(k.Dir, k.Name)
}

// settleDue handles pending writes and orphans that have waited long enough.
func (j judge) settleDue() {
	for k, p := range j.written {
		if !p.due.After(j.now) {
			delete(j.written, k)
			j.say(k, p.sig)
		}
	}
	left := false
	for ino, at := range j.orphans {
		if j.now.Sub(at) >= orphanFor {
			delete(j.orphans, ino)
			left = true
		}
	}
	if left {
		j.unwatchLeft()
	}
}

// unwatchLeft gives up directories that are no longer in the tree: changes in them must not be
// reported.
func (w *watch) unwatchLeft() {
	for _, at := range w.in.Watches() {
		if _, ok := w.v.tab.path(at.Dir); !ok {
			w.in.Remove(at.WD)
			w.abandon(at.Dir)
			w.lost(at)
		}
	}
}

// abandon gives up the descriptor of a directory that is outside the tree now, so that a
// process that works in it does not see its changes. A removed directory keeps it, as long as
// the kernel knows it.
func (w *watch) abandon(dir wsfs.Ino) {
	n, ok := w.v.tab.lock(dir)
	if !ok {
		return
	}
	h := n.dropDir()
	n.unlock()
	h.drop()
}

// dropDir returns the descriptor of a directory that is to be closed, if any.
func (n *inode) dropDir() *handle {
	if n.ext == nil {
		return nil
	}
	h := n.ext.dir
	n.ext.dir = nil
	var st stat
	if h != nil && n.ext.pin == nil && statAt(h.fd, "", &st) == nil && st.Nlink == 0 {
		n.ext.pin, h = h, nil
	}
	n.trim()
	return h
}

package direct

import (
	wsfs "github.com/wsmount/wsmount/fs"
)

// entryChanged tells the kernel that a name changed, and with it the directory, if the kernel
// knows the directory.
func (w *watch) entryChanged(k key) {
	w.tellEntry(k, func(n wsfs.Notifier) { n.EntryChanged(k.Dir, k.Name) })
}

// entryAppeared is entryChanged for a name that the kernel did not know. Between the
// report and the notification a sandbox may look the directory up and mount something
// on it, which the notification would unmount.
func (w *watch) entryAppeared(k key, id ident) {
	w.tellEntry(k, func(n wsfs.Notifier) {
		n.EntryAppeared(k.Dir, k.Name, func() bool {
			n, ok := w.v.tab.find(id)
			if !ok {
				return false
			}
			defer n.unlock()
			return n.refs > 0 && n.directory() && n.parent == k.Dir && n.name == k.Name
		})
	})
}

func (w *watch) tellEntry(k key, tell func(wsfs.Notifier)) {
	note := w.v.tell.notifier()
	if note == nil {
		return
	}
	if w.v.tab.referenced(k.Dir) {
		tell(note)
		note.AttrChanged(k.Dir)
	}
}

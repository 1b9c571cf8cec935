package direct

import (
	"sync/atomic"

	wsfs "github.com/wsmount/wsmount/fs"
)

// A teller passes reports to the kernel and the lifecycle bus. Before bind it drops them.
type teller struct {
	note atomic.Pointer[wsfs.Notifier]
	tab  *table
}

func (t *teller) bind(n wsfs.Notifier) { t.note.Store(&n) }

func (t *teller) notifier() wsfs.Notifier {
	if n := t.note.Load(); n != nil {
		return *n
	}
	return nil
}

func (t *teller) attr(ino wsfs.Ino) {
	if n := t.notifier(); n != nil {
		n.AttrChanged(ino)
	}
}

func (t *teller) content(ino wsfs.Ino) {
	if n := t.notifier(); n != nil {
		n.ContentChanged(ino)
	}
}

func (t *teller) wrote(dir wsfs.Ino, name string) {
	if n := t.notifier(); n != nil {
		if path, ok := t.tab.pathOf(dir, name); ok {
			n.Wrote(path)
		}
	}
}

func (t *teller) wroteIno(ino wsfs.Ino) {
	if n := t.notifier(); n != nil {
		if path, ok := t.tab.path(ino); ok {
			n.Wrote(path)
		}
	}
}

func (t *teller) deleted(dir wsfs.Ino, name string) {
	if n := t.notifier(); n != nil {
		if path, ok := t.tab.pathOf(dir, name); ok {
			n.Deleted(path)
		}
	}
}

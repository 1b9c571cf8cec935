package direct

import (
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
)

// begin and end bracket a change of an inode by ourselves. Between them no
// difference is taken for someone else's, and end notes what the change left.
func (t *table) begin(ino wsfs.Ino) {
	if n, ok := t.lock(ino); ok {
		n.more().busy++
		n.unlock()
	}
}

// end returns the attributes after the change. fd is a descriptor of the inode,
// O_PATH at least, or -1 when it cannot be looked at any more.
func (t *table) end(ino wsfs.Ino, fd int, st *stat) error {
	n, ok := t.lock(ino)
	var err error = syscall.ESTALE
	if fd >= 0 {
		err = statAt(fd, "", st)
	}
	if !ok {
		return err
	}
	if err == nil {
		n.observe(st, true)
	}
	n.endBusy()
	return err
}

// beginMove is begin for what is known to lie at a name that a rename takes from it,
// and returns its number. 0 is no harm: nothing is known that could be taken for
// changed by others, or it is known by another of its names.
func (t *table) beginMove(dir wsfs.Ino, name string) wsfs.Ino {
	ino := t.named(dir, name, 0)
	if ino == 0 {
		return 0
	}
	n, ok := t.lock(ino)
	if !ok {
		return 0
	}
	defer n.unlock()
	e := n.more()
	e.busy++
	if e.moves++; e.moves == 1 {
		e.moved = make(chan struct{})
	}
	return ino
}

// endMove ends what beginMove began, if anything, when the table has the new name.
func (t *table) endMove(ino wsfs.Ino) {
	if ino == 0 {
		return
	}
	n, ok := t.lock(ino)
	if !ok {
		return
	}
	if n.ext.moves--; n.ext.moves == 0 {
		close(n.ext.moved)
		n.ext.moved = nil
	}
	n.endBusy()
}

// notBusy ends what begin began, without a look.
func (t *table) notBusy(ino wsfs.Ino) {
	if n, ok := t.lock(ino); ok {
		n.endBusy()
	}
}

func (l locked) endBusy() {
	l.ext.busy--
	l.overtakes()
	l.trim()
	l.settle()
}

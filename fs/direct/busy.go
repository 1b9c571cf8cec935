package direct

import (
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
)

// begin and end bracket a change of an inode by ourselves. Between them no difference counts as
// another process's change, and end records the state that the change left.
func (t *table) begin(ino wsfs.Ino) {
	if n, ok := t.lock(ino); ok {
		n.more().busy++
		n.unlock()
	}
}

// end returns the attributes after the change. fd is a descriptor of the inode, O_PATH at
// least, or -1 when the inode cannot be reached any more.
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

// beginMove is begin for the inode recorded under a name that a rename takes from it, and
// returns its number. 0 does no harm: nothing is recorded that could count as changed by
// others, or the inode is recorded under another of its names.
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

// endMove ends the move that beginMove began, if any, once the table has the new name.
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

// notBusy ends a change that begin began, without a stat.
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

package direct

import (
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

const renameFlags = unix.RENAME_NOREPLACE | unix.RENAME_EXCHANGE | unix.RENAME_WHITEOUT

// Rename moves a name, also that of a directory with its whole tree in one step.
func (v *Volume) Rename(_ *wsfs.Op, dir wsfs.Ino, name string, newDir wsfs.Ino, newName string, flags uint32) error {
	if flags&^uint32(renameFlags) != 0 {
		return syscall.EINVAL
	}
	if err := checkName(name); err != nil {
		return err
	}
	if err := checkName(newName); err != nil {
		return err
	}
	from, watched, err := v.res.holdDir(dir)
	if err != nil {
		return err
	}
	defer from.drop()
	to, newWatched, err := v.holdWatched(newDir)
	if err != nil {
		return err
	}
	defer to.drop()
	r := move{v: v, from: from, to: to, dir: dir, newDir: newDir, name: name, newName: newName,
		watched: watched, newWatched: newWatched, flags: flags}
	return r.run()
}

// A move is one rename in progress.
type move struct {
	v                   *Volume
	from, to            *handle
	dir, newDir         wsfs.Ino
	name, newName       string
	watched, newWatched bool
	flags               uint32
}

func (r *move) exchange() bool { return r.flags&unix.RENAME_EXCHANGE != 0 }

func (r *move) run() error {
	v := r.v
	ownFrom := v.ownBegin(r.watched, r.dir, r.name)
	ownTo := v.ownBegin(r.newWatched, r.newDir, r.newName)
	src := v.tab.beginMove(r.dir, r.name)
	var over pinned
	if r.exchange() {
		over.ino = v.tab.beginMove(r.newDir, r.newName)
	} else if r.flags&unix.RENAME_NOREPLACE == 0 {
		over = v.pin(r.to, r.newDir, r.newName)
	}
	same := r.same(&over)
	err := unix.Renameat2(r.from.fd, r.name, r.to.fd, r.newName, uint(r.flags))
	moved := err == nil && !same
	if !r.exchange() {
		over.done(moved)
	}
	ownTo.made, ownFrom.made = r.settle(src, over.ino, moved)
	ownFrom.gone = r.flags&(unix.RENAME_EXCHANGE|unix.RENAME_WHITEOUT) == 0
	ownFrom.changed, ownTo.changed = moved, moved
	ownTo.end()
	ownFrom.end()
	if moved {
		r.tell()
	}
	return err
}

// same reports whether both names are links of one file: nothing moves then.
func (r *move) same(over *pinned) bool {
	if over.links < 2 {
		return false
	}
	var a, b stat
	return statAt(r.from.fd, r.name, &a) == nil && statAt(r.to.fd, r.newName, &b) == nil &&
		r.v.disk.identOf(r.from.fd, r.name, &a) == r.v.disk.identOf(r.to.fd, r.newName, &b)
}

// settle notes under which names the files are now: by a stat, since another process may have
// changed either meanwhile. It returns their identities.
func (r *move) settle(src, over wsfs.Ino, moved bool) (to, back ident) {
	if moved {
		to = r.renamed(r.to, r.newDir, r.newName, src)
		if r.exchange() {
			back = r.renamed(r.from, r.dir, r.name, over)
		}
	}
	r.v.tab.endMove(src)
	if r.exchange() {
		r.v.tab.endMove(over)
	}
	return to, back
}

func (r *move) renamed(h *handle, dir wsfs.Ino, name string, ino wsfs.Ino) ident {
	var st stat
	if statAt(h.fd, name, &st) != nil {
		return ident{}
	}
	id := r.v.disk.identOf(h.fd, name, &st)
	n, ok := r.v.tab.find(id)
	switch {
	case !ok && ino != 0:
		return ident{}
	case !ok:
		return id
	}
	defer n.unlock()
	if ino != 0 && n.ino != ino {
		return ident{}
	}
	n.setName(dir, name)
	n.observe(&st, true)
	return id
}

// tell reports the move to the lifecycle bus.
func (r *move) tell() {
	if r.exchange() {
		r.v.tell.wrote(r.dir, r.name)
	} else {
		r.v.tell.deleted(r.dir, r.name)
	}
	r.v.tell.wrote(r.newDir, r.newName)
}

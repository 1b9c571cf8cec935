package direct

import (
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// Unlink removes a name of a file.
func (v *Volume) Unlink(_ *wsfs.Op, dir wsfs.Ino, name string) error {
	return v.remove(dir, name, 0)
}

// Rmdir removes an empty directory.
func (v *Volume) Rmdir(_ *wsfs.Op, dir wsfs.Ino, name string) error {
	return v.remove(dir, name, unix.AT_REMOVEDIR)
}

func (v *Volume) remove(dir wsfs.Ino, name string, flags int) error {
	if err := checkName(name); err != nil {
		return err
	}
	h, watched, err := v.res.holdDir(dir)
	if err != nil {
		return err
	}
	defer h.drop()
	own := v.ownBegin(watched, dir, name)
	p := v.pin(h, dir, name)
	err = unix.Unlinkat(h.fd, name, flags)
	p.done(err == nil)
	own.changed, own.gone = err == nil, true
	own.end()
	if err == nil {
		v.tell.deleted(dir, name)
	}
	return err
}

// A pinned is an inode that is about to lose a name: it gets a descriptor first, so that a
// process that has it open, or works in it, can still access it.
type pinned struct {
	v     *Volume
	ino   wsfs.Ino // 0 when the file is not in the table
	dir   wsfs.Ino
	name  string
	h     *handle
	links uint32 // before the loss
}

// pin prepares for the loss of a name. If no descriptor can be opened the name is removed all
// the same, since removing must be possible, and later requests are answered with ESTALE.
func (v *Volume) pin(dir *handle, parent wsfs.Ino, name string) pinned {
	p := pinned{v: v, dir: parent, name: name}
	var st stat
	h, err := openPath(dir, name, &st)
	switch {
	case err == syscall.ENOENT:
		return p
	case err != nil:
		v.log.Debug("no descriptor for a file that loses its name", "name", name, "err", err)
		err = statAt(dir.fd, name, &st)
	}
	if err != nil || v.disk.crosses(&st) {
		h.drop()
		return p
	}
	n, ok := v.tab.find(v.disk.identOf(dir.fd, name, &st))
	if !ok {
		h.drop()
		return p
	}
	p.ino, p.links, p.h = n.ino, st.Nlink, h
	if h != nil {
		h.quick.Store(st.Blocks <= quickBlocks && (n.ext == nil || n.ext.files == nil))
	}
	e := n.more()
	e.busy++
	e.leaving++
	switch {
	case e.files != nil: // its descriptor will do, and needs no /proc to be read
		p.h = e.files.h.hold()
	case e.pin == nil && h != nil:
		e.pin = h.hold()
	}
	n.unlock()
	if p.h != h {
		h.drop()
	}
	return p
}

// openPath opens the file at a name, of any type, and stats it.
func openPath(dir *handle, name string, st *stat) (*handle, error) {
	fd, err := openAt(dir.fd, name, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	if err := statAt(fd, "", st); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return dir.of.handle(fd, true), nil
}

// done ends the removal; gone says whether the name is gone.
func (p *pinned) done(gone bool) {
	if p.ino == 0 {
		return
	}
	v := p.v
	// Another link remains: its reader must not count the change as another process's.
	var st stat
	linked := gone && p.links > 1 && p.h != nil && statAt(p.h.fd, "", &st) == nil
	n, _ := v.tab.lock(p.ino) // busy keeps it
	e := n.ext
	e.busy--
	e.leaving--
	switch {
	case linked && e.busy == 0:
		n.observe(&st, true)
	case gone && !linked:
		n.told = 0
	}
	n.overtakes()
	var wd int32
	if gone && n.loseName(p.dir, p.name) {
		if e.pin == nil && e.files == nil && p.h != nil {
			e.pin = p.h.hold()
		}
		wd = n.unwatch() // it would outlive the directory for as long as we hold the directory
	}
	var pin *handle
	if n.name != "" && e.leaving == 0 && n.flags&flagHot == 0 {
		pin, e.pin = e.pin, nil
	}
	n.trim()
	n.settle()
	if wd != 0 {
		v.watch.in.Remove(wd)
	}
	pin.drop()
	p.h.dropLater()
}

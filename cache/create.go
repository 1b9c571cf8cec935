package cache

import (
	"syscall"

	"github.com/wsmount/wsmount/fs"
)

// Create implements fs.Volume. The new file reaches the backend with its first
// close, empty or not.
func (v *Volume) Create(op *fs.Op, dir fs.Ino, name string, flags, mode uint32) (fs.Entry, fs.Opened, error) {
	e, f, err := v.create(op, dir, name, flags, mode)
	if err != nil {
		return fs.Entry{}, fs.Opened{}, err
	}
	if f != nil {
		return e, v.opened(f), nil
	}
	o, err := v.Open(op, e.Ino, flags)
	if err != nil {
		v.Forget(e.Ino, 1)
		return fs.Entry{}, fs.Opened{}, err
	}
	return e, o, nil
}

// create makes a file and opens it. When the name is there already, the file
// is nil, and the entry is of what is there.
func (v *Volume) create(op *fs.Op, dir fs.Ino, name string, flags, mode uint32) (fs.Entry, *file, error) {
	parent, err := v.parent(op, dir, name)
	if err != nil {
		return fs.Entry{}, nil, err
	}
	defer v.mu.Unlock()
	if e, there := v.table.entry(dir, name); there {
		n := v.table.node(e.ino)
		switch {
		case flags&syscall.O_EXCL != 0:
			return fs.Entry{}, nil, syscall.EEXIST
		case n.isSymlink():
			return fs.Entry{}, nil, fs.ErrStale // the kernel follows it, once it knows
		}
		return v.refer(e.ino, n), nil, nil
	}
	n := v.newNode(op, parent, syscall.S_IFREG|mode&^syscall.S_IFMT)
	ino := v.table.alloc()
	c, err := v.born(ino, n)
	if err != nil {
		return fs.Entry{}, nil, err
	}
	v.enter(dir, parent, name, ino, n)
	return v.refer(ino, n), &file{v: v, c: c, flags: flags, made: true}, nil
}

// Tmpfile implements fs.Volume. Without a name nothing goes to the backend.
func (v *Volume) Tmpfile(op *fs.Op, dir fs.Ino, flags, mode uint32) (fs.Entry, fs.Opened, error) {
	e, f, err := v.tmpfile(op, dir, flags, mode)
	if err != nil {
		return fs.Entry{}, fs.Opened{}, err
	}
	return e, v.opened(f), nil
}

func (v *Volume) tmpfile(op *fs.Op, dir fs.Ino, flags, mode uint32) (fs.Entry, *file, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	parent := v.table.node(dir)
	if parent == nil || !parent.isDir() {
		return fs.Entry{}, nil, syscall.ENOTDIR
	}
	n := v.newNode(op, parent, syscall.S_IFREG|mode&^syscall.S_IFMT)
	ino := v.table.alloc()
	c, err := v.born(ino, n)
	if err != nil {
		return fs.Entry{}, nil, err
	}
	v.table.save(ino, n)
	return v.refer(ino, n), &file{v: v, c: c, flags: flags, made: true}, nil
}

// born gives a new file open content. v.mu is held.
func (v *Volume) born(ino fs.Ino, n *node) (*content, error) {
	f, err := v.store.create(ino)
	if err != nil {
		return nil, err
	}
	n.present = true
	return v.opening(ino, f), nil
}

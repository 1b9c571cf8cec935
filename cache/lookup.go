package cache

import (
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/fs"
)

// Lookup implements fs.Volume. The first one in a directory lists it.
func (v *Volume) Lookup(op *fs.Op, dir fs.Ino, name string) (fs.Entry, error) {
	if err := checkName(name); err != nil {
		return fs.Entry{}, err
	}
	if err := v.load(op, dir); err != nil {
		return fs.Entry{}, err
	}
	defer v.mu.Unlock()
	e, ok := v.table.entry(dir, name)
	if !ok {
		return fs.Entry{TTL: ttl}, nil
	}
	return v.refer(e.ino, v.table.node(e.ino)), nil
}

// checkName refuses what is not one name. The kernel does not send such names,
// but here they would lead elsewhere.
func checkName(name string) error {
	switch {
	case len(name) > providerNameMax:
		return syscall.ENAMETOOLONG
	case name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00"):
		return syscall.EINVAL
	}
	return nil
}

// refer is the kernel's entry for an inode, with a reference. v.mu is held.
func (v *Volume) refer(ino fs.Ino, n *node) fs.Entry {
	n.refs++
	v.table.save(ino, n)
	return fs.Entry{Ino: ino, Attr: v.attr(ino, n), TTL: ttl}
}

// Forget implements fs.Volume.
func (v *Volume) Forget(ino fs.Ino, count uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := v.table.node(ino); n != nil && ino != fs.RootIno {
		n.refs -= min(count, n.refs)
		v.table.save(ino, n)
		v.reap(ino)
	}
}

// parent locks v.mu and gives the directory dir, loaded, for a change of name
// in it. If there is no error the caller unlocks.
func (v *Volume) parent(op *fs.Op, dir fs.Ino, name string) (*node, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := v.load(op, dir); err != nil {
		return nil, err
	}
	n := v.table.node(dir)
	if len(n.links) == 0 && dir != fs.RootIno {
		v.mu.Unlock()
		return nil, syscall.ENOENT // it was removed while somebody is in it
	}
	return n, nil
}

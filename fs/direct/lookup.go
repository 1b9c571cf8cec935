package direct

import (
	"fmt"
	"strings"
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// Lookup finds a name: one statx, and a place in the table.
func (v *Volume) Lookup(_ *wsfs.Op, dir wsfs.Ino, name string) (wsfs.Entry, error) {
	if err := checkName(name); err != nil {
		return wsfs.Entry{}, err
	}
	v.requests.Add(1)
	h, watched, err := v.holdWatched(dir)
	if err != nil {
		return wsfs.Entry{}, err
	}
	defer h.drop()
	if v.hot.is(dir, name) {
		if e, ok := v.lookupHot(h, dir, name, watched); ok {
			return e, nil
		}
	}
	var st stat
	switch err := statAt(h.fd, name, &st); {
	case err == syscall.ENOENT:
		return wsfs.Entry{TTL: v.nameTTL(watched)}, nil
	case err != nil:
		return wsfs.Entry{}, err
	}
	return v.enterName(h, v.disk.identOf(h.fd, name, &st), dir, name, &st, watched, false)
}

// errOtherMount is the error of a lookup of a mount point below the root.
var errOtherMount = fmt.Errorf("another file system is mounted there, and is not served: %w", syscall.EACCES)

// checkName refuses a string that is not a single name. The kernel sends no such string;
// another caller of the volume must not be able to leave its root by one.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return syscall.EINVAL
	}
	if len(name) > maxName {
		return syscall.ENAMETOOLONG
	}
	return nil
}

// holdWatched is holdDir for calls whose answer depends on the watch, which it adds first.
func (v *Volume) holdWatched(dir wsfs.Ino) (*handle, bool, error) {
	h, watched, err := v.res.holdDir(dir)
	if err == nil && !watched && v.watch != nil {
		watched = v.watch.add(dir, h)
	}
	return h, watched, err
}

// enterName counts one reference to the file that statx found under a name and makes the
// answer. own says that this request made the file, or gave it the name.
func (v *Volume) enterName(h *handle, id ident, dir wsfs.Ino, name string, st *stat, watched, own bool) (wsfs.Entry, error) {
	if v.disk.crosses(st) {
		v.refuse(dir, name)
		return wsfs.Entry{}, errOtherMount
	}
	n, made := v.tab.intern(id)
	ino := n.ino
	n.refs++
	n.typ = st.Mode & unix.S_IFMT
	foreign := n.observe(st, own)
	n.showMode(st, v.now())
	var moved bool
	var pin *handle
	if own || !n.reachedOtherwise(dir, name) || v.disk.leads(h, name, id) {
		moved, pin = n.setName(dir, name), n.unpin(st)
	}
	covered := watched && v.watch.current() && (!n.directory() || n.flags&flagWatched != 0)
	probing := n.probing()
	e := wsfs.Entry{Ino: ino, Attr: v.disk.attr(st, n.attrTTL(st, covered)), TTL: v.nameTTL(watched)}
	n.unlock()
	if probing {
		v.leases.probe(ino, st)
		e.Attr = v.disk.attr(st, v.tab.attrTTL(ino, st, covered))
	}
	pin.drop()
	if moved {
		leads := func(id ident) bool { return v.disk.leads(h, name, id) }
		if lost := v.tab.displace(dir, name, ino, leads); lost != 0 && !own {
			v.tell.attr(lost) // the watch will not find it by that name
		}
	}
	if foreign && !made && !watched {
		v.tell.content(ino)
	}
	return e, nil
}

// reachedOtherwise reports whether the inode has another name, or a pin. A change of ours that
// overtook the stat of this name may have given it that: the name is recorded only if it still
// leads to the inode.
func (n *inode) reachedOtherwise(dir wsfs.Ino, name string) bool {
	return n.name != "" && (n.name != name || n.parent != dir) || n.ext != nil && n.ext.pin != nil
}

// unpin takes the pin away from an inode that has a name again.
func (n *inode) unpin(st *stat) *handle {
	if n.ext == nil || n.ext.pin == nil || st.Nlink == 0 || n.parent == 0 || n.ext.leaving > 0 {
		return nil
	}
	pin := n.ext.pin
	n.ext.pin = nil
	n.flags &^= flagHot
	n.trim()
	return pin
}

// Forget gives references back.
func (v *Volume) Forget(ino wsfs.Ino, count uint64) {
	if ino != wsfs.RootIno {
		v.tab.forget(ino, count)
	}
}

// Attr reads attributes.
func (v *Volume) Attr(_ *wsfs.Op, ino wsfs.Ino, f wsfs.File) (wsfs.Attr, error) {
	var st stat
	covered, err := v.statOf(ino, f, &st)
	if err != nil {
		return wsfs.Attr{}, err
	}
	v.setID.disarm(ino, &st)
	return v.told(ino, &st, covered, false), nil
}

// statOf is stat by the descriptor of an open file, where there is one. It returns whether a
// change by others after this moment would be reported.
func (v *Volume) statOf(ino wsfs.Ino, f wsfs.File, st *stat) (covered bool, err error) {
	current := v.watch.current()
	if fl, ok := f.(*file); ok {
		covered, err = v.tab.reported(ino), statAt(fl.h.fd, "", st)
	} else {
		covered, err = v.res.stat(ino, st)
	}
	return covered && current, err
}

// told records attributes that the kernel is about to get.
func (v *Volume) told(ino wsfs.Ino, st *stat, covered, own bool) wsfs.Attr {
	n, ok := v.tab.lock(ino)
	if !ok {
		return v.disk.attr(st, 0)
	}
	foreign := n.observe(st, own)
	n.showMode(st, v.now())
	probing := n.probing()
	ttl := n.attrTTL(st, covered)
	n.unlock()
	if probing {
		v.leases.probe(ino, st)
		return v.disk.attr(st, v.tab.attrTTL(ino, st, covered))
	}
	if foreign && !covered {
		v.tell.content(ino)
	}
	return v.disk.attr(st, ttl)
}

// Readlink returns a link's target as stored.
func (v *Volume) Readlink(_ *wsfs.Op, ino wsfs.Ino) (string, error) {
	h, err := v.res.hold(ino)
	if err != nil {
		return "", err
	}
	defer h.drop()
	var buf [unix.PathMax]byte
	n, err := unix.Readlinkat(h.fd, "", buf[:])
	if err == syscall.ENOENT {
		err = syscall.EINVAL // the errno of readlink(2) for a file that is no link
	}
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// Statfs describes the underlying disk.
func (v *Volume) Statfs(_ *wsfs.Op, _ wsfs.Ino) (wsfs.Statfs, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(v.root.fd, &st); err != nil {
		return wsfs.Statfs{}, err
	}
	return wsfs.Statfs{
		Blocks: st.Blocks, Bfree: st.Bfree, Bavail: st.Bavail,
		Files: st.Files, Ffree: st.Ffree,
		Bsize: uint32(st.Bsize), Frsize: uint32(st.Frsize),
		NameLen: uint32(st.Namelen),
	}, nil
}

// Path names an inode by a path from the root.
func (v *Volume) Path(ino wsfs.Ino) (string, bool) { return v.tab.path(ino) }

// Describe answers provider and state; a local file has no revision.
func (v *Volume) Describe(_ *wsfs.Op, _ wsfs.Ino, what string) (string, bool) {
	switch what {
	case "provider":
		return v.provider, true
	case "state":
		return "local", true
	}
	return "", false
}

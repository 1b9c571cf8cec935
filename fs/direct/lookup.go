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
	defer v.drop(h)
	if v.isHot(dir, name) {
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
	return v.enterName(v.identOf(h.fd, name, &st), dir, name, &st, watched, false)
}

// errOtherMount is what a lookup of a mount point below the root says.
var errOtherMount = fmt.Errorf("another file system is mounted there, and is not served: %w", syscall.EACCES)

// checkName refuses what is not one name. The kernel sends no such thing; a
// volume that is reached another way must not be led out of its root by it.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return syscall.EINVAL
	}
	if len(name) > maxName {
		return syscall.ENAMETOOLONG
	}
	return nil
}

// holdWatched is holdDir for calls whose answer depends on the watch, which it
// puts in place first.
func (v *Volume) holdWatched(dir wsfs.Ino) (*handle, bool, error) {
	h, watched, err := v.holdDir(dir)
	if err == nil && !watched && v.watch != nil {
		watched = v.watch.add(dir, h)
	}
	return h, watched, err
}

// enterName counts one reference to what statx found under a name and makes the
// answer. own says that the file was made, or named so, by this request.
func (v *Volume) enterName(id ident, dir wsfs.Ino, name string, st *stat, watched, own bool) (wsfs.Entry, error) {
	if v.crosses(st) {
		v.refuse(dir, name)
		return wsfs.Entry{}, errOtherMount
	}
	s, n, ino, made := v.tab.intern(id)
	n.refs++
	n.typ = st.Mode & unix.S_IFMT
	foreign := n.observe(st, own)
	n.showMode(st, v.now())
	moved := v.tab.setName(n, ino, dir, name)
	pin := n.unpin(st)
	covered := watched && !v.watch.behind.Load() && (!n.directory() || n.flags&flagWatched != 0)
	probing := n.probing()
	e := wsfs.Entry{Ino: ino, Attr: v.attr(st, n.attrTTL(st, covered)), TTL: v.nameTTL(watched)}
	s.mu.Unlock()
	if probing {
		v.probe(ino, st)
		e.Attr = v.attr(st, v.attrTTL(ino, st, covered))
	}
	v.drop(pin)
	if moved {
		if lost := v.tab.displace(dir, name, ino); lost != 0 && !own {
			v.tellAttr(lost) // the watch will not find it by that name
		}
	}
	if foreign && !made && !watched {
		v.tellContent(ino)
	}
	return e, nil
}

// unpin takes the pin of an inode that has a name again.
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

func (v *Volume) tellAttr(ino wsfs.Ino) {
	if n := v.notifier(); n != nil {
		n.AttrChanged(ino)
	}
}

func (v *Volume) tellContent(ino wsfs.Ino) {
	if n := v.notifier(); n != nil {
		n.ContentChanged(ino)
	}
}

// Forget gives references back.
func (v *Volume) Forget(ino wsfs.Ino, count uint64) {
	if ino == wsfs.RootIno {
		return
	}
	s, n := v.tab.get(ino)
	if n == nil {
		s.mu.Unlock()
		return
	}
	n.refs -= min(count, n.refs)
	v.settle(s, n, ino)
}

// settle unlocks the shard, forgetting the inode if nothing holds it.
func (v *Volume) settle(s *shard, n *inode, ino wsfs.Ino) {
	if n.held() {
		s.mu.Unlock()
		return
	}
	pin, dir := v.tab.drop(s, n, ino)
	s.mu.Unlock()
	v.dropLater(pin)
	v.drop(dir)
}

// Attr reads attributes.
func (v *Volume) Attr(_ *wsfs.Op, ino wsfs.Ino, f wsfs.File) (wsfs.Attr, error) {
	var st stat
	covered, err := v.statOf(ino, f, &st)
	if err != nil {
		return wsfs.Attr{}, err
	}
	v.disarm(ino, &st)
	return v.told(ino, &st, covered, false), nil
}

func (v *Volume) statOf(ino wsfs.Ino, f wsfs.File, st *stat) (bool, error) {
	fl, ok := f.(*file)
	if !ok {
		return v.stat(ino, st)
	}
	s, n := v.tab.get(ino)
	var parent wsfs.Ino
	if n != nil && n.name != "" {
		parent = n.parent
	}
	s.mu.Unlock()
	covered := parent != 0 && v.watched(parent)
	return covered, statAt(fl.h.fd, "", st)
}

// told notes attributes that the kernel is about to be told.
func (v *Volume) told(ino wsfs.Ino, st *stat, covered, own bool) wsfs.Attr {
	s, n := v.tab.get(ino)
	if n == nil {
		s.mu.Unlock()
		return v.attr(st, 0)
	}
	foreign := n.observe(st, own)
	n.showMode(st, v.now())
	if n.probing() {
		s.mu.Unlock()
		v.probe(ino, st)
		return v.attr(st, v.attrTTL(ino, st, covered))
	}
	ttl := n.attrTTL(st, covered)
	s.mu.Unlock()
	if foreign && !covered {
		v.tellContent(ino)
	}
	return v.attr(st, ttl)
}

// Readlink returns a link's target as stored.
func (v *Volume) Readlink(_ *wsfs.Op, ino wsfs.Ino) (string, error) {
	h, err := v.hold(ino)
	if err != nil {
		return "", err
	}
	defer v.drop(h)
	var buf [unix.PathMax]byte
	n, err := unix.Readlinkat(h.fd, "", buf[:])
	if err == syscall.ENOENT {
		err = syscall.EINVAL // what readlink(2) says of a file that is no link
	}
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// Statfs describes the disk below.
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
func (v *Volume) Path(ino wsfs.Ino) (string, bool) {
	if ino == wsfs.RootIno {
		return "", true
	}
	var names []string
	size := 0
	for ino != wsfs.RootIno {
		s, n := v.tab.get(ino)
		if n == nil || n.name == "" || len(names) > unix.PathMax {
			s.mu.Unlock()
			return "", false
		}
		names = append(names, n.name)
		size += len(n.name) + 1
		ino = n.parent
		s.mu.Unlock()
	}
	path := make([]byte, 0, size)
	for i := len(names) - 1; i >= 0; i-- {
		path = append(path, names[i]...)
		if i > 0 {
			path = append(path, '/')
		}
	}
	return string(path), true
}

func (v *Volume) pathOf(dir wsfs.Ino, name string) (string, bool) {
	p, ok := v.Path(dir)
	if ok && p != "" {
		p += "/"
	}
	return p + name, ok
}

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

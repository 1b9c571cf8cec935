package direct

import (
	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// An inode is the record of a file that the kernel (or a watch) knows. There may be millions:
// it has 80 bytes, and fields that only few of them need are in ext. Only a locked gives access
// to it.
type inode struct {
	id      uint64   // the disk's inode number
	told    uint64   // signature of the attributes last seen, see signature
	changed uint64   // value of changes at the last one of ours, see overtook
	parent  wsfs.Ino // directory in which it was last seen
	name    string   // "" when it has no name that we know
	refs    uint64   // references of the kernel
	ext     *ext
	birth   uint32 // with id, the identity: see ident
	gen     uint32 // upper part of its number
	next    uint32 // in the list of free records
	typ     uint16 // S_IFMT bits
	flags   flags
}

type flags uint16

const (
	// flagLive marks a record that is in use.
	flagLive flags = 1 << iota

	// flagStale says that others changed the content since the kernel last opened the file:
	// pages that it kept are wrong.
	flagStale

	// flagNews says that a request saw a change by others before the watch reported it. The
	// report then finds no difference, and must be passed on anyway.
	flagNews

	// flagComing says that others changed the content, and that a report of it is still to
	// come: the disk changes the times before it has the bytes, so a stat, for a request or for
	// a report of a chmod, may have been early.
	flagComing

	// flagMapped says that the kernel once could write to the file by itself. A mapping
	// outlives close and changes times without notice.
	flagMapped

	// flagWatched says that changes of the directory's names reach the watch.
	flagWatched

	// flagListed says that the directory was read after its watch was added, so that no name in
	// it was missed.
	flagListed

	// flagHot says that the inode has its pin because the name is hot, see hot.
	flagHot

	// flagProbing replaces flagMapped while leases.probe runs.
	flagProbing

	// flagUnsure says that a mapping may be left, and that the disk cannot tell.
	flagUnsure

	// flagTaken says that others gave the name to another file, and that the kernel may still
	// believe in this one: an open for writing may be meant for the other file.
	flagTaken
)

// An ext is the part of an inode that only few need at a time.
type ext struct {
	files   *file         // open files, newest first
	pin     *handle       // keeps an inode that has no name, or a hot one, reachable
	dir     *handle       // a directory's descriptor while it is in the ring
	wd      int32         // watch descriptor, 0 for none
	busy    int32         // own changes in progress
	leaving int32         // of them, those that take a name away
	moves   int32         // and those that give another name
	moved   chan struct{} // closed with the last of the moves
	pass    int32         // open files that the kernel writes to by itself
	setID   uint64        // content signature when set-id bits were set during writing, see setIDs
	unset   int64         // when bits were last cleared that the kernel may believe in
}

func (e *ext) idle() bool {
	return e.files == nil && e.pin == nil && e.dir == nil && e.wd == 0 && e.busy == 0 && e.unset == 0
}

// more returns the inode's ext, making one.
func (n *inode) more() *ext {
	if n.ext == nil {
		n.ext = new(ext)
	}
	return n.ext
}

// trim drops an ext that is empty.
func (n *inode) trim() {
	if n.ext != nil && n.ext.idle() {
		n.ext = nil
	}
}

// held reports whether the record must stay: known to the kernel, open, watched or being
// changed.
func (n *inode) held() bool {
	if n.refs > 0 {
		return true
	}
	e := n.ext
	return e != nil && (e.files != nil || e.wd != 0 || e.busy != 0)
}

func (n *inode) regular() bool   { return n.typ == unix.S_IFREG }
func (n *inode) directory() bool { return n.typ == unix.S_IFDIR }

func (n *inode) ident() ident { return ident{n.id, n.birth} }

// unwatch notes that a directory has no watch any more, and returns the previous one, or 0.
func (n *inode) unwatch() int32 {
	n.flags &^= flagWatched | flagListed
	if n.ext == nil {
		return 0
	}
	wd := n.ext.wd
	n.ext.wd = 0
	return wd
}

// observe compares a stat with the attributes last reported. It returns whether others changed
// the file; own says that a change of our own made the difference.
func (n *inode) observe(st *stat, own bool) (foreign bool) {
	sig := signature(st)
	if n.told == sig || n.overtook(st) {
		return false
	}
	foreign = !own && n.told != 0 && n.regular() && !n.changing()
	if foreign {
		n.flags |= flagStale | flagNews
		if !sameContent(n.told, sig) {
			n.flags |= flagComing
		}
	}
	n.told = sig
	return foreign
}

// overtook reports whether a change of our own may have ended after the stat was taken. The
// change recorded its result, and the older state would look like another process's change.
func (n *inode) overtook(st *stat) bool { return n.changed > st.asked }

// overtakes notes that a change of our own has ended.
func (n *inode) overtakes() { n.changed = changes.Add(1) }

// changing reports whether our own changes explain differences.
func (n *inode) changing() bool {
	return n.ext != nil && (n.ext.busy > 0 || n.ext.pass > 0)
}

// descriptor returns one that reaches the inode now, with a reference, or nil.
func (n *inode) descriptor() *handle {
	e := n.ext
	if e == nil {
		return nil
	}
	switch {
	case e.files != nil:
		return e.files.h.hold()
	case e.pin != nil:
		return e.pin.hold()
	case e.dir != nil:
		return e.dir.hold()
	}
	return nil
}

package direct

import (
	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// An inode is what is remembered of a file that the kernel (or a watch) knows.
// There may be millions: 80 bytes, and everything that few of them need is in
// ext. Only a locked gives access to it.
type inode struct {
	id      uint64   // the number that the disk gave it
	told    uint64   // signature of the attributes last seen, see signature
	changed uint64   // changes with the last one of ours, see overtook
	parent  wsfs.Ino // where it was last seen
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

	// flagStale says that others changed the content since the kernel last
	// opened the file: pages that it kept are wrong.
	flagStale

	// flagNews says that a request saw a change by others before the watch
	// reported it. The report then finds nothing new, and must speak anyway.
	flagNews

	// flagComing says that others changed the content, and that a report of
	// it is still to come: the disk moves the times before it has the bytes, so
	// a look, for a request or for a report of a chmod, may have been early.
	flagComing

	// flagMapped says that the kernel once could write to the file by itself.
	// A mapping outlives close and changes times without a word.
	flagMapped

	// flagWatched says that changes of the directory's names reach the watch.
	flagWatched

	// flagListed says that the directory was read after its watch was there, so
	// that no name in it was missed.
	flagListed

	// flagHot says that the pin is there because the name is hot, see hot.
	flagHot

	// flagProbing stands for flagMapped while it is being found out.
	flagProbing

	// flagUnsure says that a mapping may be left and cannot be found out.
	flagUnsure

	// flagTaken says that others gave the name to another file, and that the kernel may
	// believe it yet: what is opened to be written may be meant for that.
	flagTaken
)

// An ext is the part of an inode that only few need at a time.
type ext struct {
	files   *file         // open files, newest first
	pin     *handle       // keeps an inode without a name
	dir     *handle       // a directory's descriptor while it is in the ring
	wd      int32         // watch descriptor, 0 for none
	busy    int32         // own changes under way
	leaving int32         // of them, those that take a name away
	moves   int32         // and those that give another
	moved   chan struct{} // closed with the last of the moves
	pass    int32         // open files that the kernel writes to by itself
	setID   uint64        // content when set-id bits came meanwhile, see setIDs
	unset   int64         // when bits were taken last that the kernel may hold true, see setIDs.admit
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

// trim lets go of an ext that holds nothing.
func (n *inode) trim() {
	if n.ext != nil && n.ext.idle() {
		n.ext = nil
	}
}

// held says whether the record must stay: known to the kernel, open, watched
// or being changed.
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

// unwatch notes that a directory has no watch any more, and returns the one that
// it had, or 0.
func (n *inode) unwatch() int32 {
	n.flags &^= flagWatched | flagListed
	if n.ext == nil {
		return 0
	}
	wd := n.ext.wd
	n.ext.wd = 0
	return wd
}

// observe compares what stat says with what was last told. It reports whether
// others changed the file; own says that the difference is our own doing.
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

// overtook says that a change of our own may have come after what stat says. It noted
// what it left, and from that the older state would differ as others' doing does.
func (n *inode) overtook(st *stat) bool { return n.changed > st.asked }

// overtakes says that a change of our own is over.
func (n *inode) overtakes() { n.changed = changes.Add(1) }

// changing says that differences are explained by what we do ourselves.
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

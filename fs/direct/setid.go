package direct

import (
	wsfs "github.com/wsmount/wsmount/fs"
)

// The disk takes set-id bits from a file that somebody writes to who may not keep
// them, but writes that the kernel passes through are root's to the disk. A file
// that has such bits is therefore not offered for writing. Where they come while
// it is open for writing already, the next look at the attributes, or the close,
// finds the content changed and takes them away.

// arm notes that set-id bits are there while users can write to the file
// unseen. st is the file after a change of our own.
func (v *Volume) arm(ino wsfs.Ino, st *stat) {
	s, n := v.tab.get(ino)
	defer s.mu.Unlock()
	if n == nil || n.ext == nil {
		return
	}
	n.ext.setID = 0
	if privMode(uint32(st.Mode)) != 0 && n.regular() && n.ext.unseenWriter() {
		n.ext.setID = contentSignature(st)
	}
}

// unseenWriter says whether somebody who may not keep set-id bits writes without
// our hearing of it.
func (e *ext) unseenWriter() bool {
	for f := e.files; f != nil; f = f.next {
		if f.pass && !f.root {
			return true
		}
	}
	return false
}

// before is called before a change of our own, which moves times and would hide
// that others wrote.
func (v *Volume) before(ino wsfs.Ino, h *handle) error {
	s, n := v.tab.get(ino)
	armed := n != nil && n.ext != nil && n.ext.setID != 0
	s.mu.Unlock()
	if !armed {
		return nil
	}
	var st stat
	if err := statAt(h.fd, "", &st); err != nil {
		return err
	}
	v.disarm(ino, &st)
	return nil
}

// disarm takes set-id bits away that a write made void, and updates st, which is
// what was just seen of the file.
func (v *Volume) disarm(ino wsfs.Ino, st *stat) {
	s, n := v.tab.get(ino)
	if n == nil || n.ext == nil || n.ext.setID == 0 || n.ext.setID == contentSignature(st) {
		s.mu.Unlock()
		return
	}
	h := n.descriptor() // of the open file that writes
	if h == nil {
		s.mu.Unlock()
		return
	}
	n.ext.setID = 0
	n.ext.busy++
	s.mu.Unlock()
	defer v.drop(h)
	if err := killPriv(h); err != nil {
		v.log.Error("a file that was written to keeps its set-id bits", "err", err)
	}
	_ = v.end(ino, h.fd, st)
}

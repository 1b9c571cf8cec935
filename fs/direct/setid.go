package direct

import (
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// The disk takes set-id bits from a file that somebody writes to who may not keep
// them, but writes that the kernel passes through are root's to the disk, and
// whose they are is not told: they count for who opened the file. A file that has
// such bits is not offered for writing.
//
// Where the bits come while a user has the file open for writing already, refusing them
// would break programs that set modes by the descriptor they wrote with (tar, cp
// -p). They are set, and the file is armed: its content is noted before. The next
// look at the attributes, or the close of a writer, that finds the content
// changed takes them away. Nobody can run the file in between. Outside of the
// mount the disk says ETXTBSY as long as the writer is open, and our own
// descriptor is closed after the last look. Through the mount admit sees to it.

const (
	// tick is more than the disk's clock ever stands still.
	tick = 20 * time.Millisecond

	// neverSeen is no signature: any look finds the content changed.
	neverSeen = 1
)

// guardSetID comes before a change of attributes. It looks whether somebody wrote
// before the change moves the times, and arms the file before it gets bits: a
// write or a close from here on is after it.
func (v *Volume) guardSetID(op *wsfs.Op, ino wsfs.Ino, h *handle, in *wsfs.SetAttr) error {
	gives := in.Mode != nil && privMode(*in.Mode) != 0
	s, n := v.tab.get(ino)
	armed := n != nil && n.ext != nil && n.ext.setID != 0
	unseen := n != nil && n.regular() && n.ext.unseenWriter()
	s.mu.Unlock()
	if !armed && !(gives && unseen) {
		return nil
	}
	var st stat
	if err := statAt(h.fd, "", &st); err != nil {
		return err
	}
	v.disarm(ino, &st)
	if armed && setsMtime(in) && op.UID != 0 && op.UID != st.Uid {
		// Somebody who could not set the bits would hide a write by it.
		_, err := killPriv(h)
		return err
	}
	if !gives || !unseen {
		return nil
	}
	sig, err := quietMoment(h, &st)
	if err == nil {
		v.arm(ino, sig)
	}
	return err
}

// quietMoment returns the content's signature at a moment from which on every write
// moves the times: they stand still within a tick of the disk's clock. Where
// somebody writes all the time there is no such moment.
func quietMoment(h *handle, st *stat) (uint64, error) {
	for range 2 * int(tick/time.Millisecond) {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
			return 0, err
		}
		ahead := timeOf(st.Mtime).Sub(time.Unix(now.Unix()))
		if ahead < 0 || ahead > tick {
			return contentSignature(st), nil
		}
		time.Sleep(time.Millisecond)
		if err := statAt(h.fd, "", st); err != nil {
			return 0, err
		}
	}
	return neverSeen, nil
}

// unseenWriter says whether somebody who may not keep set-id bits writes without
// our hearing of it.
func (e *ext) unseenWriter() bool {
	if e == nil {
		return false
	}
	for f := e.files; f != nil; f = f.next {
		if f.pass && !f.root {
			return true
		}
	}
	return false
}

func setsMtime(in *wsfs.SetAttr) bool { return in.Mtime != nil || in.MtimeNow }

func (v *Volume) arm(ino wsfs.Ino, sig uint64) {
	s, n := v.tab.get(ino)
	defer s.mu.Unlock()
	if n != nil && n.ext.unseenWriter() {
		n.ext.setID = sig
	}
}

// rearm takes note of content or times that were set by a change of our own. st
// is the file after it.
func (v *Volume) rearm(ino wsfs.Ino, in *wsfs.SetAttr, st *stat) {
	if in.Size == nil && !setsMtime(in) {
		return
	}
	s, n := v.tab.get(ino)
	defer s.mu.Unlock()
	if n != nil && n.ext != nil && n.ext.setID != 0 {
		n.ext.setID = contentSignature(st)
	}
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
	n.ext.unset = v.now().UnixNano()
	n.ext.busy++
	s.mu.Unlock()
	defer v.drop(h)
	if _, err := killPriv(h); err != nil {
		v.log.Error("a file that was written to keeps its set-id bits", "err", err)
	}
	_ = v.end(ino, h.fd, st)
}

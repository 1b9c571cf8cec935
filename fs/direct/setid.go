package direct

import (
	"log/slog"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// setIDs clears set-id bits of files that were written to. The disk clears them at a write by a
// caller that may not keep them, but a write that the kernel passes through is root's to the
// disk, and its caller is unknown to us: it counts for the process that opened the file. A file
// that has such bits is not offered for passthrough writing.
//
// If the bits are set while a user already has the file open for writing, refusing them would
// break programs that set modes by the descriptor they wrote with (tar, cp -p). They are set,
// and the file is armed: its content signature is recorded before. The next stat, or the close
// of a writer, that finds the content changed clears them. The file cannot be run in between.
// Outside of the mount the disk answers ETXTBSY as long as the writer is open, and our own
// descriptor is closed after the last stat. Through the mount admit ensures it.

type setIDs struct {
	tab *table
	res *resolver
	log *slog.Logger
	now func() time.Time
}

const (
	// tick is longer than the disk's clock ever stands still.
	tick = 20 * time.Millisecond

	// neverSeen is no file's signature: any stat finds the content changed.
	neverSeen = 1
)

// guard runs before a change of attributes. It checks for a write before the change moves the
// times, and arms the file before it gets bits: a write or a close from this moment on is after
// it.
func (k *setIDs) guard(op *wsfs.Op, ino wsfs.Ino, h *handle, in *wsfs.SetAttr) error {
	gives := in.Mode != nil && privMode(*in.Mode) != 0
	armed, unseen := k.state(ino)
	if !armed && !(gives && unseen) {
		return nil
	}
	var st stat
	if err := statAt(h.fd, "", &st); err != nil {
		return err
	}
	k.disarm(ino, &st)
	if armed && setsMtime(in) && op.UID != 0 && op.UID != st.Uid {
		// A caller that could not set the bits would hide a write by it.
		_, err := killPriv(h)
		return err
	}
	if !gives || !unseen {
		return nil
	}
	sig, err := quietMoment(h, &st)
	if err == nil {
		k.arm(ino, sig)
	}
	return err
}

// state reports whether a file is armed, and whether it may be written to unseen.
func (k *setIDs) state(ino wsfs.Ino) (armed, unseen bool) {
	n, ok := k.tab.lock(ino)
	if !ok {
		return false, false
	}
	defer n.unlock()
	return n.ext != nil && n.ext.setID != 0, n.regular() && n.ext.unseenWriter()
}

// quietMoment returns the content's signature at a moment from which on every write changes the
// times: they stand still within a tick of the disk's clock. If a process writes all the time
// there is no such moment, and it returns neverSeen.
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

// unseenWriter reports whether a caller that may not keep set-id bits has the file open for
// writes that the kernel passes through.
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

func (k *setIDs) arm(ino wsfs.Ino, sig uint64) {
	n, ok := k.tab.lock(ino)
	if !ok {
		return
	}
	defer n.unlock()
	if n.ext.unseenWriter() {
		n.ext.setID = sig
	}
}

// rearm records content or times that a change of our own has set. st is the file after it.
func (k *setIDs) rearm(ino wsfs.Ino, in *wsfs.SetAttr, st *stat) {
	if in.Size == nil && !setsMtime(in) {
		return
	}
	n, ok := k.tab.lock(ino)
	if !ok {
		return
	}
	defer n.unlock()
	if n.ext != nil && n.ext.setID != 0 {
		n.ext.setID = contentSignature(st)
	}
}

// disarm clears set-id bits if the content has changed since the file was armed, and updates
// st, which is the latest stat of the file.
func (k *setIDs) disarm(ino wsfs.Ino, st *stat) {
	h := k.beginDisarm(ino, st)
	if h == nil {
		return
	}
	defer h.drop()
	if _, err := killPriv(h); err != nil {
		k.log.Error("a file that was written to keeps its set-id bits", "err", err)
	}
	_ = k.tab.end(ino, h.fd, st)
}

// beginDisarm begins a change that clears bits, and returns a descriptor for it; nil if there
// is nothing to clear.
func (k *setIDs) beginDisarm(ino wsfs.Ino, st *stat) *handle {
	n, ok := k.tab.lock(ino)
	if !ok {
		return nil
	}
	defer n.unlock()
	if n.ext == nil || n.ext.setID == 0 || n.ext.setID == contentSignature(st) {
		return nil
	}
	h := n.descriptor() // of the open file that writes
	if h == nil {
		return nil
	}
	n.ext.setID = 0
	n.ext.unset = k.now().UnixNano()
	n.ext.busy++
	return h
}

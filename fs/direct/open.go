package direct

import (
	"runtime"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// kept are the open(2) flags that matter to a descriptor of our own. O_DIRECT is
// not among them: the front's buffers are not aligned, and with passthrough the
// kernel opens the file again with the caller's flags.
const kept = unix.O_ACCMODE | unix.O_APPEND | unix.O_SYNC | unix.O_DSYNC | unix.O_NOATIME

func ownFlags(flags uint32) int { return int(flags) & kept }

// Open opens a file.
func (v *Volume) Open(op *wsfs.Op, ino wsfs.Ino, flags uint32) (wsfs.Opened, error) {
	trunc := flags&unix.O_TRUNC != 0
	if trunc {
		v.tab.begin(ino)
	}
	var st stat
	h, err := v.openFile(ino, ownFlags(flags), &st)
	if err != nil {
		if trunc {
			_ = v.tab.end(ino, -1, &st)
		}
		return wsfs.Opened{}, err
	}
	mode := uint32(st.Mode)
	if trunc {
		err = v.openTrunc(op, ino, h, &st)
	}
	if err != nil {
		h.drop()
		return wsfs.Opened{}, err
	}
	o := v.opened(op, ino, h, flags, &st, trunc)
	if err := v.setID.admit(ino, flags, mode); err != nil {
		o.File.Release()
		return wsfs.Opened{}, err
	}
	return o, nil
}

// openTrunc empties a file once it is known to be the right one: O_TRUNC in the flags would
// empty any file that has the name by then.
func (v *Volume) openTrunc(op *wsfs.Op, ino wsfs.Ino, h *handle, st *stat) error {
	if privMode(uint32(st.Mode)) != 0 {
		v.setID.noteUnset(ino)
	}
	err := apply(op, h, &wsfs.SetAttr{Size: new(uint64)})
	if serr := v.tab.end(ino, h.fd, st); err == nil {
		err = serr
	}
	return err
}

func (v *Volume) openFile(ino wsfs.Ino, flags int, st *stat) (*handle, error) {
	if err := v.fds.spare(v.root); err != nil {
		return nil, err
	}
	return v.opener.open(ino, flags, st)
}

// opened enters an open file. own says that this very request made its content, so that no page
// of the kernel can be wrong.
func (v *Volume) opened(op *wsfs.Op, ino wsfs.Ino, h *handle, flags uint32, st *stat, own bool) wsfs.Opened {
	f := &file{v: v, h: h, ino: ino, flags: flags, root: !mayNotKeep(op)}
	f.wrote.Store(own)
	writable := flags&unix.O_ACCMODE != unix.O_RDONLY
	pass := v.pass && st.Mode&unix.S_IFMT == unix.S_IFREG
	passWrite := pass && writable && privMode(uint32(st.Mode)) == 0 && (own || !hasCaps(h))
	n, _ := v.tab.lock(ino) // the request's own reference keeps it
	for passWrite && n.flags&flagProbing != 0 {
		// The kernel opens the file once more, and would find the lease.
		n.unlock()
		runtime.Gosched()
		n, _ = v.tab.lock(ino)
	}
	n.observe(st, own)
	keep := n.flags&flagStale == 0 && !own
	n.flags &^= flagStale
	e := n.more()
	f.next, e.files = e.files, f
	if f.next != nil {
		f.next.prev = f
	}
	if f.pass = passWrite; f.pass {
		e.pass++
		n.flags |= flagMapped
	}
	f.since = contentSignature(st)
	n.unlock()
	v.files.Add(1)
	return wsfs.Opened{
		File:      f,
		KeepCache: keep,
		Direct:    flags&unix.O_DIRECT != 0,
		Backing:   h.fd,
		PassRead:  pass,
		PassWrite: passWrite,
		NoFlush:   true,
	}
}

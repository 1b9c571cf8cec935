package ops

import (
	"errors"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// openContent opens the content of an inode, until Opener.Close.
func (v *Operations) openContent(ino table.Ino, use files.Use) (*files.OpenInode, error) {
	oi, err := v.o.Opener.Open(ino, use)
	return oi, errno.Translate(err)
}

// openTries bounds how often an open begins anew because the remote replaced the version before
// its first bytes were fetched.
const openTries = 16

// Open implements fs.Volume. The kernel looks a name up again after one [fs.ErrStale] of an
// open, and passes a second one to the program: so an inode whose content no program has seen
// is brought up to date instead.
func (v *Operations) Open(op *fs.Op, ino fs.Ino, flags uint32) (fs.Opened, error) {
	i := table.Ino(ino)
	if err := v.o.Remote.Freshen(op, i, shows(flags)); err != nil {
		return fs.Opened{}, err
	}
	for try := 1; ; try++ {
		f, outdated, err := v.openOnce(op, i, flags)
		switch {
		case err == nil:
			return v.opened(f), nil
		case !outdated || try == openTries:
			return fs.Opened{}, err
		}
	}
}

// shows reports whether an open lets a program read or append to the previous content.
func shows(flags uint32) bool {
	return flags&syscall.O_TRUNC == 0 && (flags&syscall.O_ACCMODE != syscall.O_WRONLY || flags&syscall.O_APPEND != 0)
}

// openOnce opens an inode for a program and fetches its first bytes. outdated: the inode has
// another version now, and the caller is to try again. Until then an open for writing without
// O_TRUNC counts as a reader, because no program has seen or changed a byte.
func (v *Operations) openOnce(op *fs.Op, ino table.Ino, flags uint32) (f *file, outdated bool, err error) {
	use := files.ForReading
	if writes(flags) {
		if err := v.o.Remote.FetchAttrs(op, ino, false); err != nil {
			return nil, false, err
		}
		if flags&syscall.O_TRUNC != 0 {
			use = files.ForWriting
		}
	}
	oi, err := v.openContent(ino, use)
	if err != nil {
		return nil, errors.Is(err, files.ErrOutdated), err
	}
	f = &file{v: v, oi: oi, flags: flags}
	if use == files.ForWriting {
		v.writes(oi, op)
		err = f.truncate(op, 0)
	} else {
		v.o.Prefetch.Opened(ino, oi.Content().Whole())
		err = f.begin(op)
	}
	if outdated = !v.o.Opener.MarkRead(oi); outdated && err == nil {
		err = errno.Translate(files.ErrOutdated)
	}
	if err == nil && writes(flags) && use == files.ForReading {
		use = files.ForWriting
		if err = errno.Translate(v.o.Opener.BecomeWriter(oi)); err == nil {
			v.writes(oi, op)
		}
	}
	if err != nil {
		_ = v.o.Opener.Close(oi, use == files.ForWriting)
		return nil, outdated, err
	}
	return f, false, nil
}

// writes reports whether an open can change content.
func writes(flags uint32) bool {
	return flags&syscall.O_ACCMODE != syscall.O_RDONLY || flags&syscall.O_TRUNC != 0
}

// opened sets the kernel's caching of an open file. Its cached pages are valid when the content
// is in the state of the last open, or has since been changed through those pages only. Of an
// inode that became another version while the kernel had it, the kernel may have the size of
// the one before, at which reads would end: the notification may still be on its way, or have
// arrived before the answer that it was to correct. So the kernel is to ask again, at each open
// until it forgets the inode.
func (v *Operations) opened(f *file) fs.Opened {
	oi := f.oi
	o := fs.Opened{File: f, NoFlush: !f.changes()}
	locked := v.lock()
	n := locked.Inode(oi.Ino)
	o.KeepCache = locked.KernelPages(oi.Ino) == n.ContentVersion
	locked.SetKernelPages(oi.Ino, n.ContentVersion)
	o.NewAttr = locked.HasOutdatedAttributes(oi.Ino)
	pass := !f.changes() && !n.Writing && oi.MayPass(locked.View)
	locked.unlock()
	if pass {
		if fd, ok := v.o.Opener.PassThrough(oi); ok {
			o.Backing, o.PassRead = fd, true
		}
	}
	return o
}

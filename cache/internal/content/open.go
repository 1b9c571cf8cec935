package content

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Create makes empty content for an inode, which is whole. Path is the path of its file,
// for [Store.Each]; it is written down some time after the file was released with changes.
// Content that the inode had is replaced, and Files of it live on without a name.
func (s *Store) Create(ino uint64, path string) (*File, error) {
	return s.make(func() (*File, error) {
		f := s.newFile(ino, path)
		f.whole.Store(true)
		return f, f.publish(func(l *lockedFile, n names) (err error) {
			l.wr, err = n.create()
			return err
		})
	})
}

// make makes a new file, if need be in the room of clean content, also of content that was
// in use a moment ago.
func (s *Store) make(create func() (*File, error)) (f *File, err error) {
	err = s.afterReleases(s.work.ctx, func() error {
		return s.room.whileFull(0, func() (err error) {
			f, err = create()
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("content: create %d: %w", f.ino, err)
	}
	return f, nil
}

// Sparse makes content for an inode without local blocks: size bytes of one version that
// the file's source will bring. Digest is "sha256:" or "md5:" and the hash in hex, against
// which the bytes are compared when all are local; "" and digests of other kinds are not
// compared. Content that the inode had is replaced, as by [Store.Create].
//
// Nothing of it is on the disk before the first byte comes, or is written, so that it can
// be read on a disk that is full, and a File that is released before leaves nothing behind
// for [Store.Open].
func (s *Store) Sparse(ino uint64, path string, size int64, digest string) (*File, error) {
	if size == 0 {
		return s.Create(ino, path)
	}
	f := s.newFile(ino, path)
	f.size.Store(size)
	err := f.publish(func(l *lockedFile, n names) error {
		l.blocks = newBlocks(size, s.o.blockOf(size), digest, s.o.boot)
		l.blank = true
		return n.unlink()
	})
	if err != nil {
		return nil, fmt.Errorf("content: create %d: %w", ino, err)
	}
	return f, nil
}

// publish makes a new file the content of its inode, with the files that create opens.
func (f *File) publish(create func(*lockedFile, names) error) error {
	l := f.lock()
	defer l.unlock()
	n := f.s.dirs.lock(f.ino)
	defer n.unlock()
	err := create(l, n)
	if errors.Is(err, unix.EEXIST) {
		if err = f.s.displace(n); err == nil {
			err = create(l, n)
		}
	}
	if err != nil {
		l.shut()
		return err
	}
	f.s.forget(n) // older content that had no name yet
	f.opened.Store(true)
	f.s.inodes.name(n, f)
	return nil
}

// Open gives the content of an inode, whole or not. The error is [io/fs.ErrNotExist] when
// there is none, and [ErrDamaged] when it is not known which of its blocks are present.
func (s *Store) Open(ino uint64) (*File, error) {
	for {
		f, err := s.openOnce(ino)
		if !errors.Is(err, errReplaced) {
			return f, err
		}
	}
}

// errReplaced says that the content was replaced while it was being opened.
var errReplaced = errors.New("replaced")

func (s *Store) openOnce(ino uint64) (*File, error) {
	all := s.inodes.lock()
	all.known.touch(ino)
	if f := all.files[ino]; f != nil {
		f.users++
		all.unlock()
		return f.wait()
	}
	f := s.newFile(ino, "")
	l := f.lock()
	defer l.unlock()
	l.delta = all.deltas[ino]
	all.files[ino] = f
	all.unlock()
	if f.err = l.load(); f.err != nil {
		if !errors.Is(f.err, errReplaced) {
			f.err = fmt.Errorf("content: open %d: %w", ino, f.err)
		}
		f.opened.Store(true)
		s.inodes.unlist(f)
		return nil, f.err
	}
	f.opened.Store(true)
	return f, nil
}

// wait gives a file that another call opens.
func (f *File) wait() (*File, error) {
	if !f.opened.Load() {
		l := f.lock() // until it is open
		defer l.unlock()
	}
	if f.err != nil {
		return nil, f.err
	}
	return f, nil
}

// load opens the content and the map on the disk.
func (f *lockedFile) load() error {
	n := f.s.dirs.lock(f.ino)
	defer n.unlock()
	if !f.s.inodes.named(n, f.file) {
		return errReplaced
	}
	fd, err := f.s.dirs.open(f.ino, unix.O_RDONLY)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		f.blocks, st.Size, err = loadBlocks(n, f.s.o.boot, st.Size)
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	f.rd.Store(int32(fd))
	f.size.Store(st.Size)
	f.whole.Store(f.blocks == nil || f.blocks.missing == 0)
	return nil
}

// Release undoes one Create, Sparse or Open. With the last, fetches end and
// descriptors are closed.
func (f *File) Release() {
	last, named := f.s.inodes.release(f)
	if !last {
		return
	}
	l := f.lock()
	defer l.unlock()
	l.abandonAll()
	l.closing = true
	if named && l.changed && l.path != "" {
		f.s.paths.note(f.ino, l.path)
	}
	l.shutWriter() // before a slow fetch ends: with a writer the file would not look quiet
	if l.pins > 0 {
		f.s.released.leave(1)
	}
	l.shut()
}

package content

import (
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

const historyDir = "history"

// history is content that was kept when its inode got other content or was removed.
type history struct {
	dir string

	mu    sync.Mutex // guards the rest, and the files in dir
	known bool       // bytes was counted
	bytes int64      // of all that is kept
}

// path is the path of kept content. An id is a plain file name.
func (h *history) path(id string) (string, error) {
	if id == "" || id == "." || id == ".." || len(id) > 200 || filepath.Base(id) != id {
		return "", fmt.Errorf("content: id %q: %w", id, fs.ErrInvalid)
	}
	sum := fnv.New32a()
	sum.Write([]byte(id))
	return filepath.Join(h.dir, fmt.Sprintf("%02x", sum.Sum32()%256), id), nil
}

// add places a file in history with move.
func (h *history) add(path string, move func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := blocksAt(path)
	err := move()
	if err == unix.ENOENT {
		if merr := os.Mkdir(filepath.Dir(path), 0o700); merr == nil || os.IsExist(merr) {
			err = move()
		}
	}
	if err == nil {
		h.bytes += blocksAt(path) - old
	}
	return err
}

// blocksAt is the space that a file takes, 0 if there is none.
func blocksAt(path string) int64 {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return 0
	}
	return st.Blocks * 512
}

func (h *history) drop(path string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := blocksAt(path)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	h.bytes -= old
	return nil
}

// size is the space that history takes.
func (h *history) size() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known {
		return h.bytes
	}
	h.bytes, h.known = 0, true
	_ = h.each(func(path, _ string) { h.bytes += blocksAt(path) })
	return h.bytes
}

func (h *history) each(visit func(path, id string)) error {
	return filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			visit(path, d.Name())
		}
		return err
	})
}

// Keep makes the content of an inode that does not need it any more a part of history, under an
// id that is a plain file name. Older content under the id is replaced. The inode has no content
// afterwards; Files of it live on. Content that is not wholly local is [ErrPartial].
func (s *Store) Keep(ino uint64, id string) error {
	path, err := s.history.path(id)
	if err != nil {
		return err
	}
	n := s.dirs.lock(ino)
	defer n.unlock()
	if !n.whole() {
		return fmt.Errorf("content: keep %d: %w", ino, ErrPartial)
	}
	if err := s.history.add(path, func() error { return n.move(path) }); err != nil {
		return fmt.Errorf("content: keep %d: %w", ino, err)
	}
	s.forget(n)
	return n.unlinkMap()
}

// KeepSnapshot makes a copy of a snapshot a part of history. Where the disk can, the copy
// shares its blocks.
func (s *Store) KeepSnapshot(v *Snapshot, id string) error {
	path, err := s.history.path(id)
	if err != nil {
		return err
	}
	return s.room.whileFull(v.size, func() error { return s.keepSnapshot(v, path) })
}

func (s *Store) keepSnapshot(v *Snapshot, path string) error {
	if err := s.room.take(v.size); err != nil {
		return err
	}
	part, fd, err := s.dirs.part()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err = v.copyTo(fd); err == nil {
		err = s.history.add(path, func() error { return unix.Rename(part, path) })
	}
	if err != nil {
		os.Remove(part)
		return fmt.Errorf("content: keep: %w", err)
	}
	return nil
}

// copyTo copies the snapshot to an empty file.
func (v *Snapshot) copyTo(fd int) error {
	l := v.f.lock()
	cloned := !v.touched() && unix.IoctlFileClone(fd, v.fd) == nil
	l.unlock()
	if cloned {
		return nil
	}
	buf := make([]byte, pieceSize)
	for off := int64(0); off < v.size; off += pieceSize {
		p := buf[:min(pieceSize, v.size-off)]
		if _, err := v.ReadAt(p, off); err != nil {
			return err
		}
		if zero(p) {
			continue // holes stay holes
		}
		if _, err := pwrite(fd, p, off); err != nil {
			return err
		}
	}
	return unix.Ftruncate(fd, v.size)
}

func zero(p []byte) bool {
	for _, c := range p {
		if c != 0 {
			return false
		}
	}
	return true
}

// OpenKept opens kept content for reading. The error is [fs.ErrNotExist] when
// there is none with this id.
func (s *Store) OpenKept(id string) (*os.File, error) {
	path, err := s.history.path(id)
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// DropKept removes kept content, if there is any with this id.
func (s *Store) DropKept(id string) error {
	path, err := s.history.path(id)
	if err != nil {
		return err
	}
	return s.history.drop(path)
}

// Restore makes kept content the content of an inode, as [Store.Create] does.
// It stays in history.
func (s *Store) Restore(ctx context.Context, id string, ino uint64, path string) (*File, error) {
	kept, err := s.OpenKept(id)
	if err != nil {
		return nil, err
	}
	defer kept.Close()
	f, err := s.Create(ino, path)
	if err != nil {
		return nil, err
	}
	if err := f.fillFrom(ctx, kept); err != nil {
		s.Remove(ino)
		f.Release()
		return nil, fmt.Errorf("content: restore %q: %w", id, err)
	}
	return f, nil
}

// fillFrom makes an empty file a copy of another.
func (f *File) fillFrom(ctx context.Context, from *os.File) error {
	st, err := from.Stat()
	if err != nil {
		return err
	}
	if err := f.Truncate(ctx, st.Size()); err != nil {
		return err
	}
	l := f.lock()
	fd, err := l.change(0, toEnd)
	cloned := err == nil && unix.IoctlFileClone(fd, int(from.Fd())) == nil
	l.unlock()
	if cloned || err != nil {
		return err
	}
	buf := make([]byte, pieceSize)
	for off := int64(0); off < st.Size(); off += pieceSize {
		p := buf[:min(pieceSize, st.Size()-off)]
		if _, err := pread(int(from.Fd()), p, off); err != nil {
			return err
		}
		if zero(p) {
			continue
		}
		if _, err := f.WriteAt(ctx, p, off); err != nil {
			return err
		}
	}
	return nil
}

// KeptBytes is the space that history takes.
func (s *Store) KeptBytes() int64 { return s.history.size() }

// EachKept visits the ids of all that is kept.
func (s *Store) EachKept(visit func(id string)) error {
	return s.history.each(func(_, id string) { visit(id) })
}

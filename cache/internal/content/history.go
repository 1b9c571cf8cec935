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

// history is content that was kept when its inode got other content or went.
type history struct {
	mu    sync.Mutex
	known bool  // bytes was counted
	bytes int64 // of all that is kept
}

// keptPath is where kept content lies. An id is a plain file name.
func (s *Store) keptPath(id string) (string, error) {
	if id == "" || id == "." || id == ".." || len(id) > 200 || filepath.Base(id) != id {
		return "", fmt.Errorf("content: id %q: %w", id, fs.ErrInvalid)
	}
	h := fnv.New32a()
	h.Write([]byte(id))
	return filepath.Join(s.dir, historyDir, fmt.Sprintf("%02x", h.Sum32()%256), id), nil
}

// Keep makes the content of an inode that does not need it any more a part of
// history, under an id that is a plain file name. What had the id is replaced.
// The inode has no content afterwards; Files of it live on. Content that is not
// wholly here is [ErrPartial].
func (s *Store) Keep(ino uint64, id string) error {
	path, err := s.keptPath(id)
	if err != nil {
		return err
	}
	defer s.lockNames(ino).Unlock()
	if !s.wholeNow(ino) {
		return fmt.Errorf("content: keep %d: %w", ino, ErrPartial)
	}
	err = s.keep(path, func() error {
		return s.in(ino, func(dir int, name string) error {
			return unix.Renameat(dir, name, unix.AT_FDCWD, path)
		})
	})
	if err != nil {
		return fmt.Errorf("content: keep %d: %w", ino, err)
	}
	s.forget(ino)
	return s.unlinkMap(ino)
}

// wholeNow reports that nothing of an inode's content is missing.
func (s *Store) wholeNow(ino uint64) bool {
	fd, err := s.openMap(ino, unix.O_RDONLY)
	if err != nil {
		return err == unix.ENOENT
	}
	defer unix.Close(fd)
	b, err := readBlocks(fd)
	return err == nil && b.firstMissing(0, len(b.state)) == len(b.state)
}

// keep places a file in history with move.
func (s *Store) keep(path string, move func() error) error {
	h := &s.history
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

// KeepCopy makes a copy of a file a part of history, and fetches first what is
// missing. Where the disk can, the copy shares its blocks.
func (s *Store) KeepCopy(ctx context.Context, f *File, id string) error {
	v, err := f.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer v.Close()
	return s.KeepSnapshot(v, id)
}

// KeepSnapshot makes a copy of a snapshot a part of history.
func (s *Store) KeepSnapshot(v *Snapshot, id string) error {
	path, err := s.keptPath(id)
	if err != nil {
		return err
	}
	return s.room.whileFull(v.size, func() error { return s.keepSnapshot(v, path) })
}

func (s *Store) keepSnapshot(v *Snapshot, path string) error {
	if err := s.room.take(v.size); err != nil {
		return err
	}
	part, fd, err := s.part()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err = v.copyTo(fd); err == nil {
		err = s.keep(path, func() error { return unix.Rename(part, path) })
	}
	if err != nil {
		os.Remove(part)
		return fmt.Errorf("content: keep: %w", err)
	}
	return nil
}

// copyTo copies the snapshot to an empty file.
func (v *Snapshot) copyTo(fd int) error {
	v.f.mu.Lock()
	cloned := !v.touched() && unix.IoctlFileClone(fd, v.fd) == nil
	v.f.mu.Unlock()
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
	path, err := s.keptPath(id)
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// DropKept removes kept content, if there is any with this id.
func (s *Store) DropKept(id string) error {
	path, err := s.keptPath(id)
	if err != nil {
		return err
	}
	h := &s.history
	h.mu.Lock()
	defer h.mu.Unlock()
	old := blocksAt(path)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	h.bytes -= old
	return nil
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
	f.mu.Lock()
	fd, err := f.change(0, toEnd)
	cloned := err == nil && unix.IoctlFileClone(fd, int(from.Fd())) == nil
	f.mu.Unlock()
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
func (s *Store) KeptBytes() int64 {
	h := &s.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known {
		return h.bytes
	}
	h.bytes, h.known = 0, true
	_ = s.eachKept(func(path, _ string) { h.bytes += blocksAt(path) })
	return h.bytes
}

// EachKept visits the ids of all that is kept.
func (s *Store) EachKept(visit func(id string)) error {
	return s.eachKept(func(_, id string) { visit(id) })
}

func (s *Store) eachKept(visit func(path, id string)) error {
	return filepath.WalkDir(filepath.Join(s.dir, historyDir), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			visit(path, d.Name())
		}
		return err
	})
}

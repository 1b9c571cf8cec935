package lfs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/wsmount/wsmount/providers/git/internal/space"
)

// Store keeps objects that no server has yet, each in a file of its name. All
// methods may be used at the same time.
type Store struct {
	dir, tmp string
	space    space.Disk

	mu   sync.Mutex // guards all below, and is held while objects are removed
	held map[string]int
}

// OpenStore opens the store in a directory, which is made with the first object; tmp is one for
// unfinished files, on the same file system, which is disk.
func OpenStore(dir, tmp string, disk space.Disk) *Store {
	return &Store{dir: dir, tmp: tmp, space: disk, held: map[string]int{}}
}

// Put keeps the bytes that from writes. The bytes are on the disk when it returns, and the
// name after Sync. Until release is called Sweep leaves the object alone.
func (s *Store) Put(from func(io.Writer) error) (p Pointer, release func(), err error) {
	var f *os.File
	err = s.space.While(func() (err error) {
		f, err = os.CreateTemp(s.tmp, "lfs-")
		return err
	})
	if err != nil {
		return p, nil, err
	}
	defer os.Remove(f.Name()) // it has another name by then, or is not wanted
	sum, size := sha256.New(), counter(0)
	err = from(io.MultiWriter(s.space.Writer(f), sum, &size))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return p, nil, err
	}
	p = Pointer{hex.EncodeToString(sum.Sum(nil)), int64(size)}
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.space.While(func() error {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return err
		}
		return os.Rename(f.Name(), s.path(p))
	})
	if err != nil {
		return p, nil, err
	}
	s.held[p.OID]++
	return p, sync.OnceFunc(func() { s.release(p) }), nil
}

func (s *Store) release(p Pointer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[p.OID]--; s.held[p.OID] == 0 {
		delete(s.held, p.OID)
	}
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func (s *Store) path(p Pointer) string { return filepath.Join(s.dir, p.OID) }

// Sync makes the names of objects put so far last.
func (s *Store) Sync() error {
	for _, dir := range []string{s.dir, filepath.Dir(s.dir)} {
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Open opens an object; os.ErrNotExist when the store does not have it.
func (s *Store) Open(p Pointer) (*os.File, error) { return os.Open(s.path(p)) }

// Has reports whether the store has an object.
func (s *Store) Has(p Pointer) bool {
	_, err := os.Stat(s.path(p))
	return err == nil
}

// Empty reports whether nothing is kept.
func (s *Store) Empty() (bool, error) {
	f, err := os.Open(s.dir)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}

// Sweep removes all objects but those that are wanted, by OID, or being put.
func (s *Store) Sweep(wanted map[string]bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if oid := e.Name(); !wanted[oid] && s.held[oid] == 0 {
			err = errors.Join(err, os.Remove(filepath.Join(s.dir, oid)))
		}
	}
	return err
}

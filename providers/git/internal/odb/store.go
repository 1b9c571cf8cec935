package odb

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/wsmount/wsmount/providers/git/internal/space"
)

// Bytes of inflated objects that are kept.
const (
	treeCache = 32 << 20
	baseCache = 48 << 20
)

// streamed is the size from which on content that is no delta is inflated while
// it is read.
const streamed = 1 << 20

// Store is an open database. All methods may be used at the same time.
type Store struct {
	dir     string // the repository's objects/pack
	private string // wsmount's own
	packs   atomic.Pointer[[]*pack]
	opened  atomic.Uint64  // packs, ever
	mu      sync.Mutex     // held while a pack is added
	missing Missing        // nil: a missing blob is an error
	trees   memory[string] // by ID
	bases   memory[uint64] // by place
	spools  spools
	space   space.Disk
	told    func(done, total int) // of the objects of a pack that comes
}

// Open opens the database below objects. private is a directory on the same file system, for
// unfinished files and for the sizes; Open removes the unfinished files of an interrupted
// program, so no other process may use it. disk is the one that both lie on.
func Open(objects, private string, disk space.Disk) (*Store, error) {
	s := newStore(objects, private, disk)
	if err := os.RemoveAll(s.tmp()); err != nil {
		return nil, err
	}
	for _, dir := range []string{s.dir, s.tmp(), filepath.Join(private, "sizes")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	names, err := s.indices()
	if err == nil {
		err = s.removeHalves(names)
	}
	if err != nil {
		return nil, err
	}
	return s.open(names)
}

// Look is Open of a database that is only read, which other processes may do at once: it adds and
// removes nothing.
func Look(objects, private string) (*Store, error) {
	s := newStore(objects, private, space.Disk{})
	if err := os.MkdirAll(s.tmp(), 0o700); err != nil {
		return nil, err
	}
	names, err := s.indices()
	if err != nil {
		return nil, err
	}
	return s.open(names)
}

func newStore(objects, private string, disk space.Disk) *Store {
	return &Store{dir: filepath.Join(objects, "pack"), private: private, space: disk, told: func(int, int) {}}
}

// indices are those of the packs that are there.
func (s *Store) indices() ([]string, error) {
	return filepath.Glob(filepath.Join(s.dir, "pack-*.idx"))
}

// open opens the packs of some indices.
func (s *Store) open(indices []string) (*Store, error) {
	list := []*pack{}
	s.packs.Store(&list)
	s.trees, s.bases = newMemory[string](treeCache), newMemory[uint64](baseCache)
	for _, name := range indices {
		p, err := s.openPack(strings.TrimSuffix(name, ".idx"))
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.add(p)
	}
	return s, nil
}

// OnReceive has f called after each received object of a pack, with the number so far and in all;
// nil: no call. It is called before the first Receive; f is called by the goroutine that
// receives.
func (s *Store) OnReceive(f func(done, total int)) {
	if f != nil {
		s.told = f
	}
}

// removeHalves removes packs without an index, that a crash has left: readers did not see them
// yet, or do not any more.
func (s *Store) removeHalves(indices []string) error {
	var errs []error
	for _, ending := range []string{".pack", promisedEnding} {
		names, err := filepath.Glob(filepath.Join(s.dir, "pack-*"+ending))
		errs = append(errs, err)
		for _, name := range names {
			if !slices.Contains(indices, strings.TrimSuffix(name, ending)+".idx") {
				errs = append(errs, os.Remove(name))
			}
		}
	}
	return errors.Join(errs...)
}

// Tmp is a directory for unfinished files. It is empty when the database is opened.
func (s *Store) Tmp() string { return s.tmp() }

func (s *Store) tmp() string { return filepath.Join(s.private, "tmp") }

// add shows a pack to readers. Large packs come first, since most objects are in them.
func (s *Store) add(p *pack) {
	old := *s.packs.Load()
	list := make([]*pack, 0, len(old)+1)
	for _, other := range old {
		if p != nil && p.n > other.n {
			list, p = append(list, p), nil
		}
		list = append(list, other)
	}
	if p != nil {
		list = append(list, p)
	}
	s.packs.Store(&list)
}

// Close lets go of the packs. Readers that are still open fail.
func (s *Store) Close() error {
	s.trees.Close()
	s.bases.Close()
	var errs []error
	for _, p := range *s.packs.Load() {
		errs = append(errs, p.f.Close())
	}
	return errors.Join(errs...)
}

// find is where an object is, and its number in its pack.
func (s *Store) find(id ID) (p *pack, i int, ok bool) {
	for _, p := range *s.packs.Load() {
		if i, ok := p.find(id); ok {
			return p, i, true
		}
	}
	return nil, 0, false
}

// Has reports whether an object is local.
func (s *Store) Has(id ID) bool {
	_, _, ok := s.find(id)
	return ok
}

// Beginning are the objects whose names begin with hexadecimal digits, each once.
func (s *Store) Beginning(digits string) []ID {
	var from, to ID
	if len(digits) > 2*len(from) {
		return nil
	}
	_, err := hex.Decode(from[:], []byte(digits+strings.Repeat("0", 2*len(from)-len(digits))))
	if err != nil {
		return nil
	}
	_, _ = hex.Decode(to[:], []byte(digits+strings.Repeat("f", 2*len(to)-len(digits))))
	found := map[ID]bool{}
	for _, p := range *s.packs.Load() {
		i, _ := p.find(from)
		for ; i < p.n && bytes.Compare(p.id(i), to[:]) <= 0; i++ {
			found[ID(p.id(i))] = true
		}
	}
	return slices.Collect(maps.Keys(found))
}

// Size is how many bytes a blob has.
func (s *Store) Size(id ID) (int64, error) {
	p, i, err := s.bring(id)
	if err != nil {
		return 0, err
	}
	return p.size(i), nil
}

// Get is the whole content of an object, which must be of a kind. The result must not be changed:
// it is shared with other callers.
func (s *Store) Get(id ID, want Kind) ([]byte, error) {
	if raw, ok := s.trees.Get(string(id[:])); ok && want == Tree {
		return raw.content, nil
	}
	p, i, err := s.locate(id, want)
	if err != nil {
		return nil, err
	}
	o, err := s.read(p, p.offset(i), p.size(i))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", id, err)
	case o.kind != want:
		return nil, fmt.Errorf("%s is a %s and no %s: %w", id, o.kind, want, ErrCorrupt)
	case want == Tree:
		s.trees.put(string(id[:]), o)
	}
	return o.content, nil
}

// Open is the content of a blob from an offset on.
func (s *Store) Open(id ID, offset int64) (io.ReadCloser, error) {
	p, i, err := s.bring(id)
	if err != nil {
		return nil, err
	}
	if size := p.size(i); size >= streamed {
		if offset > 0 {
			return s.openAt(id, offset, size)
		}
		h, err := p.header(p.offset(i))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		if h.kind == Blob {
			z, err := inflater(p, h.data)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", id, err)
			}
			return &stream{z}, nil
		}
	}
	content, err := s.Get(id, Blob)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(content[min(offset, int64(len(content))):])), nil
}

// stream is a blob that is inflated while it is read.
type stream struct{ z *inflate }

func (s *stream) Read(b []byte) (int, error) {
	if s.z == nil {
		return 0, os.ErrClosed
	}
	return s.z.Read(b)
}

func (s *stream) Close() error {
	if s.z != nil {
		s.z.free()
		s.z = nil
	}
	return nil
}

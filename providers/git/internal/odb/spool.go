package odb

import (
	"io"
	"os"
	"sync"
)

// spools keeps large contents inflated on the disk while they are read part by
// part: to inflate one from its beginning for each part would take time that
// grows with the square of its size, and to keep it in memory too much of that.
type spools struct {
	mu  sync.Mutex // guards all below
	all []*spool   // the one used last at the end
}

// spool is a file without a name. It goes with its last user.
type spool struct {
	id   ID
	once sync.Once
	f    *os.File
	err  error
}

// spooled is the number of spools kept.
const spooled = 4

// get is the spool of a blob, filled by the first caller.
func (s *spools) get(id ID, fill func() (*os.File, error)) (*os.File, error) {
	sp := s.find(id)
	sp.once.Do(func() { sp.f, sp.err = fill() })
	if sp.err != nil {
		s.drop(sp)
	}
	return sp.f, sp.err
}

func (s *spools) find(id ID) *spool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := &spool{id: id}
	kept := s.all[:0:0]
	for _, sp := range s.all {
		if sp.id == id {
			found = sp
		} else {
			kept = append(kept, sp)
		}
	}
	s.all = append(kept[max(0, len(kept)-spooled+1):], found)
	return found
}

func (s *spools) drop(sp *spool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.all[:0:0]
	for _, other := range s.all {
		if other != sp {
			kept = append(kept, other)
		}
	}
	s.all = kept
}

// openAt is the content of a large blob from an offset on.
func (s *Store) openAt(id ID, offset, size int64) (io.ReadCloser, error) {
	f, err := s.spools.get(id, func() (*os.File, error) { return s.fill(id) })
	if err != nil {
		return nil, err
	}
	return io.NopCloser(io.NewSectionReader(f, offset, max(0, size-offset))), nil
}

func (s *Store) fill(id ID) (f *os.File, err error) {
	r, err := s.Open(id, 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if f, err = s.temp("spool-"); err != nil {
		return nil, err
	}
	os.Remove(f.Name())
	if _, err = io.Copy(s.space.Writer(f), r); err != nil {
		f.Close()
	}
	return f, err
}

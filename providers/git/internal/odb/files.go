package odb

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files are the names of the database's files, for programs that read packs
// themselves. One never changes.
func (s *Store) Files() []string {
	var names []string
	for _, p := range *s.packs.Load() {
		names = append(names, p.name+".idx", p.name+".pack")
		if p.promised {
			names = append(names, p.name+promisedEnding)
		}
	}
	return names
}

// Bytes is how much the packs are together.
func (s *Store) Bytes() (all int64) {
	for _, p := range *s.packs.Load() {
		all += p.end
	}
	return all
}

// FileSize is how long one of Files is; ErrNotFound when it is none of them.
func (s *Store) FileSize(name string) (int64, error) {
	if !s.hasFile(name) {
		return 0, ErrNotFound
	}
	info, err := os.Stat(filepath.Join(s.dir, name))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// OpenFile opens one of Files.
func (s *Store) OpenFile(name string) (*os.File, error) {
	if !s.hasFile(name) {
		return nil, ErrNotFound
	}
	return os.Open(filepath.Join(s.dir, name))
}

func (s *Store) hasFile(name string) bool {
	base, ending, _ := strings.Cut(name, ".")
	return slices.ContainsFunc(*s.packs.Load(), func(p *pack) bool {
		return p.name == base && (ending == "idx" || ending == "pack" || p.promised && "."+ending == promisedEnding)
	})
}

// Scratch is a new file without a name.
func (s *Store) Scratch(prefix string) (*os.File, error) {
	f, err := s.temp(prefix)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// temp is a new file in the directory for unfinished files.
func (s *Store) temp(prefix string) (f *os.File, err error) {
	err = s.space.While(func() (err error) {
		f, err = os.CreateTemp(s.tmp(), prefix)
		return err
	})
	return f, err
}

package refs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	headName = "HEAD"
	branches = "refs/heads/"
)

// Head is the branch that HEAD names, which need not have a commit yet.
func (s *Store) Head() (branch string, err error) {
	b, err := os.ReadFile(filepath.Join(s.dir, headName))
	if err != nil {
		return "", err
	}
	branch, ok := strings.CutPrefix(strings.TrimSuffix(string(b), "\n"), "ref: "+branches)
	if !ok || branch == "" {
		return "", fmt.Errorf("%s says %.60q: %w", headName, b, ErrDamaged)
	}
	return branch, nil
}

// SetHead makes HEAD name a branch. When it returns, that survives a loss of
// power.
func (s *Store) SetHead(branch string) error {
	tmp, err := s.write([]byte("ref: " + branches + branch + "\n"))
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	s.mu.Lock()
	defer s.mu.Unlock()
	path := filepath.Join(s.dir, headName)
	if err := s.lock(tmp, path); err != nil {
		return fmt.Errorf("%s: %w", headName, err)
	}
	if err := os.Rename(path+lockEnd, path); err != nil {
		return errors.Join(err, os.Remove(path+lockEnd))
	}
	return syncDir(s.dir)
}

// List is the references below a prefix that ends in a slash.
func (s *Store) List(prefix string) (map[string]ID, error) {
	all, err := s.listPacked(prefix)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(filepath.Join(s.dir, prefix), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // of one that was removed meanwhile, too
			return nil
		}
		if err != nil || d.IsDir() || strings.HasSuffix(path, lockEnd) {
			return err
		}
		name, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		id, err := s.Get(filepath.ToSlash(name))
		if err == nil && !id.IsZero() {
			all[filepath.ToSlash(name)] = id
		}
		return err
	})
	return all, err
}

// listPacked is List of the references that `git pack-refs` has packed.
func (s *Store) listPacked(prefix string) (map[string]ID, error) {
	all := map[string]ID{}
	err := s.eachPacked(func(name, hash string) (err error) {
		if strings.HasPrefix(name, prefix) {
			all[name], err = parse(name, []byte(hash))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

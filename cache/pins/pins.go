// Package pins keeps the paths of a working copy that are to stay on the local disk: content at
// them, and below, is not evicted for want of room, nor by hand.
//
// It knows paths, not entries: a pin stays with its path when that gets another entry. It keeps
// them in a file of the state directory, so that they outlive a mount.
//
//	set, err := pins.Load(stateDir)
//	err = set.Add("docs")
//	set.Holds("docs/a.md") // true
package pins

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/wsmount/wsmount/cache/exactjson"
)

// fileName is the name of the file in a state directory.
const fileName = "pins.json"

// A Set is the pins of one working copy. A nil Set has none. Its methods may be called
// concurrently.
type Set struct {
	file string

	changing sync.Mutex // one change at a time
	paths    atomic.Pointer[[]string]
}

// Load reads the pins of the working copy in a directory; no pins if there is no file.
func Load(dir string) (*Set, error) {
	s := &Set{file: filepath.Join(dir, fileName)}
	var paths []string
	data, err := os.ReadFile(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	} else if err == nil {
		err = exactjson.Unmarshal(data, &paths)
	}
	if err != nil {
		return nil, fmt.Errorf("pins: %s: %w", s.file, err)
	}
	s.paths.Store(&paths)
	return s, nil
}

// List has the pinned paths, in order; "" is the whole working copy.
func (s *Set) List() []string {
	if s == nil {
		return nil
	}
	return slices.Clone(*s.paths.Load())
}

// Holds reports whether a path is pinned, or below one that is. It takes no lock.
func (s *Set) Holds(path string) bool {
	if s == nil {
		return false
	}
	return slices.ContainsFunc(*s.paths.Load(), func(pin string) bool {
		return pin == "" || path == pin || strings.HasPrefix(path, pin) && path[len(pin)] == '/'
	})
}

// Add pins a path.
func (s *Set) Add(path string) error {
	return s.change(func(paths []string) []string {
		if slices.Contains(paths, path) {
			return paths
		}
		return append(paths, path)
	})
}

// Remove unpins a path, and reports whether just that was pinned.
func (s *Set) Remove(path string) (was bool, err error) {
	return was, s.change(func(paths []string) []string {
		i := slices.Index(paths, path)
		if was = i >= 0; !was {
			return paths
		}
		return slices.Delete(paths, i, i+1)
	})
}

// change writes the new pins to the disk before they take effect.
func (s *Set) change(f func([]string) []string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	paths := f(s.List())
	slices.Sort(paths)
	data, err := exactjson.Marshal(paths)
	if err == nil {
		err = replace(s.file, data)
	}
	if err != nil {
		return fmt.Errorf("pins: %w", err)
	}
	s.paths.Store(&paths)
	return nil
}

// replace writes a file anew, all of it or nothing, and syncs the directory.
func replace(file string, data []byte) error {
	f, err := os.OpenFile(file+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

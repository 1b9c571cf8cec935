// Package refs keeps the references of a bare git repository so that they
// survive a loss of power, and side by side with the git program.
//
// A reference is written as git writes it: beside it the file NAME.lock, which only one process
// can make, then a rename. A reference that git or another program has locked is left alone, with
// ErrLocked. A lock of this package is a second name of a file in a directory of its own, so that
// one which a killed program left is recognized, and removed when the directory is opened again.
//
//	s, err := refs.Open(gitDir, private, space.Disk{})
//	err = s.Update("refs/heads/main", was, is)
package refs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/wsmount/wsmount/providers/git/internal/space"
)

// ID names a commit.
type ID = plumbing.Hash

// Errors of this package, beside those of the system.
var (
	ErrLocked  = errors.New("another program has locked the reference")
	ErrChanged = errors.New("the reference is not where it was")
	ErrDamaged = errors.New("the reference is damaged")
)

// Store is the references of a repository. All methods may be used at once.
type Store struct {
	dir string // of the repository
	tmp string // of this package alone

	space space.Disk

	mu sync.Mutex // held while one changes
}

// Open opens the references of the repository at dir. private is a directory on the same file
// system that no other process uses; disk is that.
func Open(dir, private string, disk space.Disk) (*Store, error) {
	s := &Store{dir: dir, tmp: filepath.Join(private, "refs"), space: disk}
	if err := os.MkdirAll(s.tmp, 0o700); err != nil {
		return nil, err
	}
	left, err := filepath.Glob(filepath.Join(s.tmp, "*"))
	if err != nil {
		return nil, err
	}
	for _, name := range left {
		if err := s.unlock(name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Look is the references of a repository that other processes may have open, for reading: Get,
// List and Head. They are as they were a moment ago.
func Look(dir string) *Store { return &Store{dir: dir} }

// unlock removes the leftovers of a killed program: the file, and the lock that is another name
// of it.
func (s *Store) unlock(left string) error {
	fi, err := os.Lstat(left)
	if err != nil {
		return err
	}
	same := func(path string) error {
		other, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(fi, other) {
			return nil
		}
		return errors.Join(err, os.Remove(path))
	}
	err = filepath.WalkDir(filepath.Join(s.dir, "refs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, lockEnd) {
			return err
		}
		return same(path)
	})
	return errors.Join(err, same(filepath.Join(s.dir, packedRefs+lockEnd)), same(filepath.Join(s.dir, headName+lockEnd)), os.Remove(left))
}

const (
	lockEnd    = ".lock"
	packedRefs = "packed-refs"
)

// Get is the commit of a reference, zero if there is none. A symbolic one is not followed: none
// of ours is.
func (s *Store) Get(name string) (id ID, err error) {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	switch {
	case err == nil:
		return parse(name, b)
	case !errors.Is(err, fs.ErrNotExist):
		return id, err
	}
	return s.packed(name)
}

func parse(name string, b []byte) (ID, error) {
	text := string(bytes.TrimSuffix(b, []byte{'\n'}))
	if !plumbing.IsHash(text) {
		return ID{}, fmt.Errorf("%s says %.60q: %w", name, text, ErrDamaged)
	}
	return plumbing.NewHash(text), nil
}

// packed looks among the references that `git pack-refs` has packed.
func (s *Store) packed(name string) (id ID, err error) {
	err = s.eachPacked(func(packed, hash string) (err error) {
		if packed == name {
			id, err = parse(name, []byte(hash))
		}
		return err
	})
	return id, err
}

// eachPacked visits the references that `git pack-refs` has packed.
func (s *Store) eachPacked(visit func(name, hash string) error) error {
	f, err := os.Open(filepath.Join(s.dir, packedRefs))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		hash, name, _ := strings.Cut(lines.Text(), " ") // in comments and peeled tags not a reference's
		if err := visit(name, hash); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Update moves a reference from one commit to another, if it is at the first; zero is none. When
// it returns, that survives a loss of power.
func (s *Store) Update(name string, from, to ID) error {
	c, err := s.Prepare(to)
	if err != nil {
		return err
	}
	return c.Move(name, from)
}

// Change is an update whose slow part is done already.
type Change struct {
	s   *Store
	to  ID
	tmp string
}

// Prepare writes the new commit of a reference. Move or Drop ends it.
func (s *Store) Prepare(to ID) (*Change, error) {
	tmp, err := s.write(fmt.Appendf(nil, "%s\n", to))
	if err != nil {
		return nil, err
	}
	return &Change{s, to, tmp}, nil
}

// write makes a file that becomes a lock and then the locked file.
func (s *Store) write(content []byte) (tmp string, err error) {
	err = s.space.While(func() (err error) {
		tmp, err = writeTemp(s.tmp, content)
		return err
	})
	return tmp, err
}

func writeTemp(dir string, content []byte) (tmp string, err error) {
	f, err := os.CreateTemp(dir, "")
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		os.Remove(f.Name())
	}
	return f.Name(), err
}

// Drop ends a change that is not wanted.
func (c *Change) Drop() { os.Remove(c.tmp) }

// Move is Update.
func (c *Change) Move(name string, from ID) error {
	defer c.Drop()
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	path := filepath.Join(s.dir, name)
	if err := s.makeDir(filepath.Dir(path)); err != nil {
		return err
	}
	if err := s.lock(c.tmp, path); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	is, err := s.Get(name)
	switch {
	case err == nil && is != from:
		err = fmt.Errorf("%s is at %s and not at %s: %w", name, is, from, ErrChanged)
	case err == nil && c.to.IsZero():
		err = s.remove(name)
	case err == nil && is != c.to:
		if err = os.Rename(path+lockEnd, path); err == nil {
			return syncDir(filepath.Dir(path))
		}
	}
	return errors.Join(err, os.Remove(path+lockEnd))
}

// makeDir makes a directory that lasts.
func (s *Store) makeDir(dir string) error {
	err := s.space.While(func() error { return os.Mkdir(dir, 0o755) })
	switch {
	case err == nil:
		return syncDir(filepath.Dir(dir))
	case errors.Is(err, fs.ErrExist):
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := s.makeDir(filepath.Dir(dir)); err != nil {
		return err
	}
	return s.makeDir(dir)
}

// lock makes a file the lock of a path.
func (s *Store) lock(tmp, path string) error {
	err := s.space.While(func() error { return os.Link(tmp, path+lockEnd) })
	if errors.Is(err, fs.ErrExist) {
		return ErrLocked
	}
	return err
}

// remove removes a locked reference: first from packed-refs, or it would come back.
func (s *Store) remove(name string) error {
	if id, err := s.packed(name); err != nil || !id.IsZero() {
		if err = errors.Join(err, s.unpack(name)); err != nil {
			return err
		}
	}
	path := filepath.Join(s.dir, name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// unpack rewrites packed-refs without a reference.
func (s *Store) unpack(name string) error {
	path := filepath.Join(s.dir, packedRefs)
	tmp, err := s.write(nil)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	if err := s.lock(tmp, path); err != nil {
		return fmt.Errorf("%s: %w", packedRefs, err)
	}
	b, err := os.ReadFile(path)
	var kept []byte
	skip := false
	for line := range bytes.Lines(b) {
		peeled := bytes.HasPrefix(line, []byte{'^'}) // belongs to the line before
		if skip = peeled && skip || bytes.HasSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte(" "+name)); !skip {
			kept = append(kept, line...)
		}
	}
	if err == nil {
		err = s.space.While(func() error { return overwrite(path+lockEnd, kept) })
	}
	if err == nil {
		if err = os.Rename(path+lockEnd, path); err == nil {
			return syncDir(s.dir)
		}
	}
	return errors.Join(err, os.Remove(path+lockEnd))
}

func overwrite(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// ValidBranch reports whether git takes a name for a branch (git-check-ref-format).
func ValidBranch(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") || strings.HasSuffix(part, ".") {
			return false
		}
	}
	odd := func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("~^:?*[\\", r) }
	return !strings.HasPrefix(name, "-") && !strings.Contains(name, "..") && !strings.Contains(name, "@{") && name != "@" && strings.IndexFunc(name, odd) < 0 && len(name) < 200
}

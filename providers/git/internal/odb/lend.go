package odb

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Packs never change, so several databases on one file system may have the same
// files: as hard links, of which each database removes its own.

const sizesEnding = ".sizes"

// Lend links all packs, or those that are promised alone, into a directory, and returns
// their names.
func (s *Store) Lend(dir string, promised bool) (names []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range *s.packs.Load() {
		if promised && !p.promised {
			continue
		}
		base := filepath.Join(s.dir, p.name)
		var err error
		if p.promised {
			err = link(base+promisedEnding, filepath.Join(dir, p.name+promisedEnding))
		}
		err = errors.Join(err, link(base+".pack", filepath.Join(dir, p.name+".pack")), link(base+".idx", filepath.Join(dir, p.name+".idx")))
		if err != nil {
			return nil, err
		}
		_ = link(s.sizesFile(p), filepath.Join(dir, p.name+sizesEnding)) // else they are measured again
		names = append(names, p.name)
	}
	return names, nil
}

// link is os.Link, to which an existing file is good: files of the same pack name have the same
// content.
func link(from, to string) error {
	if err := os.Link(from, to); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Borrow adds a pack that another database lent to a directory. A damaged one is not taken: the
// error is ErrCorrupt.
func (s *Store) Borrow(dir, name string) error {
	from, base := filepath.Join(dir, name), filepath.Join(s.dir, name)
	if slices.ContainsFunc(*s.packs.Load(), func(p *pack) bool { return p.name == name }) {
		return nil
	}
	for _, ending := range []string{".pack", ".idx"} {
		if err := checkSum(from + ending); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(*s.packs.Load(), func(p *pack) bool { return p.name == name }) {
		return nil
	}
	_ = link(from+sizesEnding, s.sizesFile(&pack{name: name}))
	if err := link(from+promisedEnding, base+promisedEnding); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := errors.Join(link(from+".pack", base+".pack"), link(from+".idx", base+".idx")); err != nil {
		return err
	}
	if err := Sync(s.dir); err != nil {
		return err
	}
	p, err := s.openPack(base)
	if err == nil {
		s.add(p)
	}
	return err
}

// checkSum compares a file with the hash at its end.
func checkSum(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	t := &tail{w: bufio.NewWriter(io.Discard), sum: sha1.New()}
	if _, err := io.CopyBuffer(struct{ io.Writer }{t}, f, make([]byte, 1<<20)); err != nil {
		return err
	}
	if !bytes.Equal(t.last, t.sum.Sum(nil)) {
		return fmt.Errorf("%s: its content is not what it was: %w", name, ErrCorrupt)
	}
	return nil
}

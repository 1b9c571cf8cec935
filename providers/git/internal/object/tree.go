// Package object reads and writes trees and commits of git, byte for byte as
// the git program does.
//
//	e, ok, err := object.Find(raw, "README.md")
//	c, err := object.ParseCommit(raw)
package object

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// ID names an object by its content.
type ID = plumbing.Hash

// Mode is the type of an entry of a tree.
type Mode uint32

// The modes that wsmount writes. Others may be read: old ones with more bits.
const (
	ModeDir       Mode = 0o40000
	ModeFile      Mode = 0o100644
	ModeExec      Mode = 0o100755
	ModeLink      Mode = 0o120000
	ModeSubmodule Mode = 0o160000

	modeType Mode = 0o170000
)

// IsDir reports whether an entry is a tree.
func (m Mode) IsDir() bool { return m&modeType == ModeDir }

// IsLink reports whether an entry is a symbolic link.
func (m Mode) IsLink() bool { return m&modeType == ModeLink }

// IsSubmodule reports whether an entry is a commit of another repository.
func (m Mode) IsSubmodule() bool { return m&modeType == ModeSubmodule }

// Executable reports whether a file's owner may execute it.
func (m Mode) Executable() bool { return m&modeType == ModeFile&modeType && m&0o100 != 0 }

// ErrMalformed says that bytes are no object of their kind.
var ErrMalformed = errors.New("not a well-formed object")

// Entry is a line of a tree.
type Entry struct {
	Name string
	Mode Mode
	ID   ID
}

// Key is the sort key of trees: a directory counts as if its name ended in a slash.
func (e Entry) Key() string {
	if e.Mode.IsDir() {
		return e.Name + "/"
	}
	return e.Name
}

// Next is the first entry of a tree, and the rest. The tree is not at its end.
func Next(raw []byte) (e Entry, rest []byte, err error) {
	mode, rest, ok := bytes.Cut(raw, []byte{' '})
	if !ok || len(mode) > 7 {
		return e, nil, fmt.Errorf("a tree: %w", ErrMalformed)
	}
	for _, c := range mode {
		if c < '0' || c > '7' {
			return e, nil, fmt.Errorf("a tree: %w", ErrMalformed)
		}
		e.Mode = e.Mode<<3 | Mode(c-'0')
	}
	end := bytes.IndexByte(rest, 0)
	if end < 0 || len(rest) < end+1+len(e.ID) {
		return e, nil, fmt.Errorf("a tree: %w", ErrMalformed)
	}
	e.Name = string(rest[:end])
	copy(e.ID[:], rest[end+1:])
	return e, rest[end+1+len(e.ID):], nil
}

// Entries are all entries of a tree, in git's order.
func Entries(raw []byte) ([]Entry, error) {
	var all []Entry
	for len(raw) > 0 {
		e, rest, err := Next(raw)
		if err != nil {
			return nil, err
		}
		all, raw = append(all, e), rest
	}
	return all, nil
}

// Find is the entry of a name.
func Find(raw []byte, name string) (e Entry, ok bool, err error) {
	for len(raw) > 0 {
		e, raw, err = Next(raw)
		if err != nil || e.Name == name {
			return e, err == nil, err
		}
	}
	return Entry{}, false, nil
}

// At is the entry at a path below a directory, of which tree gives the entries.
func At(dir ID, path []string, tree func(ID) ([]byte, error)) (e Entry, ok bool, err error) {
	e = Entry{Mode: ModeDir, ID: dir}
	for _, name := range path {
		if !e.Mode.IsDir() {
			return e, false, nil
		}
		raw, err := tree(e.ID)
		if err != nil {
			return e, false, err
		}
		if e, ok, err = Find(raw, name); err != nil || !ok {
			return e, false, err
		}
	}
	return e, true, nil
}

// EncodeTree is the tree of entries, which it sorts.
func EncodeTree(entries []Entry) []byte {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Key(), b.Key()) })
	var raw []byte
	for _, e := range entries {
		raw = strconv.AppendUint(raw, uint64(e.Mode), 8)
		raw = append(append(append(raw, ' '), e.Name...), 0)
		raw = append(raw, e.ID[:]...)
	}
	return raw
}

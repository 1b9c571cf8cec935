package attributes

import (
	"bytes"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/wsmount/wsmount/providers/git/internal/object"
)

// Filters decide which files of a directory, and below, go through LFS: by the attribute filter
// in the files of attributes from the root down. nil: none. They never change.
type Filters struct {
	above  *Filters
	depth  int           // number of names above the directory whose file it is
	file   plumbing.Hash // of attributes
	lines  []Line
	macros Macros // those of the root
}

// FilterLFS is the value of the attribute filter that git-lfs gives to files.
const FilterLFS = "lfs"

// IsLFS reports whether a file goes through LFS. parts is its whole path.
func (f *Filters) IsLFS(parts []string) bool {
	for ; f != nil; f = f.above {
		if value, said := Value(f.lines, parts[f.depth:], "filter"); said {
			return value == FilterLFS
		}
	}
	return false
}

// Equal reports whether two decide the same for every file.
func (f *Filters) Equal(g *Filters) bool {
	for f != nil && g != nil && f.file == g.file && f.depth == g.depth {
		f, g = f.above, g.above
	}
	return f == nil && g == nil
}

// with adds the file of attributes of a directory.
func (f *Filters) with(depth int, file plumbing.Hash, text []byte) *Filters {
	var known Macros
	if f != nil {
		known = f.macros
	}
	lines, known := Parse(string(text), known, depth == 0)
	lines = slices.DeleteFunc(lines, func(l Line) bool {
		_, said := l.value("filter")
		return !said
	})
	if len(lines) == 0 && (depth > 0 || len(known) == len(ownMacros)) {
		return f
	}
	return &Filters{above: f, depth: depth, file: file, lines: lines, macros: known}
}

// Cache remembers Filters, by those above and the file that was added: the same are asked for in
// each listing. The zero Cache is empty. It may be used from several goroutines.
type Cache struct {
	mu sync.Mutex // guards all below
	by map[cacheKey]*Filters
}

type cacheKey struct {
	above *Filters
	depth int
	file  plumbing.Hash
}

const cacheMax = 1024

// With adds to f the file of attributes of a directory that is depth names below the root. read
// is called for its text unless that is known, and the error is read's.
func (c *Cache) With(f *Filters, depth int, file plumbing.Hash, read func() ([]byte, error)) (*Filters, error) {
	key := cacheKey{f, depth, file}
	c.mu.Lock()
	g, ok := c.by[key]
	c.mu.Unlock()
	if ok {
		return g, nil
	}
	text, err := read()
	if err != nil {
		return nil, err
	}
	g = f.with(depth, file, text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil || len(c.by) >= cacheMax {
		c.by = map[cacheKey]*Filters{}
	}
	c.by[key] = g
	return g, nil
}

// entryPart is a part of the entry of a file of attributes in a tree's bytes.
var entryPart = []byte(" " + Name + "\x00")

// In is the file of attributes in a tree's bytes; ok is false when there is none. The error is
// that of a tree that is not well-formed.
func In(tree []byte) (file plumbing.Hash, ok bool, err error) {
	if !bytes.Contains(tree, entryPart) {
		return file, false, nil
	}
	e, ok, err := object.Find(tree, Name)
	if err != nil || !ok || e.Mode.IsDir() || e.Mode.IsLink() || e.Mode.IsSubmodule() {
		return file, false, err
	}
	return e.ID, true, nil
}

package git

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// filters decide which files of a directory, and below, go through LFS: by the attribute filter
// in the files of attributes from the root down. nil: none.
type filters struct {
	above  *filters
	depth  int // number of names above the directory whose file it is
	file   id  // of attributes
	lines  []attributeLine
	macros macros // those of the root
}

// lfsFilter is the value of the attribute that git-lfs gives to files.
const lfsFilter = "lfs"

// isLFS reports whether a file goes through LFS. parts is its whole path.
func (f *filters) isLFS(parts []string) bool {
	for ; f != nil; f = f.above {
		if value, said := valueOf(f.lines, parts[f.depth:], "filter"); said {
			return value == lfsFilter
		}
	}
	return false
}

// equal reports whether two decide the same for every file.
func (f *filters) equal(g *filters) bool {
	for f != nil && g != nil && f.file == g.file && f.depth == g.depth {
		f, g = f.above, g.above
	}
	return f == nil && g == nil
}

// with adds the file of attributes of a directory.
func (f *filters) with(depth int, file id, text []byte) *filters {
	known := ownMacros
	if f != nil {
		known = f.macros
	}
	lines, known := parseAttributes(string(text), known, depth == 0)
	lines = slices.DeleteFunc(lines, func(l attributeLine) bool {
		_, said := l.value("filter")
		return !said
	})
	if len(lines) == 0 && (depth > 0 || len(known) == len(ownMacros)) {
		return f
	}
	return &filters{above: f, depth: depth, file: file, lines: lines, macros: known}
}

// parsed remembers filters, by those above and the file that was added: the same are
// asked for in each listing.
type parsed struct {
	mu sync.Mutex // guards all below
	by map[parsedKey]*filters
}

type parsedKey struct {
	above *filters
	depth int
	file  id
}

const parsedMax = 1024

func (p *parsed) with(f *filters, depth int, file id, read func() ([]byte, error)) (*filters, error) {
	key := parsedKey{f, depth, file}
	p.mu.Lock()
	g, ok := p.by[key]
	p.mu.Unlock()
	if ok {
		return g, nil
	}
	text, err := read()
	if err != nil {
		return nil, err
	}
	g = f.with(depth, file, text)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil || len(p.by) >= parsedMax {
		p.by = map[parsedKey]*filters{}
	}
	p.by[key] = g
	return g, nil
}

// attributesEntry is a part of the entry of a file of attributes in a tree's bytes.
var attributesEntry = []byte(" " + attributesName + "\x00")

// mostAttributes is the size above which such a file is ignored.
const mostAttributes = 1 << 20

// filters are those of a directory with that content, below others.
func (r *repository) filters(ctx context.Context, above *filters, depth int, tree []byte) (*filters, error) {
	if !bytes.Contains(tree, attributesEntry) {
		return above, nil
	}
	e, ok, err := object.Find(tree, attributesName)
	if err != nil || !ok || e.Mode.IsDir() || e.Mode.IsLink() || e.Mode.IsSubmodule() {
		return above, err
	}
	if err := r.partial.need(ctx, e.ID); err != nil {
		return above, err
	}
	return r.parsed.with(above, depth, e.ID, func() ([]byte, error) { return r.attributes(e.ID) })
}

// attributes is the content of a file of attributes.
func (r *repository) attributes(file id) ([]byte, error) {
	size, err := r.objects.Size(file)
	if err != nil || size > mostAttributes {
		return nil, err
	}
	return r.objects.Get(file, odb.Blob)
}

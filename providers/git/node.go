package git

import (
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/attributes"
	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/trees"
)

// found is an entry at a place, with the pointer to the content that it shows at that place, if
// it is in LFS. Without a Node there is no entry.
type found struct {
	*trees.Node
	pointer *lfs.Pointer
}

// at describes an entry under a name; nil for none, as Condition.Allows takes it.
func (n found) at(l providers.Locator) *providers.Info {
	switch {
	case n.Node == nil:
		return nil
	case n.LooksDir():
		return &providers.Info{Locator: l, Kind: providers.KindDir}
	}
	info := describe(l, object.Entry{Mode: n.Mode, ID: n.ID}, n.Size, n.pointer)
	return &info
}

// nodes are the entries below root.
type nodes struct {
	trees.Editor
	repo *repository
	root *trees.Node
	made map[id][]byte // contents that are not in the repository yet, and may matter
}

// find is the entry at l, without Node when there is none, also below a file.
func (t *nodes) find(l providers.Locator) (found, error) {
	n, f, err := t.look(l)
	if err != nil || n == nil || !t.repo.large.mayBe(f, l.Parts(), n.Mode, n.Size) {
		return found{Node: n}, err
	}
	text, err := t.text(n.ID)
	if err != nil {
		return found{}, err
	}
	if p, ok := lfs.Parse(text); ok && t.repo.large.offers.Load() == offered {
		return found{n, &p}, nil
	}
	return found{Node: n}, nil
}

// look is the node at l as its tree has it, and the filters of its directory.
func (t *nodes) look(l providers.Locator) (n *trees.Node, f *attributes.Filters, err error) {
	n = t.root
	for depth, name := range l.Parts() {
		if !n.IsDir() {
			return nil, f, nil
		}
		if f, err = t.filters(f, depth, n); err != nil {
			return nil, nil, err
		}
		if n, err = t.Child(n, name); err != nil {
			return nil, nil, err
		}
	}
	return n, f, nil
}

// inside is the directory at l, and its filters.
func (t *nodes) inside(l providers.Locator) (n *trees.Node, f *attributes.Filters, err error) {
	n, f, err = t.look(l)
	if err == nil && n.IsDir() {
		f, err = t.filters(f, len(l.Parts()), n)
	}
	return n, f, err
}

// filters are those of a directory below others.
func (t *nodes) filters(above *attributes.Filters, depth int, dir *trees.Node) (*attributes.Filters, error) {
	entries, err := t.Entries(dir)
	if err != nil {
		return nil, err
	}
	file := entries[attributes.Name]
	if !file.IsFile() {
		return above, nil
	}
	return t.repo.parsed.With(above, depth, file.ID, func() ([]byte, error) {
		if text, ok := t.made[file.ID]; ok {
			return text, nil
		}
		return t.repo.attributes(file.ID)
	})
}

// text is a small content.
func (t *nodes) text(b id) ([]byte, error) {
	if text, ok := t.made[b]; ok {
		return text, nil
	}
	return t.repo.objects.Get(b, odb.Blob)
}

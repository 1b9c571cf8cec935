package git

import (
	"fmt"
	"maps"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/attributes"
	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// node is an entry of a tree that a set changes. The entries of a directory are loaded on demand:
// a set reads no more of the repository than the path to its changes.
type node struct {
	mode object.Mode
	id   id    // unless mine
	size int64 // of a file or link

	dir  map[string]*node // of a directory; nil: not loaded
	mine bool             // made by this set: it may be changed, and has no id yet

	pointer *lfs.Pointer // of the content that a file shows where it was found
}

func (n *node) isDir() bool { return n.mode.IsDir() }

// looksDir also knows submodules.
func (n *node) looksDir() bool { return n.isDir() || n.mode.IsSubmodule() }

func (n *node) entry() object.Entry { return object.Entry{Mode: n.mode, ID: n.id} }

// at describes n under a name; nil for no entry, as Condition.Allows takes it.
func (n *node) at(l providers.Locator) *providers.Info {
	switch {
	case n == nil:
		return nil
	case n.looksDir():
		return &providers.Info{Locator: l, Kind: providers.KindDir}
	}
	info := describe(l, n.entry(), n.size, n.pointer)
	return &info
}

// nodes are the entries below root.
type nodes struct {
	repo *repository
	root *node
	made map[id][]byte // contents that are not in the repository yet, and may matter
}

// load makes sure that the entries of a directory are known.
func (t *nodes) load(n *node) error {
	if n.dir != nil || !n.isDir() {
		return nil
	}
	entries := []object.Entry{}
	if !n.id.IsZero() {
		raw, err := t.repo.objects.Get(n.id, odb.Tree)
		if err == nil {
			entries, err = object.Entries(raw)
		}
		if err != nil {
			return err
		}
	}
	n.dir = make(map[string]*node, len(entries))
	for _, e := range entries {
		child := &node{mode: e.Mode, id: e.ID}
		if !child.looksDir() {
			child.size = -1
		}
		n.dir[e.Name] = child
	}
	return nil
}

// child is the entry of a name in a directory, nil for none.
func (t *nodes) child(dir *node, name string) (*node, error) {
	if err := t.load(dir); err != nil {
		return nil, err
	}
	n := dir.dir[name]
	if n == nil || hidden(name) {
		return nil, nil
	}
	if n.size < 0 {
		size, err := t.repo.objects.Size(n.id)
		if err != nil {
			return nil, err
		}
		n.size = size
	}
	return n, nil
}

// find is the node at l, nil when there is none, also below a file.
func (t *nodes) find(l providers.Locator) (n *node, err error) {
	n, f, err := t.look(l)
	if err != nil || n == nil || !t.repo.large.mayBe(f, l.Parts(), n.mode, n.size) {
		return n, err
	}
	text, err := t.text(n.id)
	if err != nil {
		return nil, err
	}
	if p, ok := lfs.Parse(text); ok && t.repo.large.offers.Load() == offered {
		found := *n // it may be moved to a place where it shows other content
		found.pointer, n = &p, &found
	}
	return n, nil
}

// look is the node at l as its tree has it, and the filters of its directory.
func (t *nodes) look(l providers.Locator) (n *node, f *attributes.Filters, err error) {
	n = t.root
	for depth, name := range l.Parts() {
		if n == nil || !n.isDir() {
			return nil, f, nil
		}
		if f, err = t.filters(f, depth, n); err != nil {
			return nil, nil, err
		}
		if n, err = t.child(n, name); err != nil {
			return nil, nil, err
		}
	}
	return n, f, nil
}

// inside is the directory at l, and its filters.
func (t *nodes) inside(l providers.Locator) (n *node, f *attributes.Filters, err error) {
	n, f, err = t.look(l)
	if err == nil && n != nil && n.isDir() {
		f, err = t.filters(f, len(l.Parts()), n)
	}
	return n, f, err
}

// filters are those of a directory below others.
func (t *nodes) filters(above *attributes.Filters, depth int, dir *node) (*attributes.Filters, error) {
	if err := t.load(dir); err != nil {
		return nil, err
	}
	file := dir.dir[attributes.Name]
	if !isFile(file) {
		return above, nil
	}
	return t.repo.parsed.With(above, depth, file.id, func() ([]byte, error) {
		if text, ok := t.made[file.id]; ok {
			return text, nil
		}
		return t.repo.attributes(file.id)
	})
}

// text is a small content.
func (t *nodes) text(b id) ([]byte, error) {
	if text, ok := t.made[b]; ok {
		return text, nil
	}
	return t.repo.objects.Get(b, odb.Blob)
}

// own is a directory equal to n that may be changed.
func (t *nodes) own(n *node) (*node, error) {
	if n.mine {
		return n, nil
	}
	if err := t.load(n); err != nil {
		return nil, err
	}
	return &node{mode: object.ModeDir, dir: maps.Clone(n.dir), mine: true}, nil
}

// put makes n the entry at names below dir, with missing parents, and returns the changed dir.
// ErrNotDir when a parent is a file or link.
func (t *nodes) put(dir *node, names []string, n *node) (*node, error) {
	switch {
	case len(names) == 0:
		return n, nil
	case dir == nil:
		dir = &node{mode: object.ModeDir}
	case dir.mode.IsSubmodule():
		return nil, fmt.Errorf("in a submodule: %w", providers.ErrPermission)
	case !dir.isDir():
		return nil, providers.ErrNotDir
	}
	dir, err := t.own(dir)
	if err != nil {
		return nil, err
	}
	child, err := t.child(dir, names[0])
	if err != nil {
		return nil, err
	}
	if child, err = t.put(child, names[1:], n); err == nil {
		dir.dir[names[0]] = child
	}
	return dir, err
}

// less is dir without the entry at names, and without the directories that lose
// their last entry so.
func (t *nodes) less(dir *node, names []string) (*node, error) {
	if !dir.isDir() || len(names) == 0 {
		return dir, nil
	}
	child, err := t.child(dir, names[0])
	if err != nil || child == nil {
		return dir, err
	}
	if len(names) > 1 {
		was := child
		if child, err = t.less(child, names[1:]); err != nil {
			return nil, err
		}
		if child == was && !child.mine {
			return dir, nil
		}
	}
	if dir, err = t.own(dir); err != nil {
		return nil, err
	}
	if len(names) == 1 || child.isDir() && len(child.dir) == 0 {
		delete(dir.dir, names[0])
	} else {
		dir.dir[names[0]] = child
	}
	return dir, nil
}

// save writes the directories that a set has made into its batch, those below
// first, and returns the id of n, which may not be changed any more.
func (n *node) save(b *odb.Batch) (id, error) {
	if !n.mine {
		return n.id, nil
	}
	entries := make([]object.Entry, 0, len(n.dir))
	for name, child := range n.dir {
		at, err := child.save(b)
		if err != nil {
			return id{}, err
		}
		entries = append(entries, object.Entry{Name: name, Mode: child.mode, ID: at})
	}
	at, err := b.Add(odb.Tree, object.EncodeTree(entries))
	if err == nil {
		n.id, n.mine = at, false
	}
	return at, err
}

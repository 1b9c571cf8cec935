package memory

import (
	"slices"

	"github.com/wsmount/wsmount/providers"
)

// node is an entry. A file's or link's node never changes: a change puts a new
// node in its place, so that content handed to a reader stays what it was.
type node struct {
	info    providers.Info // without Locator
	content []byte
	op      string // the operation that wrote the content

	children map[string]*node // of a directory
	sorted   []string         // names of children; nil: to be sorted anew
}

func newDir(attr providers.Attr, metadata map[string]string) *node {
	info := providers.Info{Kind: providers.KindDir, Attr: attr, Metadata: metadata}
	return &node{info: info, children: map[string]*node{}}
}

func (n *node) isDir() bool { return n.children != nil }

// at is the description of n under the name l.
func (n *node) at(l providers.Locator) providers.Info {
	info := n.info
	info.Locator = l
	return info
}

// describe is at, or nil for nothing, as Condition.Allows takes it.
func (n *node) describe(l providers.Locator) *providers.Info {
	if n == nil {
		return nil
	}
	info := n.at(l)
	return &info
}

// names are the children in order.
func (n *node) names() []string {
	if n.sorted == nil {
		n.sorted = make([]string, 0, len(n.children))
		for name := range n.children {
			n.sorted = append(n.sorted, name)
		}
		slices.Sort(n.sorted)
	}
	return n.sorted
}

// tree is the entries below root. Every change of it goes through set, which
// can be undone; that is how a change set is all or nothing.
type tree struct {
	root *node
	undo []func() // of the changes since keep
}

// set puts n under name into dir; a nil n removes what is there.
func (t *tree) set(dir *node, name string, n *node) {
	old := dir.children[name]
	put := func(n *node) {
		if n == nil {
			delete(dir.children, name)
		} else {
			dir.children[name] = n
		}
		dir.sorted = nil
	}
	put(n)
	t.undo = append(t.undo, func() { put(old) })
}

// keep makes the changes so far final.
func (t *tree) keep() { t.undo = nil }

// rollback makes the tree what it was at keep.
func (t *tree) rollback() {
	for _, undo := range slices.Backward(t.undo) {
		undo()
	}
	t.undo = nil
}

// find is the node at l, nil when nothing is there. The error is ErrNotDir
// when a parent is a file or link.
func (t *tree) find(l providers.Locator) (*node, error) {
	n := t.root
	for _, name := range l.Parts() {
		if !n.isDir() {
			return nil, providers.ErrNotDir
		}
		if n = n.children[name]; n == nil {
			return nil, nil
		}
	}
	return n, nil
}

// look is find for readers: below a file there is nothing.
func (t *tree) look(l providers.Locator) (*node, error) {
	n, err := t.find(l)
	if err != nil || n == nil {
		return nil, providers.ErrNotExist
	}
	return n, nil
}

// mkdirs is the directory at l, made with all its parents where missing.
func (t *tree) mkdirs(l providers.Locator) (*node, error) {
	dir := t.root
	for _, name := range l.Parts() {
		next := dir.children[name]
		switch {
		case next == nil:
			next = newDir(providers.Attr{}, nil)
			t.set(dir, name, next)
		case !next.isDir():
			return nil, providers.ErrNotDir
		}
		dir = next
	}
	return dir, nil
}

// put is set at l, with its missing parents.
func (t *tree) put(l providers.Locator, n *node) error {
	dir, err := t.mkdirs(l.Parent())
	if err != nil {
		return err
	}
	t.set(dir, l.Name(), n)
	return nil
}

// remove is set to nothing at l, whose parents exist.
func (t *tree) remove(l providers.Locator) {
	dir, err := t.look(l.Parent())
	if err == nil {
		t.set(dir, l.Name(), nil)
	}
}

package memory

import (
	"encoding/hex"

	"github.com/wsmount/wsmount/providers"
)

// node is an entry. It never changes: a change puts a new node in its place and in that of
// every directory above. So a root stands for a whole tree, which stays as it is, and a verb
// that fails goes on with the old root.
type node struct {
	kind     providers.Kind
	attr     providers.Attr
	metadata map[string]string
	version  providers.Version
	sum      *[32]byte // hash of the content, unless Options.NoDigest
	content  []byte
	op       string   // the operation that made or last changed it
	entries  *entries // of a directory
	implied  bool     // a directory that was not made by itself
}

// emptyDir is the directory that a missing parent becomes.
var emptyDir = &node{kind: providers.KindDir, implied: true}

func (n *node) isDir() bool { return n.kind == providers.KindDir }

// at is the description of n under the name l.
func (n *node) at(l providers.Locator) providers.Info {
	info := providers.Info{
		Locator: l, Kind: n.kind, Size: int64(len(n.content)), Version: n.version, Attr: n.attr, Metadata: n.metadata,
	}
	if n.sum != nil {
		info.Digest = "sha256:" + hex.EncodeToString(n.sum[:])
	}
	return info
}

// describe is at, or nil for no entry, as Condition.Allows takes it.
func (n *node) describe(l providers.Locator) *providers.Info {
	if n == nil {
		return nil
	}
	info := n.at(l)
	return &info
}

// with is the directory n with child under name; without it, if child is nil.
func (n *node) with(name string, child *node) *node {
	changed := *n
	if child == nil {
		changed.entries = n.entries.remove(name)
	} else {
		changed.entries = n.entries.put(name, child)
	}
	return &changed
}

// tree is the entries below root.
type tree struct {
	root    *node
	flat    bool // a directory is removed with its last entry
	implied bool // a directory that was not made by itself is
}

// find is the node at l, nil when there is none. The error is ErrNotDir when a parent is a file
// or link.
func (t *tree) find(l providers.Locator) (*node, error) {
	n := t.root
	for _, name := range l.Parts() {
		if !n.isDir() {
			return nil, providers.ErrNotDir
		}
		if n = n.entries.get(name); n == nil {
			return nil, nil
		}
	}
	return n, nil
}

// look is find for readers: below a file there is no entry.
func (t *tree) look(l providers.Locator) (*node, error) {
	n, err := t.find(l)
	if err != nil || n == nil {
		return nil, providers.ErrNotExist
	}
	return n, nil
}

// put makes n the entry at l, with the parents that are missing. ErrNotDir when one is a file
// or link.
func (t *tree) put(l providers.Locator, n *node) error {
	root, err := put(t.root, l.Parts(), n)
	if err == nil {
		t.root = root
	}
	return err
}

func put(dir *node, names []string, n *node) (*node, error) {
	switch {
	case len(names) == 0:
		return n, nil
	case dir == nil:
		dir = emptyDir
	case !dir.isDir():
		return nil, providers.ErrNotDir
	}
	child, err := put(dir.entries.get(names[0]), names[1:], n)
	if err != nil {
		return nil, err
	}
	return dir.with(names[0], child), nil
}

// own makes l and the directories above it stay without entries.
func (t *tree) own(l providers.Locator) error {
	for ; !l.IsRoot(); l = l.Parent() {
		dir, err := t.look(l)
		if err != nil || !dir.implied {
			return err
		}
		stays := *dir
		stays.implied = false
		if err := t.put(l, &stays); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the entry at l, if there is one.
func (t *tree) remove(l providers.Locator) {
	t.root = less(t.root, l.Parts(), t.goes)
}

// goes reports whether a directory is removed with its last entry.
func (t *tree) goes(dir *node) bool { return t.flat || t.implied && dir.implied }

// less is n without the entry at names, and without the directories that lose their last entry
// by that and are removed with it.
func less(n *node, names []string, goes func(dir *node) bool) *node {
	if !n.isDir() || len(names) == 0 {
		return n
	}
	child := n.entries.get(names[0])
	if child == nil {
		return n
	}
	if len(names) == 1 {
		child = nil
	} else {
		child = less(child, names[1:], goes)
		if child.isDir() && child.entries == nil && goes(child) {
			child = nil
		}
	}
	return n.with(names[0], child)
}

// Package trees changes trees of git in memory. A change copies the directories from the root down
// to it, and reads no more of the repository than those.
//
// It knows entries by their modes and ids, and neither commits nor what files mean.
//
//	edit := trees.Editor{Objects: objects}
//	root, err := edit.Put(trees.Dir(tree), []string{"docs", "a.md"}, &trees.Node{Mode: object.ModeFile, ID: blob})
//	tree, err = root.Save(batch)
package trees

import (
	"fmt"
	"maps"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// Node is an entry of a tree; nil stands for no entry. The entries of a directory are loaded on
// demand, so a Node, with all below it, is for one goroutine.
type Node struct {
	Mode object.Mode
	ID   odb.ID // unless it is a directory that was changed and not saved
	Size int64  // of a file or link; negative: not known yet

	entries map[string]*Node // of a directory; nil: not loaded
	mine    bool             // made by an Editor: it may be changed, and has no id yet
}

// Dir is the directory of a tree; zero: one without entries.
func Dir(tree odb.ID) *Node { return &Node{Mode: object.ModeDir, ID: tree} }

// IsDir reports whether n is a directory.
func (n *Node) IsDir() bool { return n != nil && n.Mode.IsDir() }

// LooksDir reports whether n is a directory or a submodule.
func (n *Node) LooksDir() bool { return n.IsDir() || n != nil && n.Mode.IsSubmodule() }

// IsFile reports whether n is a file, and no link.
func (n *Node) IsFile() bool { return n != nil && !n.LooksDir() && !n.Mode.IsLink() }

// IsEmptied reports whether n is a directory that was changed and has no entry left.
func (n *Node) IsEmptied() bool { return n != nil && n.mine && len(n.entries) == 0 }

// Equal compares entries as they are in a tree. A directory that was changed and not saved is
// equal to no other.
func Equal(a, b *Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return !a.mine && !b.mine && a.Mode == b.Mode && a.ID == b.ID
}

// Hidden reports whether an entry of a tree is not shown, since no local file system could show
// it, or because it is taken for ".git".
func Hidden(name string) bool {
	return name == "" || name == "." || name == ".." || len(name) > providers.MaxName || strings.Contains(name, "/") || providers.IsDotGit(name)
}

// Set makes child the entry of a name, or removes that entry if child is nil. n is a directory
// from [Editor.Own].
func (n *Node) Set(name string, child *Node) {
	if child == nil {
		delete(n.entries, name)
	} else {
		n.entries[name] = child
	}
}

// Save writes the changed directories at n and below into a batch, those below first, and returns
// the id of n. n may not be changed any more.
func (n *Node) Save(b *odb.Batch) (odb.ID, error) {
	if !n.mine {
		return n.ID, nil
	}
	entries := make([]object.Entry, 0, len(n.entries))
	for name, child := range n.entries {
		at, err := child.Save(b)
		if err != nil {
			return odb.ID{}, err
		}
		entries = append(entries, object.Entry{Name: name, Mode: child.Mode, ID: at})
	}
	at, err := b.Add(odb.Tree, object.EncodeTree(entries))
	if err == nil {
		n.ID, n.mine = at, false
	}
	return at, err
}

// Editor makes changed trees of those in a repository. Its errors are those of reading objects,
// unless a method names others.
type Editor struct {
	Objects *odb.Store
}

// Entries are those of a directory, hidden ones too; nil for any other node. They may not be
// changed. Sizes of files and links may not be known.
func (t Editor) Entries(n *Node) (map[string]*Node, error) {
	if !n.IsDir() {
		return nil, nil
	}
	if n.entries != nil {
		return n.entries, nil
	}
	entries := []object.Entry{}
	if !n.ID.IsZero() {
		raw, err := t.Objects.Get(n.ID, odb.Tree)
		if err == nil {
			entries, err = object.Entries(raw)
		}
		if err != nil {
			return nil, err
		}
	}
	n.entries = make(map[string]*Node, len(entries))
	for _, e := range entries {
		child := &Node{Mode: e.Mode, ID: e.ID}
		if !child.LooksDir() {
			child.Size = -1
		}
		n.entries[e.Name] = child
	}
	return n.entries, nil
}

// Child is the entry of a name in a directory, with its size; nil for none, and for a hidden one.
func (t Editor) Child(dir *Node, name string) (*Node, error) {
	entries, err := t.Entries(dir)
	if err != nil {
		return nil, err
	}
	n := entries[name]
	if n == nil || Hidden(name) {
		return nil, nil
	}
	if n.Size < 0 {
		size, err := t.Objects.Size(n.ID)
		if err != nil {
			return nil, err
		}
		n.Size = size
	}
	return n, nil
}

// Own is a directory equal to n that may be changed: n itself if it is one. That of nil is empty.
func (t Editor) Own(n *Node) (*Node, error) {
	if n == nil {
		return &Node{Mode: object.ModeDir, entries: map[string]*Node{}, mine: true}, nil
	}
	if n.mine {
		return n, nil
	}
	entries, err := t.Entries(n)
	if err != nil {
		return nil, err
	}
	return &Node{Mode: object.ModeDir, entries: maps.Clone(entries), mine: true}, nil
}

// Put makes n the entry at names below dir, with missing parents, and returns the changed dir.
// ErrNotDir when a parent is a file or link, and ErrPermission when it is a submodule.
func (t Editor) Put(dir *Node, names []string, n *Node) (*Node, error) {
	switch {
	case len(names) == 0:
		return n, nil
	case dir == nil:
	case dir.Mode.IsSubmodule():
		return nil, fmt.Errorf("in a submodule: %w", providers.ErrPermission)
	case !dir.IsDir():
		return nil, providers.ErrNotDir
	}
	dir, err := t.Own(dir)
	if err != nil {
		return nil, err
	}
	child, err := t.Child(dir, names[0])
	if err != nil {
		return nil, err
	}
	if child, err = t.Put(child, names[1:], n); err == nil {
		dir.Set(names[0], child)
	}
	return dir, err
}

// Without is dir less the entry at names, and less the directories that lose their last entry so.
func (t Editor) Without(dir *Node, names []string) (*Node, error) {
	if !dir.IsDir() || len(names) == 0 {
		return dir, nil
	}
	child, err := t.Child(dir, names[0])
	if err != nil || child == nil {
		return dir, err
	}
	if len(names) > 1 {
		was := child
		if child, err = t.Without(child, names[1:]); err != nil {
			return nil, err
		}
		if child == was && !child.mine {
			return dir, nil
		}
	}
	if dir, err = t.Own(dir); err != nil {
		return nil, err
	}
	if len(names) == 1 || child.IsEmptied() {
		child = nil
	}
	dir.Set(names[0], child)
	return dir, nil
}

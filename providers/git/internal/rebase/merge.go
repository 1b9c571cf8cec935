package rebase

import (
	"fmt"
	"maps"
	"slices"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/trees"
)

// merging makes the change from base to theirs in ours. A file that one side has only renamed,
// and the other changed, is changed under its new name.
type merging struct {
	*rebasing
	base, ours, theirs *trees.Node // trees

	moved [2]*renames // by ours and by theirs; nil: not looked for yet
	late  []follower
}

func (m *merging) merge() (*trees.Node, error) {
	if err := m.checkRenames(); err != nil {
		return nil, err
	}
	root, err := m.tree("", m.base, m.ours, m.theirs)
	if err == nil && root == nil {
		root, err = m.edit.Own(nil)
	}
	if err != nil {
		return nil, err
	}
	return m.follow(root)
}

func clash(path string) error {
	return fmt.Errorf("%s: changed on both sides: %w", path, providers.ErrConflict)
}

// entry is the result for a name when the change from base to theirs is made in ours; nil stands
// for no entry, in all of them. A file may have taken the place of a directory on one side: they
// are merged apart, and only one may be left.
func (m *merging) entry(path string, base, ours, theirs *trees.Node) (*trees.Node, error) {
	switch {
	case trees.Equal(base, theirs), trees.Equal(ours, theirs):
		return ours, nil
	case trees.Equal(base, ours):
		return theirs, nil
	}
	file, err := m.leaf(path, leafOf(base), leafOf(ours), leafOf(theirs))
	if err != nil {
		return nil, err
	}
	tree, err := m.tree(path, treeOf(base), treeOf(ours), treeOf(theirs))
	switch {
	case err != nil:
		return nil, err
	case file != nil && tree != nil:
		return nil, clash(path)
	case file != nil:
		return file, nil
	}
	return tree, nil
}

// leafOf is n unless it is a directory, and treeOf n if it is one.
func leafOf(n *trees.Node) *trees.Node {
	if n.IsDir() {
		return nil
	}
	return n
}

func treeOf(n *trees.Node) *trees.Node {
	if n.IsDir() {
		return n
	}
	return nil
}

// leaf is entry for files, links and submodules.
func (m *merging) leaf(path string, base, ours, theirs *trees.Node) (*trees.Node, error) {
	switch {
	case trees.Equal(base, theirs), trees.Equal(ours, theirs):
		return ours, nil
	case trees.Equal(base, ours):
		return theirs, nil
	case ours == nil:
		return nil, m.followTo(path, byOurs, base, theirs)
	case theirs == nil:
		return nil, m.followTo(path, byTheirs, base, ours)
	}
	if base == nil {
		base = m.fromSame(path)
	}
	if base == nil && ours.IsFile() && theirs.IsFile() && ours.Mode == theirs.Mode {
		union, err := m.isUnion(m.ours, path)
		if err != nil {
			return nil, err
		}
		if union || ours.ID == emptyBlob || theirs.ID == emptyBlob {
			base = &trees.Node{Mode: ours.Mode, ID: emptyBlob} // as if it had been made without content before
		}
	}
	if base.IsFile() && ours.IsFile() && theirs.IsFile() {
		return m.file(path, base, ours, theirs)
	}
	return nil, clash(path)
}

// tree is entry for directories.
func (m *merging) tree(path string, base, ours, theirs *trees.Node) (*trees.Node, error) {
	switch {
	case trees.Equal(base, theirs), trees.Equal(ours, theirs):
		return ours, nil
	case trees.Equal(base, ours):
		return theirs, nil
	}
	names := map[string]*trees.Node{}
	var sides [3]map[string]*trees.Node
	for i, n := range []*trees.Node{base, ours, theirs} {
		var err error
		if sides[i], err = m.edit.Entries(n); err != nil {
			return nil, err
		}
		maps.Copy(names, sides[i])
	}
	made, err := m.edit.Own(ours)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n, err := m.entry(path+"/"+name, sides[0][name], sides[1][name], sides[2][name])
		if err != nil {
			return nil, err
		}
		made.Set(name, n)
	}
	if made.IsEmptied() {
		return nil, nil
	}
	return made, nil
}

package git

import (
	"fmt"
	"maps"
	"slices"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/attributes"
	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// merging makes the change from base to theirs in ours. A file that one side has only renamed,
// and the other changed, is changed under its new name.
type merging struct {
	*rebasing
	base, ours, theirs *node // trees

	moved [2]*renames // by ours and by theirs; nil: not looked for yet
	late  []follower
}

func treeNode(tree id) *node { return &node{mode: object.ModeDir, id: tree} }

func (m *merging) merge() (*node, error) {
	if err := m.checkRenames(); err != nil {
		return nil, err
	}
	root, err := m.tree("", m.base, m.ours, m.theirs)
	if err != nil {
		return nil, err
	}
	if root == nil {
		root = treeNode(id{})
		root.mine, root.dir = true, map[string]*node{}
	}
	return m.follow(root)
}

func clash(path string) error {
	return fmt.Errorf("%s: changed on both sides: %w", path, providers.ErrConflict)
}

// entry is the result for a name when the change from base to theirs is made in ours; nil stands
// for no entry, in all of them. A file may have taken the place of a directory on one side: they
// are merged apart, and only one may be left.
func (m *merging) entry(path string, base, ours, theirs *node) (*node, error) {
	switch {
	case equal(base, theirs), equal(ours, theirs):
		return ours, nil
	case equal(base, ours):
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
func leafOf(n *node) *node {
	if isTree(n) {
		return nil
	}
	return n
}

func treeOf(n *node) *node {
	if isTree(n) {
		return n
	}
	return nil
}

// leaf is entry for files, links and submodules.
func (m *merging) leaf(path string, base, ours, theirs *node) (*node, error) {
	switch {
	case equal(base, theirs), equal(ours, theirs):
		return ours, nil
	case equal(base, ours):
		return theirs, nil
	case ours == nil:
		return nil, m.followTo(path, byOurs, base, theirs)
	case theirs == nil:
		return nil, m.followTo(path, byTheirs, base, ours)
	}
	if base == nil {
		base = m.fromSame(path)
	}
	if base == nil && isFile(ours) && isFile(theirs) && ours.mode == theirs.mode {
		union, err := m.isUnion(m.ours, path)
		if err != nil {
			return nil, err
		}
		if union || ours.id == emptyBlob || theirs.id == emptyBlob {
			base = &node{mode: ours.mode, id: emptyBlob} // as if it had been made without content before
		}
	}
	if isFile(base) && isFile(ours) && isFile(theirs) {
		return m.file(path, base, ours, theirs)
	}
	return nil, clash(path)
}

func isTree(n *node) bool { return n != nil && n.isDir() }

func isFile(n *node) bool { return n != nil && !n.looksDir() && !n.mode.IsLink() }

// equal compares entries as they are in a tree.
func equal(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return !a.mine && !b.mine && a.mode == b.mode && a.id == b.id
}

// tree is entry for directories.
func (m *merging) tree(path string, base, ours, theirs *node) (*node, error) {
	switch {
	case equal(base, theirs), equal(ours, theirs):
		return ours, nil
	case equal(base, ours):
		return theirs, nil
	}
	sides := [3]*node{base, ours, theirs}
	names := map[string]*node{}
	for i, n := range sides {
		if n == nil {
			n = &node{mode: object.ModeDir, dir: map[string]*node{}}
			sides[i] = n
		}
		if err := m.nodes.load(n); err != nil {
			return nil, err
		}
		maps.Copy(names, n.dir)
	}
	base, theirs = sides[0], sides[2]
	made, err := m.nodes.own(sides[1])
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n, err := m.entry(path+"/"+name, base.dir[name], made.dir[name], theirs.dir[name])
		if err != nil {
			return nil, err
		}
		if n == nil {
			delete(made.dir, name)
		} else {
			made.dir[name] = n
		}
	}
	if len(made.dir) == 0 {
		return nil, nil
	}
	return made, nil
}

// file merges contents, and modes by themselves.
func (s *rebasing) file(path string, base, ours, theirs *node) (*node, error) {
	n := &node{mode: ours.mode, id: ours.id, size: ours.size}
	if base.mode != theirs.mode {
		n.mode = theirs.mode
	}
	switch {
	case base.id == theirs.id || ours.id == theirs.id:
		return n, nil
	case base.id == ours.id:
		n.id, n.size = theirs.id, theirs.size
		return n, nil
	}
	if err := s.repo.partial.need(s.ctx, s.here(base.id, ours.id, theirs.id)...); err != nil {
		return nil, err
	}
	var texts [3][]byte
	for i, side := range []*node{base, ours, theirs} {
		var err error
		if texts[i], err = s.text(side.id); err != nil {
			return nil, err
		}
	}
	merged, ok := []byte(nil), false
	isLarge, err := s.isLarge(path, texts[:])
	if err != nil {
		return nil, err
	}
	if texts[0] != nil && texts[1] != nil && texts[2] != nil && !isLarge {
		union, err := s.isUnion(s.nodes.root, path)
		if err != nil {
			return nil, err
		}
		merged, ok = s.combine(texts[0], texts[1], texts[2], union)
	}
	if !ok {
		return nil, fmt.Errorf("%s: changed on both sides: %w", path, providers.ErrConflict)
	}
	if n.id, err = s.batch.Add(odb.Blob, merged); err != nil {
		return nil, err
	}
	n.size, s.made[n.id] = int64(len(merged)), merged
	return n, nil
}

// isLarge reports whether a file goes through LFS, or one of the sides is the text of
// a pointer: lines of pointers are no lines of the content.
func (s *rebasing) isLarge(path string, sides [][]byte) (bool, error) {
	for _, text := range sides {
		if _, is := lfs.Parse(text); is {
			return true, nil
		}
	}
	filter, err := s.attribute(s.nodes.root, path, "filter")
	return filter == attributes.FilterLFS, err
}

// attribute is the value that a tree gives a path, by the nearest directory that sets it.
func (s *rebasing) attribute(root *node, at, attribute string) (string, error) {
	parts, dir, value := names(at), root, ""
	var known attributes.Macros
	for depth := range parts {
		if err := s.nodes.load(dir); err != nil {
			return "", err
		}
		if file := dir.dir[attributes.Name]; isFile(file) {
			text, err := s.text(file.id)
			if err != nil {
				return "", err
			}
			var lines []attributes.Line
			lines, known = attributes.Parse(string(text), known, depth == 0)
			if v, said := attributes.Value(lines, parts[depth:], attribute); said {
				value = v
			}
		}
		if dir = dir.dir[parts[depth]]; !isTree(dir) {
			break
		}
	}
	return value, nil
}

// isUnion reports whether a tree sets merge=union for a file: the lines of both
// sides are kept.
func (s *rebasing) isUnion(root *node, at string) (bool, error) {
	driver, err := s.attribute(root, at, "merge")
	return driver == "union", err
}

package git

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// The sides of a merge.
const (
	byOurs = iota
	byTheirs
)

// renames are a side's files under another name, with the same content, and all names that the
// side no longer has.
type renames struct {
	to   map[string]string // by the old path
	from map[string]string
	gone map[string]bool // all old paths
}

// follower is a change that goes to a new name. Paths begin with a slash.
type follower struct {
	to   string
	side int // that has the new name
	n    *node
}

// renamesOf finds a side's renames, as git does when it looks for equal content
// only: each new file, in the order of their paths, takes the first old one that
// no other took, if it can one of its own base name. Empty files are not followed.
func (m *merging) renamesOf(side int) (*renames, error) {
	if m.moved[side] != nil {
		return m.moved[side], nil
	}
	var c changes
	if err := c.below(m.nodes, "", m.base, [2]*node{m.ours, m.theirs}[side]); err != nil {
		return nil, err
	}
	r := &renames{to: map[string]string{}, from: map[string]string{}, gone: map[string]bool{}}
	sources := map[id][]string{}
	for _, at := range slices.Sorted(maps.Keys(c.gone)) {
		r.gone[at] = true
		sources[c.gone[at].id] = append(sources[c.gone[at].id], at)
	}
	for _, at := range slices.Sorted(maps.Keys(c.made)) {
		if from := r.source(at, c.made[at], sources[c.made[at].id], c.gone); from != "" {
			r.to[from], r.from[at] = at, from
		}
	}
	m.moved[side] = r
	return r, nil
}

// emptyBlob is the id of empty content.
var emptyBlob = id{0xe6, 0x9d, 0xe2, 0x9b, 0xb2, 0xd1, 0xd6, 0x43, 0x4b, 0x8b, 0x29, 0xae, 0x77, 0x5a, 0xd8, 0xc2, 0xe4, 0x8c, 0x53, 0x91}

func (r *renames) source(at string, n *node, sources []string, gone map[string]*node) (best string) {
	if n.id == emptyBlob || n.mode.IsSubmodule() {
		return ""
	}
	for _, from := range sources {
		switch {
		case r.to[from] != "" || !alike(n, gone[from]):
		case path.Base(from) == path.Base(at):
			return from
		case best == "":
			best = from
		}
	}
	return best
}

// alike reports whether two are files both, or links both.
func alike(a, b *node) bool { return isFile(a) && isFile(b) || a.mode == b.mode }

// changes are the paths of files and links that a side has and its base has not, and the other
// way round.
type changes struct{ made, gone map[string]*node }

func (c *changes) below(t *nodes, at string, base, side *node) error {
	if equal(base, side) {
		return nil
	}
	names := map[string]bool{}
	for _, n := range []*node{base, side} {
		if n == nil {
			continue
		}
		if err := t.load(n); err != nil {
			return err
		}
		for name := range n.dir {
			names[name] = true
		}
	}
	for name := range names {
		was, is := entryOf(base, name), entryOf(side, name)
		if was, is := leafOf(was), leafOf(is); was == nil && is != nil {
			c.note(&c.made, at+"/"+name, is)
		} else if was != nil && is == nil {
			c.note(&c.gone, at+"/"+name, was)
		}
		if err := c.below(t, at+"/"+name, treeOf(was), treeOf(is)); err != nil {
			return err
		}
	}
	return nil
}

func (c *changes) note(in *map[string]*node, at string, n *node) {
	if *in == nil {
		*in = map[string]*node{}
	}
	(*in)[at] = n
}

func entryOf(dir *node, name string) *node {
	if dir == nil {
		return nil
	}
	return dir.dir[name]
}

// checkRenames refuses a name that both sides no longer have, unless both deleted it or renamed
// it alike: only a person can say where it belongs.
func (m *merging) checkRenames() error {
	theirs, err := m.renamesOf(byTheirs)
	if err != nil {
		return err
	}
	for _, at := range slices.Sorted(maps.Keys(theirs.gone)) {
		there, err := m.lookIn(m.ours, at)
		if err != nil {
			return err
		}
		if leafOf(there) != nil {
			continue
		}
		ours, err := m.renamesOf(byOurs)
		if err != nil {
			return err
		}
		if ours.to[at] != theirs.to[at] {
			return clash(at)
		}
	}
	return nil
}

// lookIn is the entry at a path of a tree; nil for none.
func (m *merging) lookIn(n *node, at string) (*node, error) {
	for _, name := range names(at) {
		if !isTree(n) {
			return nil, nil
		}
		if err := m.nodes.load(n); err != nil {
			return nil, err
		}
		n = n.dir[name]
	}
	return n, nil
}

func names(at string) []string { return strings.Split(at[1:], "/") }

// followTo moves a change of a file to the other side's new name for it.
func (m *merging) followTo(at string, side int, base, changed *node) error {
	if base == nil {
		return clash(at)
	}
	r, err := m.renamesOf(side)
	if err != nil {
		return err
	}
	to := r.to[at]
	if to == "" || !alike(base, changed) {
		return clash(at)
	}
	n := &node{mode: changed.mode, id: changed.id, size: changed.size}
	there, err := m.lookIn([2]*node{m.ours, m.theirs}[side], to)
	if err != nil {
		return err
	}
	if base.mode != there.mode {
		n.mode = there.mode
	}
	m.late = append(m.late, follower{to, side, n})
	return nil
}

// fromSame is the base's entry that both sides have renamed to a path; nil for none.
func (m *merging) fromSame(at string) *node {
	ours, err := m.renamesOf(byOurs)
	if err != nil {
		return nil
	}
	theirs, err := m.renamesOf(byTheirs)
	if from := theirs.from[at]; err == nil && from != "" && ours.from[at] == from {
		n, _ := m.lookIn(m.base, from)
		return n
	}
	return nil
}

// follow makes the changes that go to a new name, where the other side must have no other change.
func (m *merging) follow(root *node) (*node, error) {
	for _, f := range m.late {
		other, err := m.lookIn([2]*node{m.theirs, m.ours}[f.side], f.to)
		if err != nil {
			return nil, err
		}
		if other = leafOf(other); other != nil && !equal(other, f.n) {
			return nil, clash(f.to)
		}
		t := &nodes{repo: m.repo, root: root}
		if root, err = t.put(root, names(f.to), f.n); err != nil {
			return nil, err
		}
	}
	return root, nil
}

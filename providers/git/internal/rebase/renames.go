package rebase

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers/git/internal/trees"
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
	n    *trees.Node
}

// renamesOf finds a side's renames, as git does when it looks for equal content
// only: each new file, in the order of their paths, takes the first old one that
// no other took, if it can one of its own base name. Empty files are not followed.
func (m *merging) renamesOf(side int) (*renames, error) {
	if m.moved[side] != nil {
		return m.moved[side], nil
	}
	var c changes
	if err := c.below(m.edit, "", m.base, [2]*trees.Node{m.ours, m.theirs}[side]); err != nil {
		return nil, err
	}
	r := &renames{to: map[string]string{}, from: map[string]string{}, gone: map[string]bool{}}
	sources := map[id][]string{}
	for _, at := range slices.Sorted(maps.Keys(c.gone)) {
		r.gone[at] = true
		sources[c.gone[at].ID] = append(sources[c.gone[at].ID], at)
	}
	for _, at := range slices.Sorted(maps.Keys(c.made)) {
		if from := r.source(at, c.made[at], sources[c.made[at].ID], c.gone); from != "" {
			r.to[from], r.from[at] = at, from
		}
	}
	m.moved[side] = r
	return r, nil
}

// emptyBlob is the id of empty content.
var emptyBlob = id{0xe6, 0x9d, 0xe2, 0x9b, 0xb2, 0xd1, 0xd6, 0x43, 0x4b, 0x8b, 0x29, 0xae, 0x77, 0x5a, 0xd8, 0xc2, 0xe4, 0x8c, 0x53, 0x91}

func (r *renames) source(at string, n *trees.Node, sources []string, gone map[string]*trees.Node) (best string) {
	if n.ID == emptyBlob || n.Mode.IsSubmodule() {
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
func alike(a, b *trees.Node) bool { return a.IsFile() && b.IsFile() || a.Mode == b.Mode }

// changes are the paths of files and links that a side has and its base has not, and the other
// way round.
type changes struct{ made, gone map[string]*trees.Node }

func (c *changes) below(edit trees.Editor, at string, base, side *trees.Node) error {
	if trees.Equal(base, side) {
		return nil
	}
	had, err := edit.Entries(base)
	if err != nil {
		return err
	}
	has, err := edit.Entries(side)
	if err != nil {
		return err
	}
	names := map[string]*trees.Node{}
	maps.Copy(names, had)
	maps.Copy(names, has)
	for name := range names {
		was, is := had[name], has[name]
		if was, is := leafOf(was), leafOf(is); was == nil && is != nil {
			c.note(&c.made, at+"/"+name, is)
		} else if was != nil && is == nil {
			c.note(&c.gone, at+"/"+name, was)
		}
		if err := c.below(edit, at+"/"+name, treeOf(was), treeOf(is)); err != nil {
			return err
		}
	}
	return nil
}

func (c *changes) note(in *map[string]*trees.Node, at string, n *trees.Node) {
	if *in == nil {
		*in = map[string]*trees.Node{}
	}
	(*in)[at] = n
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
func (m *merging) lookIn(n *trees.Node, at string) (*trees.Node, error) {
	for _, name := range names(at) {
		if !n.IsDir() {
			return nil, nil
		}
		entries, err := m.edit.Entries(n)
		if err != nil {
			return nil, err
		}
		n = entries[name]
	}
	return n, nil
}

func names(at string) []string { return strings.Split(at[1:], "/") }

// followTo moves a change of a file to the other side's new name for it.
func (m *merging) followTo(at string, side int, base, changed *trees.Node) error {
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
	n := &trees.Node{Mode: changed.Mode, ID: changed.ID, Size: changed.Size}
	there, err := m.lookIn([2]*trees.Node{m.ours, m.theirs}[side], to)
	if err != nil {
		return err
	}
	if base.Mode != there.Mode {
		n.Mode = there.Mode
	}
	m.late = append(m.late, follower{to, side, n})
	return nil
}

// fromSame is the base's entry that both sides have renamed to a path; nil for none.
func (m *merging) fromSame(at string) *trees.Node {
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
func (m *merging) follow(root *trees.Node) (*trees.Node, error) {
	for _, f := range m.late {
		other, err := m.lookIn([2]*trees.Node{m.theirs, m.ours}[f.side], f.to)
		if err != nil {
			return nil, err
		}
		if other = leafOf(other); other != nil && !trees.Equal(other, f.n) {
			return nil, clash(f.to)
		}
		if root, err = m.edit.Put(root, names(f.to), f.n); err != nil {
			return nil, err
		}
	}
	return root, nil
}

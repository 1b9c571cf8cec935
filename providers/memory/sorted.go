package memory

import "strings"

// entries are the children of a directory in the order of their names: a treap that never
// changes. A change makes a new one, which shares the unchanged parts with the old one, so that
// the past costs nothing and is read without a lock. nil is empty.
type entries struct {
	name        string
	node        *node
	left, right *entries
	priority    uint32 // the highest of any part is its root
}

// above reports whether an entry is nearer to the root than another, so that the same names
// make the same tree, in any order of insertion.
func (e *entries) above(f *entries) bool {
	return e.priority > f.priority || e.priority == f.priority && e.name < f.name
}

// priorityOf is FNV-1a with a final mixing: similar names must not turn the tree into a list.
func priorityOf(name string) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	h = (h ^ h>>16) * 0x85ebca6b
	return h ^ h>>13
}

func (e *entries) get(name string) *node {
	for e != nil {
		switch c := strings.Compare(name, e.name); {
		case c == 0:
			return e.node
		case c < 0:
			e = e.left
		default:
			e = e.right
		}
	}
	return nil
}

// with is e with other children.
func (e *entries) with(left, right *entries) *entries {
	return &entries{e.name, e.node, left, right, e.priority}
}

func (e *entries) put(name string, n *node) *entries {
	if e == nil {
		return &entries{name: name, node: n, priority: priorityOf(name)}
	}
	switch c := strings.Compare(name, e.name); {
	case c == 0:
		return &entries{name, n, e.left, e.right, e.priority}
	case c < 0:
		left := e.left.put(name, n)
		if left.above(e) {
			return left.with(left.left, e.with(left.right, e.right))
		}
		return e.with(left, e.right)
	default:
		right := e.right.put(name, n)
		if right.above(e) {
			return right.with(e.with(e.left, right.left), right.right)
		}
		return e.with(e.left, right)
	}
}

func (e *entries) remove(name string) *entries {
	if e == nil {
		return nil
	}
	switch c := strings.Compare(name, e.name); {
	case c == 0:
		return join(e.left, e.right)
	case c < 0:
		return e.with(e.left.remove(name), e.right)
	default:
		return e.with(e.left, e.right.remove(name))
	}
}

// join is all of a and b; the names of a come before those of b.
func join(a, b *entries) *entries {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.above(b):
		return a.with(a.left, join(a.right, b))
	default:
		return b.with(join(a, b.left), b.right)
	}
}

// from visits the names from first on, in order, until visit says false.
func (e *entries) from(first string, visit func(name string, n *node) bool) bool {
	if e == nil {
		return true
	}
	if e.name >= first && (!e.left.from(first, visit) || !visit(e.name, e.node)) {
		return false
	}
	return e.right.from(first, visit)
}

package memory

import (
	"fmt"

	"github.com/wsmount/wsmount/providers"
)

// run applies a set to the tree before it, by the rules of providers.ChangeSet. It looks at the
// tree before for all conditions and everything that is taken, so that the order of the changes
// does not matter.
type run struct {
	before, after tree
	mint          *mint
	set           providers.ChangeSet
	bodies        [][]byte
	places        providers.ChangePlaces
}

func newRun(t tree, m *mint, set providers.ChangeSet, bodies [][]byte) *run {
	return &run{before: t, after: t, mint: m, set: set, bodies: bodies}
}

// do leaves the new tree in after and returns the entry that each change left.
func (r *run) do() ([]providers.Info, error) {
	for _, c := range r.set.Changes {
		if err := r.places.Add(c); err != nil {
			return nil, failed(c, err)
		}
	}
	for i, c := range r.set.Changes {
		if err := r.check(i, c); err != nil {
			return nil, failed(c, err)
		}
	}
	for l := range r.places.Deleted() {
		if n, _ := r.before.look(l); n != nil {
			r.mint.tick()
			r.after.remove(l)
		}
	}
	for i, c := range r.places.Made() {
		if err := r.place(i, c); err != nil {
			return nil, failed(c, err)
		}
	}
	return r.left(), nil
}

// failed names the change that failed.
func failed(c providers.Change, err error) error {
	return providers.Fail(name, c.Method(), c.Locator, err, providers.ErrUnavailable)
}

func (r *run) check(i int, c providers.Change) error {
	switch {
	case c.Delete:
		return r.checkDelete(c)
	case !c.From.IsRoot():
		return r.checkFrom(i, c)
	case c.Dir:
		return r.checkMkdir(c)
	}
	if err := checkWrite(c.Locator, int64(len(r.bodies[i])), c.Kind, r.mint.caps); err != nil {
		return err
	}
	_, standing := r.standing(c.Locator)
	return c.If.Allows(providers.MethodWrite, standing.describe(c.Locator))
}

func (r *run) checkDelete(c providers.Change) error {
	n, err := r.before.look(c.Locator)
	if err != nil {
		n = nil
	}
	cond := c.If
	if c.Dir {
		cond = providers.IfDir()
	}
	if err := cond.Allows(providers.MethodDelete, n.describe(c.Locator)); err != nil {
		return err
	}
	if n != nil && n.isDir() && !r.places.IsTaken(c.Locator) && !r.emptied(c.Locator, n) {
		return providers.ErrNotEmpty
	}
	return nil
}

// emptied reports whether the set deletes all entries of the directory n. Where directories
// come and go with their entries, directories below n need no deletion of their own.
func (r *run) emptied(l providers.Locator, n *node) bool {
	return n.entries.from("", func(name string, child *node) bool {
		at := below(l, name)
		return r.places.IsDeleted(at) || r.before.flat && child.isDir() && r.emptied(at, child)
	})
}

func (r *run) checkMkdir(c providers.Change) error {
	_, standing := r.standing(c.Locator)
	switch {
	case !r.mint.caps.EmptyDirs:
		return providers.ErrUnsupported
	case standing != nil && !standing.isDir():
		return providers.ErrExist
	}
	return nil
}

func (r *run) checkFrom(i int, c providers.Change) error {
	source, err := r.before.look(c.From)
	switch {
	case len(r.bodies[i]) > 0:
		return fmt.Errorf("content and From %q: %w", c.From, providers.ErrInvalid)
	case err != nil:
		return fmt.Errorf("from %q: %w", c.From, err)
	case c.Dir && !source.isDir():
		return fmt.Errorf("from %q: %w", c.From, providers.ErrNotDir)
	case !c.Dir && source.isDir():
		return fmt.Errorf("from %q: %w", c.From, providers.ErrIsDir)
	case !c.FromVersion.IsZero() && !c.FromVersion.Matches(source.version):
		return fmt.Errorf("from %q: %w", c.From, providers.ErrConflict)
	}
	origin, standing := r.standing(c.Locator)
	if c.If.Kind == providers.ConditionDir && standing != nil && standing.isDir() && r.places.IsTaken(origin) {
		return nil
	}
	return c.If.Allows(providers.MethodMove, standing.describe(c.Locator))
}

// standing is the entry whose place a change at l takes, and its place before the set; nil when
// there is none.
func (r *run) standing(l providers.Locator) (origin providers.Locator, n *node) {
	origin, gone, err := r.places.Origin(l)
	if err != nil || gone {
		return origin, nil
	}
	n, _ = r.before.look(origin)
	return origin, n
}

// place puts the entry that a change makes into the tree after.
func (r *run) place(i int, c providers.Change) error {
	switch {
	case !c.From.IsRoot():
		n := r.take(c)
		if n.isDir() && n.entries == nil && r.after.goes(n) {
			r.after.remove(c.Locator) // the entry in its place was replaced all the same
			return nil
		}
		return r.after.put(c.Locator, n)
	case c.Dir:
		if n, err := r.after.find(c.Locator); err != nil || n != nil {
			return err
		}
		return r.after.put(c.Locator, r.mint.dir(c.Attr, c.Metadata))
	}
	return r.after.put(c.Locator, r.mint.file(r.bodies[i], providers.WriteOptions{
		Kind: c.Kind, Attr: c.Attr, Metadata: c.Metadata, Op: r.set.Op,
	}))
}

// take returns the entry that was at From, without those that the set deletes below it.
func (r *run) take(c providers.Change) *node {
	n, _ := r.before.look(c.From)
	depth := len(c.From.Parts())
	if n.isDir() {
		for l := range r.places.Deleted() {
			if l != c.From && c.From.Contains(l) {
				n = less(n, l.Parts()[depth:], r.after.goes)
			}
		}
	}
	if c.Attr.Valid != 0 || c.Metadata != nil {
		return r.mint.changed(n, c.Attr, c.Metadata, r.set.Op)
	}
	r.mint.tick()
	return n
}

// left returns the entries that the changes left.
func (r *run) left() []providers.Info {
	infos := make([]providers.Info, len(r.set.Changes))
	for i, c := range r.set.Changes {
		if n, err := r.after.look(c.Locator); err == nil && !c.Delete {
			infos[i] = n.at(c.Locator)
		}
	}
	return infos
}

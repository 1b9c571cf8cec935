package cache

import (
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// base is what the backend is known to hold, by the backend's own names. The
// inode table runs ahead of it: a name changes there at once, and here when
// the backend has confirmed it. Every condition of a change comes from here.
// Volume.mu is held over every call.
type base struct{ root *known }

// known is an entry of the backend.
type known struct {
	kind     providers.Kind
	version  providers.Version
	ino      fs.Ino // whose content it is
	gen      uint64 // which state of that content; 0: another than any that we have
	children map[string]*known
}

func newBase() *base { return &base{&known{kind: providers.KindDir}} }

// get is the entry at l, nil when none is known.
func (b *base) get(l providers.Locator) *known {
	k := b.root
	for _, name := range l.Parts() {
		if k = k.children[name]; k == nil {
			return nil
		}
	}
	return k
}

// put sets the entry at l; parents that were not known are directories. What
// is below a directory stays.
func (b *base) put(l providers.Locator, k known) {
	parts := l.Parts()
	at := b.root
	for _, name := range parts[:len(parts)-1] {
		at = at.child(name)
	}
	name := parts[len(parts)-1]
	if old := at.children[name]; old != nil && k.kind == providers.KindDir {
		k.children = old.children
	}
	at.child(name)
	at.children[name] = &k
}

func (k *known) child(name string) *known {
	if k.children == nil {
		k.children = map[string]*known{}
	}
	if k.children[name] == nil {
		k.children[name] = &known{kind: providers.KindDir}
	}
	return k.children[name]
}

// remove forgets the entry at l and all below.
func (b *base) remove(l providers.Locator) {
	if parent := b.get(l.Parent()); parent != nil {
		delete(parent.children, l.Name())
	}
}

// move takes the entry at from, with all below, to the name to.
func (b *base) move(from, to providers.Locator) {
	k := b.get(from)
	if k == nil || from == to {
		return
	}
	b.remove(from)
	b.remove(to)
	b.put(to, known{kind: k.kind})
	b.get(to.Parent()).children[to.Name()] = k
}

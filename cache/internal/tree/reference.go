package tree

import "github.com/wsmount/wsmount/cache/internal/table"

// Pins keep inodes that have no name any more, beside the kernel's references.
type Pins interface {
	// Pinned reports whether an inode is in use, by an open file for instance.
	Pinned(v *View, ino table.Ino) bool
}

// Refer counts a reference of the kernel to an inode: the answer of a lookup.
func (v *View) Refer(ino table.Ino) { v.guarded.lookups[ino]++ }

// DropReferences gives references of the kernel back, and reports whether none is left.
// The kernel keeps no pages or attributes of an inode without references.
func (v *View) DropReferences(ino table.Ino, count uint64) (last bool) {
	g := v.guarded
	if left := g.lookups[ino]; left > count {
		g.lookups[ino] = left - count
		return false
	}
	delete(g.lookups, ino)
	delete(g.pages, ino)
	delete(g.outdated, ino)
	return true
}

// References is how many references the kernel has to an inode.
func (v *View) References(ino table.Ino) uint64 { return v.guarded.lookups[ino] }

// ReferenceCount is how many inodes the kernel has references to.
func (v *View) ReferenceCount() int { return len(v.guarded.lookups) }

// IsHeld reports whether the kernel or another part of the volume uses an inode.
func (v *View) IsHeld(ino table.Ino) bool {
	return v.guarded.lookups[ino] > 0 || v.guarded.options.Pins.Pinned(v, ino)
}

// IsForsaken reports whether an inode has no name and is not in use.
func (v *View) IsForsaken(ino table.Ino) bool {
	n := v.Inode(ino)
	return n != nil && ino != table.Root && len(n.Links) == 0 && !v.IsHeld(ino)
}

// KernelPages is the content version of which the kernel has pages, 0 for none.
func (v *View) KernelPages(ino table.Ino) uint64 { return v.guarded.pages[ino] }

// SetKernelPages notes the content version of which the kernel has pages from now on.
func (v *View) SetKernelPages(ino table.Ino, version uint64) { v.guarded.pages[ino] = version }

// OutdateAttributes says that an inode became another version: the kernel, if it knows the
// inode, may have attributes of the one before until it forgets it.
func (v *View) OutdateAttributes(ino table.Ino) {
	if v.guarded.lookups[ino] > 0 {
		v.guarded.outdated[ino] = struct{}{}
	}
}

// HasOutdatedAttributes reports whether the kernel may have attributes of an earlier
// version of an inode.
func (v *View) HasOutdatedAttributes(ino table.Ino) bool {
	_, outdated := v.guarded.outdated[ino]
	return outdated
}

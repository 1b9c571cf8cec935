// Package odb is the object database of a bare git repository: its packs, with fast reads, and
// additions that survive a loss of power.
//
// It knows packs and their indexes (version 2), and nothing of the meaning of objects. Every
// object is in a pack: a server's pack is kept as it came, and local objects go into one small
// pack for each commit. Packs never change, so readers share them without a lock; the list of
// packs is replaced when one is added, or when many small ones have become one. No object is ever
// removed. Loose objects of other programs are not seen.
//
//	s, err := odb.Open(dir, private, space.Disk{})
//	raw, err := s.Get(id, odb.Tree)
//	b, err := s.NewBatch()
//	id, err := b.Put(ctx, odb.Blob, body, size)
//	err = b.Finish()
//
// The size of an object is known without inflating it: beside the index of each
// pack this package keeps the sizes in the same order, found when the pack was
// indexed or, of packs that others made, by one walk.
//
// A database may be without blobs that its trees name (git-partial-clone). Then the owner brings
// them (Missing): a caller that asks for the size or the content of one waits for that. Packs
// that came so are marked as git marks them, and are never merged with others.
package odb

import (
	"errors"

	"github.com/go-git/go-git/v5/plumbing"
)

// ID names an object by its content.
type ID = plumbing.Hash

// Kind is the type of an object, as packs number it.
type Kind uint8

// The kinds of objects.
const (
	Commit Kind = 1
	Tree   Kind = 2
	Blob   Kind = 3
	Tag    Kind = 4

	ofsDelta Kind = 6
	refDelta Kind = 7
)

// String is the word that an object's hash begins with.
func (k Kind) String() string {
	switch k {
	case Commit:
		return "commit"
	case Tree:
		return "tree"
	case Blob:
		return "blob"
	case Tag:
		return "tag"
	}
	return "delta"
}

// Errors of this package, beside those of the system.
var (
	ErrNotFound = errors.New("no such object")
	ErrCorrupt  = errors.New("the object database is damaged")
	ErrTooLarge = errors.New("an object is larger than can be kept")
)

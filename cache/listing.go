package cache

import (
	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

func newListings(v *Volume) *listing.Listings {
	return listing.New(listing.Options{
		Tree: v.tree, Update: v.updateTree, Provider: v.p, Capabilities: v.caps, Head: v.head, Belief: v.belief,
		Merger: func() listing.Merger { return v.merger }, Border: v.border, Attributes: v.attrs(), SentBack: &v.sentBack,
		Waits: v.waits, Patience: v.o.Patience / 2, Wait: v.o.looks, Room: v.o.Fetches, Go: v.work.Go, Rules: v.o.shown(),
		IsClosing: func(at *tree.View) bool { return v.held.Of(at).closing },
		Back:      func(at *tree.View) { v.send.Rouse(at) },
		StandsAside: func(at *tree.View, l table.Link, rec table.Name) bool {
			return v.send.Jobs().StandsAside(at, l, rec)
		},
		Halt: func(at *tree.View, reason string) error {
			return v.held.Of(at).checkMassDelete(massdelete.Pull, reason, 0)
		},
	})
}

// names adapts the names of a volume for its revisions.
type names struct {
	*listing.Listings
	v *Volume
}

var _ revision.Names = names{}

// List implements revision.Names.
func (n names) List(w revision.Waiting, head revision.Held, dir table.Ino) error {
	return n.ListOnce(w, head, dir)
}

// Fetch implements revision.Names. Its errors are those of [files.Hydrator.Fetch].
func (n names) Fetch(w revision.Waiting, ino table.Ino, kind providers.Kind) error {
	return n.v.bringContent(w, ino, kind)
}

// Passed implements revision.Names.
func (n names) Passed(tx *tree.Tx) { n.v.held.Of(tx.View).passed(massdelete.Pull) }

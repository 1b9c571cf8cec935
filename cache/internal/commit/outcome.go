package commit

import (
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// An Outcome is the result of a set that was committed.
type Outcome struct {
	Unresolved
	// Entries are the remote's entries of each change.
	Entries []providers.Info
	// Confirm notes the remote's entry under a name from now on; nil: it has none.
	Confirm func(tx upload.Tx, l table.Link, base *table.Remote)
	// Noted is told of each name, in the transaction that notes the entry under it; nil: unused.
	Noted func(tx upload.Tx, l table.Link)
}

// A Step notes a part of an outcome.
type Step struct {
	Names []*Planned
	// Whole says that one transaction has to have all of them: else pieces may follow each other.
	Whole bool
	Note  func(tx upload.Tx, names []*Planned)
}

// Steps are how an outcome is noted, in order: the entries below a directory are removed before
// it, and a directory is made before its entries. The Rec of the names is as it was before.
func (o Outcome) Steps() []Step {
	n := sortNotes(o.Names)
	byDepth := func(names []*Planned, depth func(*Planned) int) []*Planned {
		names = slices.Clone(names)
		slices.SortStableFunc(names, func(a, b *Planned) int { return depth(a) - depth(b) })
		return names
	}
	gone := byDepth(n.tree, func(p *Planned) int { return -strings.Count(p.Before, "/") })
	made := byDepth(n.tree, func(p *Planned) int { return strings.Count(p.After, "/") })
	tree := []Step{{Names: n.tree, Whole: true, Note: func(tx upload.Tx, _ []*Planned) {
		for _, p := range gone {
			o.noteGone(tx, p)
		}
		o.each(o.noteMade)(tx, made)
	}}}
	if !n.knot {
		gone = slices.DeleteFunc(gone, func(p *Planned) bool { return p.Ino != 0 })
		made = slices.DeleteFunc(made, func(p *Planned) bool { return p.Ino == 0 })
		tree = []Step{{Names: gone, Note: o.each(o.noteGone)}, {Names: made, Note: o.each(o.noteMade)}}
	}
	file := o.each(func(tx upload.Tx, p *Planned) {
		o.noteGone(tx, p)
		o.noteMade(tx, p)
	})
	return slices.Concat([]Step{{Names: n.gone, Note: file}}, tree, []Step{{Names: n.made, Note: file}})
}

// each notes something about each of some names, and that their attempts are over.
func (o Outcome) each(note func(upload.Tx, *Planned)) func(upload.Tx, []*Planned) {
	return func(tx upload.Tx, names []*Planned) {
		for _, p := range names {
			note(tx, p)
			o.EndAttempt(tx, p.Link)
			if o.Noted != nil {
				o.Noted(tx, p.Link)
			}
		}
	}
}

// notes are the names of a set, by the way in which their outcome is noted.
type notes struct {
	gone []*Planned // files that were deleted
	tree []*Planned // directories, and moved files
	// knot says that among these a name takes an inode that another gives up, or becomes another
	// inode. As long as one transaction does not have both ends of a move, the inode would have no
	// definite place.
	knot bool
	made []*Planned // files that were sent, whatever the name stood for before
}

func sortNotes(names []*Planned) (n notes) {
	given, taken := map[table.Ino]bool{}, map[table.Ino]bool{}
	for _, p := range names {
		if p.Gives() {
			given[p.Rec.Remote.Ino] = true
		}
		taken[p.Ino] = true
	}
	delete(given, 0)
	delete(taken, 0)
	for _, p := range names {
		gives := p.Gives()
		moves := given[p.Ino] || gives && taken[p.Rec.Remote.Ino]
		wasDir := gives && p.Rec.Remote.Kind == providers.KindDir
		switch {
		case moves, wasDir, p.Ino != 0 && p.Kind == providers.KindDir:
			n.knot = n.knot || moves || gives && p.Ino != 0
			n.tree = append(n.tree, p)
		case p.Ino == 0:
			n.gone = append(n.gone, p)
		default:
			n.made = append(n.made, p)
		}
	}
	return n
}

// noteGone notes that the remote's previous entry under a name is gone, if that is so.
func (o Outcome) noteGone(tx upload.Tx, p *Planned) {
	if rec := tx.Record(p.Link); rec.Remote != nil && (p.Ino == 0 || rec.Remote.Ino != p.Ino) {
		o.Confirm(tx, p.Link, nil)
	}
}

// noteMade notes the entry that a set left under a name, if any.
func (o Outcome) noteMade(tx upload.Tx, p *Planned) {
	if p.Ino == 0 {
		return
	}
	n := tx.Edit(p.Ino)
	base := &table.Remote{Ino: p.Ino, Kind: p.Kind, ContentVersion: p.Gen, AttrGen: p.AttrGen}
	if n == nil {
		base.Ino = 0
	}
	if p.Index >= 0 && p.Index < len(o.Entries) && p.Kind != providers.KindDir {
		info := o.Entries[p.Index]
		base.Version, base.Digest = info.Version, info.Digest
		if n != nil && (n.ContentVersion == p.Gen || n.State == table.Whole) {
			n.Origin = table.Origin{Version: info.Version, Digest: info.Digest, ContentVersion: p.Gen}
		}
	}
	o.Confirm(tx, p.Link, base)
}

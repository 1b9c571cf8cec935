// Package gather makes the pack of the objects that commits have brought, for a repository that
// has the parents' objects.
//
//	pack, err := gather.Pack(objects, commits, func(blob odb.ID) bool { return false })
package gather

import (
	"io"
	"slices"

	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// Pack has the objects that some commits brought, each commit given after its parents: of each
// the trees and contents that none of its parents has at the same place, less the blobs that
// leave reports. The caller closes it.
func Pack(objects *odb.Store, commits []odb.ID, leave func(blob odb.ID) bool) (io.ReadCloser, error) {
	b, err := objects.NewPack()
	if err != nil {
		return nil, err
	}
	g := &collector{objects: objects, leave: leave, batch: b, have: map[id]bool{}}
	for _, c := range commits {
		if err := g.commit(c); err != nil {
			b.Abandon()
			return nil, err
		}
	}
	return b.Pack()
}

type id = odb.ID

// collector finds the objects of a pack.
type collector struct {
	objects *odb.Store
	leave   func(blob id) bool
	batch   *odb.Batch
	have    map[id]bool
}

func (g *collector) commit(c id) error {
	raw, err := g.objects.Get(c, odb.Commit)
	if err != nil {
		return err
	}
	if _, err := g.batch.Add(odb.Commit, raw); err != nil {
		return err
	}
	commit, err := object.ParseCommit(raw)
	if err != nil {
		return err
	}
	var before []id
	for _, parent := range commit.Parents {
		raw, err := g.objects.Get(parent, odb.Commit)
		if err != nil {
			return err
		}
		p, err := object.ParseCommit(raw)
		if err != nil {
			return err
		}
		before = append(before, p.Tree)
	}
	return g.tree(commit.Tree, before)
}

// tree adds a tree, unless it is one of before, the parents' trees at the same place.
func (g *collector) tree(tree id, before []id) error {
	if g.have[tree] || slices.Contains(before, tree) {
		return nil
	}
	g.have[tree] = true
	raw, err := g.objects.Get(tree, odb.Tree)
	if err != nil {
		return err
	}
	if _, err := g.batch.Add(odb.Tree, raw); err != nil {
		return err
	}
	old, err := g.entries(before)
	if err != nil {
		return err
	}
	for len(raw) > 0 {
		var e object.Entry
		if e, raw, err = object.Next(raw); err != nil {
			return err
		}
		switch {
		case e.Mode.IsSubmodule():
		case e.Mode.IsDir():
			err = g.tree(e.ID, old[e.Key()])
		default:
			err = g.blob(e.ID, old[e.Key()])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entries are the entries of some trees under each name.
func (g *collector) entries(trees []id) (map[string][]id, error) {
	all := map[string][]id{}
	for _, tree := range trees {
		raw, err := g.objects.Get(tree, odb.Tree)
		if err != nil {
			return nil, err
		}
		for len(raw) > 0 {
			var e object.Entry
			if e, raw, err = object.Next(raw); err != nil {
				return nil, err
			}
			all[e.Key()] = append(all[e.Key()], e.ID)
		}
	}
	return all, nil
}

func (g *collector) blob(b id, before []id) error {
	if g.have[b] || slices.Contains(before, b) {
		return nil
	}
	g.have[b] = true
	if g.leave(b) {
		return nil
	}
	size, err := g.objects.Size(b)
	if err != nil {
		return err
	}
	r, err := g.objects.Open(b, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = g.batch.Put(odb.Blob, size, func(w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	})
	return err
}

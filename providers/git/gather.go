package git

import (
	"io"
	"slices"

	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// gather collects for a push what commits have brought: of each the trees and
// contents that none of its parents has at the same place.
type gather struct {
	repo  *repository
	batch *odb.Batch
	have  map[id]bool
}

func (g *gather) commit(c id) error {
	raw, err := g.repo.objects.Get(c, odb.Commit)
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
		p, err := g.repo.commit(parent)
		if err != nil {
			return err
		}
		before = append(before, p.Tree)
	}
	return g.tree(commit.Tree, before)
}

// tree adds a tree, unless it is one of those that were there before.
func (g *gather) tree(tree id, before []id) error {
	if g.have[tree] || slices.Contains(before, tree) {
		return nil
	}
	g.have[tree] = true
	raw, err := g.repo.objects.Get(tree, odb.Tree)
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

// entries are what some trees have under each name.
func (g *gather) entries(trees []id) (map[string][]id, error) {
	all := map[string][]id{}
	for _, tree := range trees {
		raw, err := g.repo.objects.Get(tree, odb.Tree)
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

func (g *gather) blob(b id, before []id) error {
	if g.have[b] || slices.Contains(before, b) {
		return nil
	}
	g.have[b] = true
	if g.repo.partial.isPromised(b) {
		return nil // it is from the server
	}
	size, err := g.repo.objects.Size(b)
	if err != nil {
		return err
	}
	r, err := g.repo.objects.Open(b, 0)
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

package git

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// mostCombined is the size up to which contents are merged: all three are in
// memory then.
const mostCombined = 16 << 20

// Rebase implements providers.Rebaser.
func (p *Provider) Rebase(ctx context.Context, base, from, onto providers.Revision, combine providers.Combine) (providers.Revision, error) {
	return do(ctx, p, providers.MethodRebase, providers.Locator{}, func() (providers.Revision, error) {
		var c [3]id
		for i, r := range []providers.Revision{base, from, onto} {
			var err error
			if c[i], err = p.commitOf(r); err != nil {
				return "", err
			}
		}
		made, err := p.repo.rebase(ctx, c[0], c[1], c[2], combine)
		return revision(made), err
	})
}

func (r *repository) rebase(ctx context.Context, base, from, onto id, combine providers.Combine) (id, error) {
	ours, err := r.ownLine(base, from, onto)
	if err != nil {
		return id{}, err
	}
	view, err := r.viewOf(onto)
	if err != nil {
		return id{}, err
	}
	b, err := r.objects.NewBatch()
	if err != nil {
		return id{}, err
	}
	defer b.Abandon()
	root := &node{mode: object.ModeDir, id: view.root}
	s := &rebasing{repo: r, nodes: &nodes{r.objects, root}, batch: b, combine: combine, tip: onto, made: map[id][]byte{}}
	for _, c := range ours {
		if err := ctx.Err(); err != nil {
			return id{}, err
		}
		if err := s.replay(c); err != nil {
			return id{}, err
		}
	}
	if s.tip == onto || r.hasCommit(s.tip) { // made before, and not adopted yet
		return s.tip, nil
	}
	return s.tip, b.Finish()
}

// ownLine are the commits of from that neither base nor onto has, the first first.
// They must be a line: what merges is no change that can be made again.
func (r *repository) ownLine(base, from, onto id) ([]id, error) {
	all, err := r.newCommits(from, []id{base, onto})
	if err != nil {
		return nil, err
	}
	slices.Reverse(all)
	for i, c := range all {
		commit, err := r.commit(c)
		if err != nil {
			return nil, err
		}
		if len(commit.Parents) != 1 || i > 0 && commit.Parents[0] != all[i-1] {
			return nil, fmt.Errorf("commit %s is not one of a line: %w", c, providers.ErrUnsupported)
		}
	}
	return all, nil
}

// rebasing makes commits anew, one on the other. nodes is the tree so far.
type rebasing struct {
	repo    *repository
	nodes   *nodes
	batch   *odb.Batch
	combine providers.Combine
	tip     id
	made    map[id][]byte // contents that are in the batch only
}

// replay makes the change of a commit to the tree, and a commit of it, unless
// nothing has changed.
func (s *rebasing) replay(c id) error {
	raw, err := s.repo.objects.Get(c, odb.Commit)
	if err != nil {
		return err
	}
	commit, err := object.ParseCommit(raw)
	if err != nil {
		return err
	}
	parent, err := s.repo.commit(commit.Parents[0])
	if err != nil {
		return err
	}
	before := s.nodes.root.id
	dir := func(tree id) *node { return &node{mode: object.ModeDir, id: tree} }
	root, err := s.entry("", dir(parent.Tree), s.nodes.root, dir(commit.Tree))
	if err != nil {
		return err
	}
	if root == nil {
		root = dir(id{})
		root.mine, root.dir = true, map[string]*node{}
	}
	tree, err := root.save(s.batch)
	if err != nil || tree == before {
		return err
	}
	s.nodes.root = root
	s.tip, err = s.batch.Add(odb.Commit, object.Moved(raw, tree, s.tip))
	return err
}

// entry is what a name has when what changed from base to theirs is changed in
// ours; nil stands for nothing, in all of them.
func (s *rebasing) entry(path string, base, ours, theirs *node) (*node, error) {
	switch {
	case equal(base, theirs), equal(ours, theirs):
		return ours, nil
	case equal(base, ours):
		return theirs, nil
	case (base == nil || isTree(base)) && isTree(ours) && isTree(theirs):
		return s.directory(path, base, ours, theirs)
	case isFile(base) && isFile(ours) && isFile(theirs):
		return s.file(path, base, ours, theirs)
	}
	return nil, fmt.Errorf("%s: changed on both sides: %w", path, providers.ErrConflict)
}

func isTree(n *node) bool { return n != nil && n.isDir() }

func isFile(n *node) bool { return n != nil && !n.looksDir() && !n.mode.IsLink() }

// equal compares entries as they are in a tree.
func equal(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return !a.mine && !b.mine && a.mode == b.mode && a.id == b.id
}

func (s *rebasing) directory(path string, base, ours, theirs *node) (*node, error) {
	if base == nil {
		base = &node{mode: object.ModeDir}
	}
	for _, n := range []*node{base, ours, theirs} {
		if err := s.nodes.load(n); err != nil {
			return nil, err
		}
	}
	names := maps.Clone(base.dir)
	maps.Copy(names, theirs.dir)
	made, err := s.nodes.own(ours)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n, err := s.entry(path+"/"+name, base.dir[name], made.dir[name], theirs.dir[name])
		if err != nil {
			return nil, err
		}
		if n == nil {
			delete(made.dir, name)
		} else {
			made.dir[name] = n
		}
	}
	if len(made.dir) == 0 {
		return nil, nil
	}
	return made, nil
}

// file merges contents, and modes by themselves.
func (s *rebasing) file(path string, base, ours, theirs *node) (*node, error) {
	n := &node{mode: ours.mode, id: ours.id, size: ours.size}
	if base.mode != theirs.mode {
		n.mode = theirs.mode
	}
	switch {
	case base.id == theirs.id || ours.id == theirs.id:
		return n, nil
	case base.id == ours.id:
		n.id, n.size = theirs.id, theirs.size
		return n, nil
	}
	var texts [3][]byte
	for i, side := range []*node{base, ours, theirs} {
		var err error
		if texts[i], err = s.text(side.id); err != nil {
			return nil, err
		}
	}
	merged, ok := []byte(nil), false
	if texts[0] != nil && texts[1] != nil && texts[2] != nil {
		merged, ok = s.combine(texts[0], texts[1], texts[2])
	}
	if !ok {
		return nil, fmt.Errorf("%s: changed on both sides: %w", path, providers.ErrConflict)
	}
	var err error
	if n.id, err = s.batch.Add(odb.Blob, merged); err != nil {
		return nil, err
	}
	n.size, s.made[n.id] = int64(len(merged)), merged
	return n, nil
}

// text is a content; nil for one that is too large to be merged.
func (s *rebasing) text(b id) ([]byte, error) {
	if text, ok := s.made[b]; ok {
		return text, nil
	}
	size, err := s.repo.objects.Size(b)
	if err != nil || size > mostCombined {
		return nil, err
	}
	r, err := s.repo.objects.Open(b, 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text := bytes.NewBuffer(make([]byte, 0, size+1))
	_, err = io.Copy(text, r)
	return text.Bytes(), err
}

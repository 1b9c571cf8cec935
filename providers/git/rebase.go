package git

import (
	"bytes"
	"context"
	"fmt"
	"io"
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
			if c[i], err = p.repo.commitOf(r); err != nil {
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
	s := &rebasing{ctx: ctx, repo: r, nodes: &nodes{repo: r, root: root}, batch: b, combine: combine, tip: onto, made: map[id][]byte{}}
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

// ownLine are the commits of from that neither base nor onto has, the first first. They must be a
// line: a merge commit is no change that can be made again.
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
	ctx     context.Context
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
	m := &merging{rebasing: s, base: treeNode(parent.Tree), ours: s.nodes.root, theirs: treeNode(commit.Tree)}
	root, err := m.merge()
	if err != nil {
		return err
	}
	tree, err := root.save(s.batch)
	if err != nil || tree == before {
		return err
	}
	s.nodes.root = root
	s.tip, err = s.batch.Add(odb.Commit, object.Moved(raw, tree, s.tip))
	return err
}

// here are the contents that are not in the batch alone: need may have to fetch them.
func (s *rebasing) here(blobs ...id) []id {
	return slices.DeleteFunc(blobs, func(b id) bool { return s.made[b] != nil || b == emptyBlob })
}

// text is a content; nil for one that is too large to be merged.
func (s *rebasing) text(b id) ([]byte, error) {
	if text, ok := s.made[b]; ok {
		return text, nil
	}
	if b == emptyBlob { // need not be in the repository
		return []byte{}, nil
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

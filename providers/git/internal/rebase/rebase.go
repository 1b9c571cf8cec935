// Package rebase makes the commits of one line of history anew on top of another: the change of
// each is merged into the tree so far, as git does.
//
// It knows files that one side has renamed without a change of content, contents that are merged
// by lines, and merge=union in files of attributes. It neither moves a reference nor decides how a
// conflict ends.
//
//	in := rebase.Repository{Objects: objects, Commit: commit, Fetch: fetch}
//	tip, err := rebase.Rebase(ctx, in, base, ours, theirs, combine)
package rebase

import (
	"context"
	"fmt"
	"slices"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/history"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/trees"
)

// Repository is where the commits are.
type Repository struct {
	Objects *odb.Store
	Commit  history.Read
	// Fetch waits until contents are local that may be missing: those that are merged by lines.
	Fetch func(ctx context.Context, blobs ...odb.ID) error
}

type id = odb.ID

// Rebase makes the commits of from that neither base nor onto has anew on top of onto, and returns
// the last of them: onto if no change is left. All that was made is safe on the disk by then. The
// contents of a file that both sides changed are merged by combine.
//
// The error is ErrConflict with the path where only a person can tell the result, and
// ErrUnsupported if one of the commits is a merge; then nothing is made.
func Rebase(ctx context.Context, in Repository, base, from, onto odb.ID, combine providers.Combine) (odb.ID, error) {
	ours, err := in.line(base, from, onto)
	if err != nil {
		return id{}, err
	}
	begin, err := in.Commit(onto)
	if err != nil {
		return id{}, err
	}
	b, err := in.Objects.NewBatch()
	if err != nil {
		return id{}, err
	}
	defer b.Abandon()
	s := &rebasing{ctx: ctx, in: in, edit: trees.Editor{Objects: in.Objects}, root: trees.Dir(begin.Tree), batch: b, combine: combine, tip: onto, made: map[id][]byte{}}
	for _, c := range ours {
		if err := ctx.Err(); err != nil {
			return id{}, err
		}
		if err := s.replay(c); err != nil {
			return id{}, err
		}
	}
	if s.tip == onto || in.has(s.tip) { // made before, and not adopted yet
		return s.tip, nil
	}
	return s.tip, b.Finish()
}

// has reports whether a commit is local.
func (in Repository) has(c id) bool {
	_, err := in.Commit(c)
	return err == nil
}

// line are the commits of from that neither base nor onto has, the first first. They must be a
// line: a merge commit is no change that can be made again.
func (in Repository) line(base, from, onto id) ([]id, error) {
	all, err := history.New(in.Commit, from, []id{base, onto})
	if err != nil {
		return nil, err
	}
	slices.Reverse(all)
	for i, c := range all {
		commit, err := in.Commit(c)
		if err != nil {
			return nil, err
		}
		if len(commit.Parents) != 1 || i > 0 && commit.Parents[0] != all[i-1] {
			return nil, fmt.Errorf("commit %s is not one of a line: %w", c, providers.ErrUnsupported)
		}
	}
	return all, nil
}

// rebasing makes commits anew, one on the other. root is the tree so far.
type rebasing struct {
	ctx     context.Context
	in      Repository
	edit    trees.Editor
	root    *trees.Node
	batch   *odb.Batch
	combine providers.Combine
	tip     id
	made    map[id][]byte // contents that are in the batch only
}

// replay makes the change of a commit to the tree, and a commit of it, unless
// nothing has changed.
func (s *rebasing) replay(c id) error {
	raw, err := s.in.Objects.Get(c, odb.Commit)
	if err != nil {
		return err
	}
	commit, err := object.ParseCommit(raw)
	if err != nil {
		return err
	}
	parent, err := s.in.Commit(commit.Parents[0])
	if err != nil {
		return err
	}
	before := s.root.ID
	m := &merging{rebasing: s, base: trees.Dir(parent.Tree), ours: s.root, theirs: trees.Dir(commit.Tree)}
	root, err := m.merge()
	if err != nil {
		return err
	}
	tree, err := root.Save(s.batch)
	if err != nil || tree == before {
		return err
	}
	s.root = root
	s.tip, err = s.batch.Add(odb.Commit, object.Moved(raw, tree, s.tip))
	return err
}

package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/bundle"
	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/notes"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/refs"
)

// archive is a clone without its remote.
type archive struct {
	dir   string
	held  bool        // the caller has its lock
	repo  *repository // nil: nothing in it is unpushed
	large *lfs.Store
	all   []line
	known []id // commits that the remote is known to have
	ours  []id // of the branches
}

// line is a branch with the commits of it that are not pushed, the last first.
type line struct {
	branch  string
	on      bool
	commits []id
}

// openArchive opens the clone in a directory, of whichever repository it is, together with other
// readers. One in which each branch is where the remote has it is only looked at: no lock is
// taken that a mount could want.
func openArchive(dir string, held bool) (_ providers.Archive, err error) {
	r := &repository{dir: dir, private: filepath.Join(dir, privateName)}
	if _, err := os.Stat(filepath.Join(r.private, stateName)); err != nil {
		return nil, err
	}
	defer func() {
		if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, providers.ErrCorrupt) { // which says that there is no clone
			err = fmt.Errorf("%w: %s", providers.ErrCorrupt, err.Error())
		}
	}()
	a := &archive{dir: dir, held: held}
	if err = r.load(""); err != nil || !r.state.Cloned {
		return a, err
	}
	on, heads, err := a.heads(dir)
	if err != nil || len(heads) == 0 {
		return a, err
	}
	if a.repo, err = readRepository(dir, held); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = a.Close()
		}
	}()
	a.repo.objects.Promise(nil)
	a.large = lfs.OpenStore(filepath.Join(a.repo.private, largeName), a.repo.objects.Tmp(), a.repo.space)
	for _, ref := range slices.Sorted(maps.Keys(heads)) {
		name := strings.TrimPrefix(ref, headRef(""))
		commits, err := a.repo.newCommits(heads[ref], a.known)
		if err != nil {
			return nil, err
		}
		if len(commits) > 0 {
			a.all = append(a.all, line{name, name == on, commits})
		}
	}
	if i := slices.IndexFunc(a.all, func(l line) bool { return l.on }); i > 0 {
		a.all = slices.Insert(slices.Delete(slices.Clone(a.all), i, i+1), 0, a.all[i])
	}
	return a, nil
}

// heads are the branches of a clone whose commits the remote is not known to have, by reference.
// on is the branch that HEAD names, among them or not; a lost HEAD is ErrCorrupt, and also
// ErrNotExist if there are no such branches.
func (a *archive) heads(dir string) (on string, heads map[string]id, err error) {
	look := refs.Look(dir)
	theirs, err := look.List(originRef(""))
	ours, oursErr := look.List(headRef(""))
	on, headErr := look.Head()
	noted, notesErr := notes.Read(filepath.Join(dir, privateName, notesName), nil)
	packs, packsErr := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.pack"))
	if err = firstError(err, oursErr, notesErr, packsErr); err != nil {
		return "", nil, err
	}
	if _, there := ours[headRef(on)]; headErr == nil && !there && len(theirs)+len(packs) > 0 { // else it never had a commit
		headErr = fmt.Errorf("its branch %s is gone", on)
	}
	a.known, a.ours = knownOf(theirs, noted), slices.Collect(maps.Values(ours))
	maps.DeleteFunc(ours, func(_ string, at id) bool { return slices.Contains(a.known, at) })
	if headErr != nil {
		err = fmt.Errorf("%s: %w", headErr.Error(), providers.ErrCorrupt)
	}
	if headErr != nil && len(ours) == 0 {
		err = providers.Kinded(err, fs.ErrNotExist)
	}
	return on, ours, err
}

// Close implements providers.Archive.
func (a *archive) Close() error {
	if a.repo == nil {
		return nil
	}
	a.repo.partial.End()
	return a.repo.close()
}

// Has implements providers.Archive.
func (a *archive) Has(r providers.Revision) (has bool, err error) {
	c, repo := plumbing.NewHash(string(r)), a.repo
	tips := slices.Concat(a.ours, a.known)
	if slices.Contains(tips, c) {
		return true, nil
	}
	if repo == nil {
		if repo, err = readRepository(a.dir, a.held); err != nil {
			return false, err
		}
		defer func() { err = firstError(err, (&archive{repo: repo}).Close()) }()
	}
	missing, err := repo.newCommits(c, tips)
	return err == nil && len(missing) == 0, err
}

// Unpushed implements providers.Archive.
func (a *archive) Unpushed(ctx context.Context) (all []providers.UnpushedBranch, err error) {
	for _, l := range a.all {
		b := providers.UnpushedBranch{Name: l.branch, On: l.on}
		for _, c := range l.commits {
			commit, err := a.repo.commit(c)
			if err = firstError(ctx.Err(), err); err != nil {
				return nil, err
			}
			subject, _, _ := strings.Cut(strings.TrimLeft(commit.Message, "\n"), "\n")
			b.Commits = append(b.Commits, providers.UnpushedCommit{Revision: revision(c),
				Author: fmt.Sprintf("%s <%s>", commit.Author.Name, commit.Author.Email), Time: commit.Committer.When, Subject: subject})
		}
		all = append(all, b)
	}
	return all, nil
}

// Files implements providers.Archive.
func (a *archive) Files(ctx context.Context, visit func(providers.Info, providers.Opener) error) error {
	if len(a.all) == 0 || !a.all[0].on {
		return nil
	}
	head, err := a.repo.viewOf(a.all[0].commits[0])
	if err != nil {
		return err
	}
	changed := map[string]bool{}
	for _, c := range a.all[0].commits {
		paths, err := a.repo.changedBy(c)
		if err != nil {
			return err
		}
		for _, path := range paths {
			changed[path] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(changed)) {
		l, err := providers.Locator{}.Child(path)
		if err != nil {
			return err
		}
		e, there, err := object.At(head.root, l.Parts(), head.tree)
		if err = firstError(ctx.Err(), err); err != nil {
			return err
		}
		if !there || e.Mode.IsDir() || e.Mode.IsSubmodule() {
			continue
		}
		if err := visit(describe(l, e, 0, nil), func() (io.ReadCloser, error) { return a.open(e.ID) }); err != nil {
			return err
		}
	}
	return nil
}

// changedBy are the paths in a commit that differ from each of its parents; deleted ones are not.
func (r *repository) changedBy(c id) (paths []string, err error) {
	commit, err := r.commit(c)
	if err != nil {
		return nil, err
	}
	is, err := r.viewOf(c)
	if err != nil {
		return nil, err
	}
	parents := commit.Parents
	if len(parents) == 0 {
		parents = []id{{}}
	}
	differs := map[string]int{}
	for _, parent := range parents {
		was, err := r.viewOf(parent)
		if err != nil {
			return nil, err
		}
		err = r.compare(was, is, true, func(path string, _, f *object.Entry) error {
			if f != nil {
				differs[path]++
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for path, n := range differs {
		if n == len(parents) {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// open is the content that a file shows: of a pointer whose object is kept in this clone, the
// object's.
func (a *archive) open(blob id) (io.ReadCloser, error) {
	if a.repo.partial.IsPromised(blob) {
		return nil, fmt.Errorf("its content was never fetched, and is at the remote alone: %w", providers.ErrNotExist)
	}
	p, is, err := a.repo.pointerIn(blob)
	if err == nil && is && a.large.Has(p) {
		return a.large.Open(p)
	}
	if err != nil {
		return nil, err
	}
	return a.repo.objects.Open(blob, 0)
}

// Bundle implements providers.Archive.
func (a *archive) Bundle(ctx context.Context) (io.ReadCloser, error) {
	var branches []bundle.Branch
	for _, l := range a.all {
		branches = append(branches, bundle.Branch{Ref: headRef(l.branch), Commits: l.commits})
	}
	head, commits, err := bundle.Head(branches, func(c id) ([]id, error) {
		commit, err := a.repo.commit(c)
		return commit.Parents, firstError(ctx.Err(), err)
	})
	var pack io.ReadCloser
	if err == nil {
		pack, err = a.repo.pack(commits)
	}
	if err != nil {
		return nil, err
	}
	return span{io.MultiReader(strings.NewReader(head), pack), pack}, nil
}

// Large implements providers.Archive.
func (a *archive) Large(ctx context.Context, visit func(string, providers.Opener) error) error {
	for _, l := range a.all {
		named, err := a.repo.objectsOf(a.known, l.commits[0])
		if err != nil {
			return err
		}
		for _, p := range named {
			err := ctx.Err()
			if err == nil && a.large.Has(p) {
				err = visit(p.OID, func() (io.ReadCloser, error) { return a.large.Open(p) })
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

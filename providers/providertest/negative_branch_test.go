package providertest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/providers"
)

func (b *brokenClone) Branches(ctx context.Context) (providers.Branches, error) {
	return b.branches(ctx)
}

func (b *brokenClone) Begin(ctx context.Context, branch string, ask bool) (providers.Revision, error) {
	return b.begin(ctx, branch, ask)
}

func (b *brokenClone) Start(ctx context.Context, branch string, from, to providers.Revision) error {
	return b.start(ctx, branch, from, to)
}

func (b *brokenClone) Propose(ctx context.Context, branch string, pr providers.PullRequest) (string, error) {
	return b.propose(ctx, branch, pr)
}

// on is the branch that a repository is on; "": the tracked one.
func on(ctx context.Context, r *memoryrepo.Repository) string {
	all, _ := r.Branches(ctx)
	return all.On
}

// saying changes what Branches says.
func saying(change func(*providers.Branches)) func(*brokenClone, *memoryrepo.Repository) {
	return func(b *brokenClone, r *memoryrepo.Repository) {
		b.branches = func(ctx context.Context) (providers.Branches, error) {
			all, err := r.Branches(ctx)
			change(&all)
			return all, err
		}
	}
}

// listing changes what Branches says of each that is unmerged.
func listing(change func(*providers.Branch)) func(*brokenClone, *memoryrepo.Repository) {
	return saying(func(all *providers.Branches) {
		for i := range all.Unmerged {
			change(&all.Unmerged[i])
		}
	})
}

// swallowed is an error unless it is of a kind.
func swallowed(err, kind error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}

// branchMistakes are cloneMistakes of branches.
var branchMistakes = []cloneMistake{
	{"a branch begins where the head is", func(b *brokenClone, r *memoryrepo.Repository) {
		b.begin = func(ctx context.Context, _ string, _ bool) (providers.Revision, error) { return r.Head(ctx) }
	}, []string{"branches/start", "branches/side-by-side", "branches/unmerged", "branches/tracked-goes-on", "branches/deleted"}},
	{"a branch always begins at the tracked one", func(b *brokenClone, r *memoryrepo.Repository) {
		b.begin = func(ctx context.Context, _ string, ask bool) (providers.Revision, error) {
			return r.Begin(ctx, "", ask)
		}
	}, []string{"branches/start", "branches/side-by-side", "branches/tracked-goes-on", "branches/deleted", "branches/of-two"}},
	{"commits of a branch go to the tracked one", func(b *brokenClone, r *memoryrepo.Repository) {
		b.push = func(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
			if o.Branch == "" {
				o.Branch = "main"
			}
			return r.Push(ctx, o)
		}
	}, []string{"branches/start", "branches/side-by-side", "branches/goes-on-from-another"}},
	{"what the remote has replaces what is here", func(b *brokenClone, r *memoryrepo.Repository) {
		b.begin = func(ctx context.Context, branch string, ask bool) (providers.Revision, error) {
			at, err := r.Begin(ctx, branch, ask)
			if theirs := b.remote.Branches()[branch]; ask && theirs != "" {
				at = theirs
			}
			return at, err
		}
	}, []string{"branches/of-two", "branches/unmerged"}},
	{"what is merged is pushed again", func(b *brokenClone, r *memoryrepo.Repository) {
		b.push = func(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
			result, err := r.Push(ctx, o)
			result.Pushed = result.Pushed || b.remote.Branches()["main"] != result.Revision
			return result, err
		}
	}, []string{"branches/unmerged"}},
	{"a push to a branch overwrites another's", func(b *brokenClone, r *memoryrepo.Repository) {
		b.push = func(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
			if name := on(ctx, r); name != "" {
				return b.force(ctx, name)
			}
			return r.Push(ctx, o)
		}
	}, []string{"branches/of-two"}},
	{"a fetch asks for the tracked branch alone", func(b *brokenClone, r *memoryrepo.Repository) {
		b.fetch = func(ctx context.Context) (providers.Revision, error) {
			if _, err := r.Fetch(ctx); err != nil {
				return "", err
			}
			return r.Begin(ctx, "", true)
		}
	}, []string{"branches/tracked-goes-on", "branches/goes-on-from-another", "branches/of-two"}},
	{"only what was pushed is listed", saying(func(all *providers.Branches) {
		all.Unmerged = slices.DeleteFunc(all.Unmerged, func(b providers.Branch) bool { return !b.Pushed })
	}), []string{"branches/side-by-side", "branches/unmerged", "branches/deleted"}},
	{"all counts as pushed", listing(func(b *providers.Branch) { b.Pushed = true }),
		[]string{"branches/side-by-side", "branches/of-two"}},
	{"all counts as not pushed", listing(func(b *providers.Branch) { b.Pushed = false }),
		[]string{"branches/side-by-side", "branches/unmerged"}},
	{"commits are not counted", listing(func(b *providers.Branch) { b.Commits = 1 }),
		[]string{"branches/unmerged", "branches/goes-on-from-another"}},
	{"pull requests are not listed", listing(func(b *providers.Branch) { b.URL = "" }),
		[]string{"branches/propose"}},
	{"a pull request that failed is forgotten", listing(func(b *providers.Branch) { b.Wanted = time.Time{} }),
		[]string{"branches/propose"}},
	{"the tip is not known", saying(func(all *providers.Branches) { all.Tip = "" }),
		[]string{"branches/start", "branches/unmerged", "branches/readonly"}},
	{"the branch is not said", saying(func(all *providers.Branches) { all.On = "" }),
		[]string{"branches/start", "branches/race", "branches/lost-answer"}},
	{"a start does not look where the head is", func(b *brokenClone, r *memoryrepo.Repository) {
		b.start = func(ctx context.Context, branch string, _, to providers.Revision) error {
			head, err := r.Head(ctx)
			return errors.Join(err, r.Start(ctx, branch, head, to))
		}
	}, []string{"branches/refused", "branches/race"}},
	{"a start that fails goes to the branch", func(b *brokenClone, r *memoryrepo.Repository) {
		b.start = func(ctx context.Context, branch string, from, to providers.Revision) error {
			err := r.Start(ctx, branch, from, to)
			if head, headErr := r.Head(ctx); errors.Is(err, providers.ErrNotExist) && headErr == nil {
				return errors.Join(err, r.Start(ctx, branch, head, head))
			}
			return err
		}
	}, []string{"branches/refused"}},
	{"the first revision goes to the branch", func(b *brokenClone, r *memoryrepo.Repository) {
		first := ""
		b.start = func(ctx context.Context, branch string, from, to providers.Revision) error {
			if from == "" {
				first = branch
			}
			return r.Start(ctx, branch, from, to)
		}
		b.push = func(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
			if o.Branch == "" {
				o.Branch = first
			}
			return r.Push(ctx, o)
		}
	}, []string{"branches/nothing"}},
	{"a start goes file by file", func(b *brokenClone, r *memoryrepo.Repository) {
		halfway := fileByFile(b, r)
		b.start = func(ctx context.Context, branch string, _, to providers.Revision) error {
			return r.Start(ctx, branch, halfway(ctx), to)
		}
	}, []string{"branches/one-step"}},
	{"a pull request of the tracked branch", func(b *brokenClone, r *memoryrepo.Repository) {
		b.propose = func(ctx context.Context, branch string, pr providers.PullRequest) (string, error) {
			url, err := r.Propose(ctx, branch, pr)
			return url, swallowed(err, providers.ErrInvalid)
		}
	}, []string{"branches/propose"}},
}

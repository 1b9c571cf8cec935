package providertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
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
func on(ctx context.Context, r *memory.Repository) string {
	all, _ := r.Branches(ctx)
	return all.On
}

// listing changes what Branches says of each that is unmerged, and drops those
// for which it says false.
func listing(change func(*providers.Branch) bool) func(*brokenClone, *memory.Repository) {
	return func(b *brokenClone, r *memory.Repository) {
		b.branches = func(ctx context.Context) (providers.Branches, error) {
			all, err := r.Branches(ctx)
			all.Unmerged = slices.DeleteFunc(all.Unmerged, func(b providers.Branch) bool { return !change(&b) })
			for i := range all.Unmerged {
				change(&all.Unmerged[i])
			}
			return all, err
		}
	}
}

// starting changes what a Start is asked for, and what it answers.
func starting(change func(ctx context.Context, r *memory.Repository, branch string, from, to providers.Revision) error) func(*brokenClone, *memory.Repository) {
	return func(b *brokenClone, r *memory.Repository) {
		b.start = func(ctx context.Context, branch string, from, to providers.Revision) error {
			return change(ctx, r, branch, from, to)
		}
	}
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
	{"a branch begins where the head is", func(b *brokenClone, r *memory.Repository) {
		b.begin = func(ctx context.Context, _ string, _ bool) (providers.Revision, error) { return r.Head(ctx) }
	}, []string{"branches/start", "branches/side-by-side", "branches/unmerged", "branches/tracked-goes-on", "branches/deleted"}},
	{"a branch always begins at the tracked one", func(b *brokenClone, r *memory.Repository) {
		b.begin = func(ctx context.Context, _ string, ask bool) (providers.Revision, error) {
			return r.Begin(ctx, "", ask)
		}
	}, []string{"branches/start", "branches/side-by-side", "branches/tracked-goes-on", "branches/deleted", "branches/of-two"}},
	{"the remote is always asked", func(b *brokenClone, r *memory.Repository) {
		b.begin = func(ctx context.Context, branch string, _ bool) (providers.Revision, error) {
			return r.Begin(ctx, branch, true)
		}
	}, []string{"branches/start"}},
	{"the remote is never asked", func(b *brokenClone, r *memory.Repository) {
		b.begin = func(ctx context.Context, branch string, _ bool) (providers.Revision, error) {
			return r.Begin(ctx, branch, false)
		}
	}, []string{"branches/start", "branches/unmerged"}},
	{"what the remote has replaces what is here", func(b *brokenClone, r *memory.Repository) {
		b.begin = func(ctx context.Context, branch string, ask bool) (providers.Revision, error) {
			at, err := r.Begin(ctx, branch, ask)
			if theirs := b.remote.Branches()[branch]; ask && theirs != "" {
				at = theirs
			}
			return at, err
		}
	}, []string{"branches/of-two", "branches/unmerged"}},
	{"Begin goes there", func(b *brokenClone, r *memory.Repository) {
		b.begin = func(ctx context.Context, branch string, ask bool) (providers.Revision, error) {
			at, err := r.Begin(ctx, branch, ask)
			if head, headErr := r.Head(ctx); headErr == nil && at != "" {
				return at, errors.Join(err, r.Adopt(ctx, head, at))
			}
			return at, err
		}
	}, []string{"branches/start"}},
	{"commits of a branch go to the tracked one", func(b *brokenClone, r *memory.Repository) {
		b.push = func(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
			if o.Branch == "" {
				o.Branch = "main"
			}
			return r.Push(ctx, o)
		}
	}, []string{"branches/start", "branches/side-by-side", "branches/goes-on-from-another"}},
	{"a branch without commits is pushed", func(b *brokenClone, r *memory.Repository) {
		b.push = func(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
			if o.Branch == "" {
				o.Branch = on(ctx, r)
			}
			return r.Push(ctx, o)
		}
	}, []string{"branches/start"}},
	{"what is merged is pushed again", func(b *brokenClone, r *memory.Repository) {
		b.push = func(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
			result, err := r.Push(ctx, o)
			result.Pushed = result.Pushed || b.remote.Branches()["main"] != result.Revision
			return result, err
		}
	}, []string{"branches/unmerged"}},
	{"the tracked branch's going on is a conflict", func(b *brokenClone, r *memory.Repository) {
		b.push = func(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
			tip, err := r.Begin(ctx, "", true)
			head, headErr := r.Head(ctx)
			if base, baseErr := r.Base(ctx, head, tip); on(ctx, r) != "" && errors.Join(err, headErr, baseErr) == nil && base != tip {
				return providers.PushResult{}, providers.Fail("broken", providers.MethodPush, loc(""), providers.ErrConflict, providers.ErrConflict)
			}
			return r.Push(ctx, o)
		}
	}, []string{"branches/tracked-goes-on"}},
	{"a push to a branch overwrites another's", func(b *brokenClone, r *memory.Repository) {
		b.push = func(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
			if name := on(ctx, r); name != "" {
				return b.force(ctx, name)
			}
			return r.Push(ctx, o)
		}
	}, []string{"branches/of-two"}},
	{"a fetch asks for the tracked branch alone", func(b *brokenClone, r *memory.Repository) {
		b.fetch = func(ctx context.Context) (providers.Revision, error) {
			if _, err := r.Fetch(ctx); err != nil {
				return "", err
			}
			return r.Begin(ctx, "", true)
		}
	}, []string{"branches/tracked-goes-on", "branches/goes-on-from-another", "branches/of-two"}},
	{"a fetch asks for the branch alone", func(b *brokenClone, r *memory.Repository) {
		b.fetch = func(ctx context.Context) (providers.Revision, error) {
			at, err := r.Fetch(ctx)
			if name := on(ctx, r); name != "" {
				return b.remote.Branches()[name], nil
			}
			return at, err
		}
	}, []string{"branches/tracked-goes-on", "branches/unmerged", "branches/deleted"}},
	{"only what was pushed is listed", listing(func(b *providers.Branch) bool { return b.Pushed }),
		[]string{"branches/side-by-side", "branches/unmerged", "branches/deleted"}},
	{"all counts as pushed", listing(func(b *providers.Branch) bool { b.Pushed = true; return true }),
		[]string{"branches/side-by-side", "branches/of-two"}},
	{"all counts as not pushed", listing(func(b *providers.Branch) bool { b.Pushed = false; return true }),
		[]string{"branches/side-by-side", "branches/unmerged"}},
	{"commits are not counted", listing(func(b *providers.Branch) bool { b.Commits = 1; return true }),
		[]string{"branches/unmerged", "branches/goes-on-from-another"}},
	{"pull requests are not listed", listing(func(b *providers.Branch) bool { b.URL = ""; return true }),
		[]string{"branches/propose"}},
	{"a pull request that failed is forgotten", listing(func(b *providers.Branch) bool { b.Wanted = providers.Branch{}.Wanted; return true }),
		[]string{"branches/propose"}},
	{"what was listed stays listed", func(b *brokenClone, r *memory.Repository) {
		seen := map[string]providers.Branch{}
		b.branches = func(ctx context.Context) (providers.Branches, error) {
			all, err := r.Branches(ctx)
			for _, x := range all.Unmerged {
				seen[x.Name] = x
			}
			all.Unmerged = slices.SortedFunc(maps.Values(seen), func(x, y providers.Branch) int { return strings.Compare(x.Name, y.Name) })
			return all, err
		}
	}, []string{"branches/unmerged", "branches/deleted"}},
	{"Branches asks the remote", func(b *brokenClone, r *memory.Repository) {
		b.branches = func(ctx context.Context) (providers.Branches, error) {
			_, err := r.Fetch(ctx)
			all, listErr := r.Branches(ctx)
			return all, errors.Join(swallowed(err, providers.ErrNotExist), listErr)
		}
	}, []string{"branches/unmerged", "branches/deleted"}},
	{"the tip is not known", func(b *brokenClone, r *memory.Repository) {
		b.branches = func(ctx context.Context) (providers.Branches, error) {
			all, err := r.Branches(ctx)
			all.Tip = ""
			return all, err
		}
	}, []string{"branches/start", "branches/unmerged", "branches/readonly"}},
	{"the branch is not said", func(b *brokenClone, r *memory.Repository) {
		b.branches = func(ctx context.Context) (providers.Branches, error) {
			all, err := r.Branches(ctx)
			all.On = ""
			return all, err
		}
	}, []string{"branches/start", "branches/race", "branches/lost-answer"}},
	{"any name is taken", starting(func(ctx context.Context, r *memory.Repository, branch string, from, to providers.Revision) error {
		return swallowed(r.Start(ctx, branch, from, to), providers.ErrInvalid)
	}), []string{"branches/refused"}},
	{"a start does not look where the head is", starting(func(ctx context.Context, r *memory.Repository, branch string, _, to providers.Revision) error {
		head, err := r.Head(ctx)
		return errors.Join(err, r.Start(ctx, branch, head, to))
	}), []string{"branches/refused", "branches/race"}},
	{"a start at what is not known comes to nothing", starting(func(ctx context.Context, r *memory.Repository, branch string, from, to providers.Revision) error {
		return swallowed(r.Start(ctx, branch, from, to), providers.ErrNotExist)
	}), []string{"branches/refused"}},
	{"a start that fails goes to the branch", starting(func(ctx context.Context, r *memory.Repository, branch string, from, to providers.Revision) error {
		err := r.Start(ctx, branch, from, to)
		if head, headErr := r.Head(ctx); errors.Is(err, providers.ErrNotExist) && headErr == nil {
			return errors.Join(err, r.Start(ctx, branch, head, head))
		}
		return err
	}), []string{"branches/refused"}},
	{"a start that is repeated is a conflict", starting(func(ctx context.Context, r *memory.Repository, branch string, from, to providers.Revision) error {
		if head, err := r.Head(ctx); err == nil && head == to && head != from {
			return providers.Fail("broken", providers.MethodStart, loc(""), providers.ErrConflict, providers.ErrConflict)
		}
		return r.Start(ctx, branch, from, to)
	}), []string{"branches/refused", "branches/lost-answer"}},
	{"the first revision goes to the branch", func(b *brokenClone, r *memory.Repository) {
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
	{"a start goes file by file", func(b *brokenClone, r *memory.Repository) {
		halfway := fileByFile(b, r)
		b.start = func(ctx context.Context, branch string, _, to providers.Revision) error {
			return r.Start(ctx, branch, halfway(ctx), to)
		}
	}, []string{"branches/one-step"}},
	{"each wish is another pull request", func(b *brokenClone, r *memory.Repository) {
		n := 0
		b.propose = func(ctx context.Context, branch string, pr providers.PullRequest) (string, error) {
			url, err := r.Propose(ctx, branch, pr)
			if n++; url != "" {
				url += fmt.Sprint("/", n)
			}
			return url, err
		}
	}, []string{"branches/propose"}},
	{"a pull request of nothing", func(b *brokenClone, r *memory.Repository) {
		b.propose = func(ctx context.Context, branch string, pr providers.PullRequest) (string, error) {
			url, err := r.Propose(ctx, branch, pr)
			if url == "" && err == nil {
				url = "memory:pull/0"
			}
			return url, err
		}
	}, []string{"branches/propose"}},
	{"a pull request of the tracked branch", func(b *brokenClone, r *memory.Repository) {
		b.propose = func(ctx context.Context, branch string, pr providers.PullRequest) (string, error) {
			url, err := r.Propose(ctx, branch, pr)
			return url, swallowed(err, providers.ErrInvalid)
		}
	}, []string{"branches/propose"}},
}

package providertest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// brokenClone is a clone with one fault each, which a mistake puts in the place of what
// newBrokenClone puts there.
type brokenClone struct {
	*memoryrepo.Repository
	remote *memoryrepo.Remote
	list   func(context.Context, providers.Locator, providers.ListOptions) (providers.Page, error)
	commit func(context.Context, providers.ChangeSet) (providers.CommitResult, error)
	at     func(context.Context, providers.Revision) (providers.Provider, error)
	find   func(context.Context, string) (providers.Found, error)
	push   func(context.Context, providers.PushOptions) (providers.PushResult, error)
	fetch  func(context.Context) (providers.Revision, error)
	adopt  func(context.Context, providers.Revision, providers.Revision) error
	base   func(context.Context, providers.Revision, providers.Revision) (providers.Revision, error)
	differ func(_ context.Context, from, to providers.Revision) ([]providers.Difference, error)
	rebase func(_ context.Context, base, from, onto providers.Revision, _ providers.Combine) (providers.Revision, error)

	branches func(context.Context) (providers.Branches, error)
	begin    func(_ context.Context, branch string, ask bool) (providers.Revision, error)
	start    func(_ context.Context, branch string, from, to providers.Revision) error
	propose  func(_ context.Context, branch string, _ providers.PullRequest) (string, error)
}

// newBrokenClone makes a clone with no fault yet.
func newBrokenClone(remote *memoryrepo.Remote) *brokenClone {
	r := memoryrepo.NewRepository(remote, "", memory.Options{})
	return &brokenClone{
		Repository: r, remote: remote,
		list: r.List, commit: r.Commit, at: r.At, find: r.Find, push: r.Push, fetch: r.Fetch, adopt: r.Adopt, base: r.Base,
		differ: r.Differences, rebase: r.Rebase, branches: r.Branches, begin: r.Begin, start: r.Start, propose: r.Propose,
	}
}

func (b *brokenClone) List(ctx context.Context, l providers.Locator, o providers.ListOptions) (providers.Page, error) {
	return b.list(ctx, l, o)
}

func (b *brokenClone) Commit(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	return b.commit(ctx, set)
}

func (b *brokenClone) At(ctx context.Context, r providers.Revision) (providers.Provider, error) {
	return b.at(ctx, r)
}

func (b *brokenClone) Find(ctx context.Context, name string) (providers.Found, error) {
	return b.find(ctx, name)
}

func (b *brokenClone) Push(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
	return b.push(ctx, o)
}

func (b *brokenClone) Fetch(ctx context.Context) (providers.Revision, error) { return b.fetch(ctx) }

func (b *brokenClone) Adopt(ctx context.Context, from, to providers.Revision) error {
	return b.adopt(ctx, from, to)
}

func (b *brokenClone) Base(ctx context.Context, x, y providers.Revision) (providers.Revision, error) {
	return b.base(ctx, x, y)
}

func (b *brokenClone) Differences(ctx context.Context, from, to providers.Revision) ([]providers.Difference, error) {
	return b.differ(ctx, from, to)
}

func (b *brokenClone) Rebase(ctx context.Context, base, from, onto providers.Revision, combine providers.Combine) (providers.Revision, error) {
	return b.rebase(ctx, base, from, onto, combine)
}

// force puts the head where nobody may be asked.
func (b *brokenClone) force(ctx context.Context, branch string) (providers.PushResult, error) {
	head, err := b.Head(ctx)
	return providers.PushResult{Revision: head, Pushed: true}, errors.Join(err, b.remote.Reset(branch, head))
}

// fileByFile shows a mixture of two revisions until somebody has looked, and
// gives what is the head then.
func fileByFile(b *brokenClone, r *memoryrepo.Repository) (halfway func(context.Context) providers.Revision) {
	var lists atomic.Int64
	b.list = func(ctx context.Context, l providers.Locator, o providers.ListOptions) (providers.Page, error) {
		defer lists.Add(1)
		return r.List(ctx, l, o)
	}
	return func(ctx context.Context) providers.Revision {
		before, _ := r.Commit(ctx, providers.ChangeSet{Changes: []providers.Change{
			change("a", "neither nor", providers.Unconditional())}})
		for i, n := 0, lists.Load(); i < 10_000 && lists.Load() < n+2; i++ {
			runtime.Gosched() // until somebody has looked
		}
		return before.Revision
	}
}

type cloneMistake struct {
	name   string
	breaks func(b *brokenClone, r *memoryrepo.Repository)
	checks []string
}

// cloneMistakes are clones that real bugs would make, and the checks that must
// notice; they may be of Checks, too.
var cloneMistakes = []cloneMistake{
	{"files cannot be made executable", func(b *brokenClone, r *memoryrepo.Repository) {
		b.commit = func(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
			set.Changes = slices.Clone(set.Changes)
			for i := range set.Changes {
				set.Changes[i].Attr = providers.Attr{}
			}
			return r.Commit(ctx, set)
		}
	}, []string{"set/attributes"}},
	{"the past is the present", func(b *brokenClone, r *memoryrepo.Repository) {
		b.at = func(ctx context.Context, id providers.Revision) (providers.Provider, error) {
			if _, err := r.At(ctx, id); err != nil {
				return nil, err
			}
			head, _ := r.Head(ctx)
			return r.At(ctx, head)
		}
	}, []string{"past/at", "sync/fetch", "sync/adopt"}},
	{"the past is this very provider", func(b *brokenClone, r *memoryrepo.Repository) {
		b.at = func(ctx context.Context, id providers.Revision) (providers.Provider, error) { return r, nil }
	}, []string{"past/at", "past/is-read-only", "past/unknown-revision"}},
	{"every name is one of the head", func(b *brokenClone, r *memoryrepo.Repository) {
		b.find = func(ctx context.Context, _ string) (providers.Found, error) {
			head, err := r.Head(ctx)
			if err != nil {
				return providers.Found{}, err
			}
			return r.Find(ctx, string(head))
		}
	}, []string{"past/find"}},
	{"fetching brings what nobody pushed", func(b *brokenClone, r *memoryrepo.Repository) {
		b.commit = func(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
			result, err := r.Commit(ctx, set)
			if err == nil {
				err = b.remote.Reset("", result.Revision)
			}
			return result, err
		}
	}, []string{"push/first", "push/not-fast-forward", "sync/merge"}},
	{"a new remote has a branch of nothing", func(b *brokenClone, r *memoryrepo.Repository) {
		b.fetch = func(ctx context.Context) (providers.Revision, error) {
			id, err := r.Fetch(ctx)
			return id, swallowed(err, providers.ErrNotExist)
		}
	}, []string{"push/first", "push/deleted-branch"}},
	{"every push says that it pushed", func(b *brokenClone, r *memoryrepo.Repository) {
		b.push = func(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
			result, err := r.Push(ctx, o)
			result.Pushed = true
			return result, err
		}
	}, []string{"push/nothing", "push/branch", "push/lost-answer", "sync/adopt"}},
	{"pushes are forced", func(b *brokenClone, r *memoryrepo.Repository) {
		b.push = func(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
			result, err := r.Push(ctx, o)
			if errors.Is(err, providers.ErrConflict) {
				return b.force(ctx, o.Branch)
			}
			return result, err
		}
	}, []string{"push/not-fast-forward", "push/lease", "push/race", "push/branch", "push/deleted-branch"}},
	{"a lease is for any revision", func(b *brokenClone, r *memoryrepo.Repository) {
		b.push = func(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
			if o.Lease != "" && o.Branch == "" {
				return b.force(ctx, "")
			}
			return r.Push(ctx, o)
		}
	}, []string{"push/lease"}},
	{"a lease makes what is not there", func(b *brokenClone, r *memoryrepo.Repository) {
		b.push = func(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
			if o.Branch == "new" {
				o.Lease = ""
			}
			return r.Push(ctx, o)
		}
	}, []string{"push/lease"}},
	{"fetching is adopting", func(b *brokenClone, r *memoryrepo.Repository) {
		b.fetch = func(ctx context.Context) (providers.Revision, error) {
			id, err := r.Fetch(ctx)
			if err == nil {
				head, _ := r.Head(ctx)
				err = r.Adopt(ctx, head, id)
			}
			return id, err
		}
	}, []string{"sync/fetch", "push/not-fast-forward"}},
	{"adopt asks for nothing", func(b *brokenClone, r *memoryrepo.Repository) {
		b.adopt = func(ctx context.Context, from, to providers.Revision) error {
			head, _ := r.Head(ctx)
			return r.Adopt(ctx, head, to)
		}
	}, []string{"sync/adopt"}},
	{"adopt goes file by file", func(b *brokenClone, r *memoryrepo.Repository) {
		halfway := fileByFile(b, r)
		b.adopt = func(ctx context.Context, _, to providers.Revision) error { return r.Adopt(ctx, halfway(ctx), to) }
	}, []string{"sync/adopt-in-one-step"}},
	{"the base is the older one", func(b *brokenClone, r *memoryrepo.Repository) {
		b.base = func(_ context.Context, x, y providers.Revision) (providers.Revision, error) { return min(x, y), nil }
	}, []string{"sync/base", "past/unknown-revision"}},
	{"a merge has one parent", func(b *brokenClone, r *memoryrepo.Repository) {
		b.commit = func(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
			set.Merge = ""
			return r.Commit(ctx, set)
		}
	}, []string{"sync/merge", "past/unknown-revision"}},
	{"only the root is compared", func(b *brokenClone, r *memoryrepo.Repository) {
		b.differ = func(ctx context.Context, from, to providers.Revision) ([]providers.Difference, error) {
			all, err := r.Differences(ctx, from, to)
			return slices.DeleteFunc(all, func(d providers.Difference) bool { return len(d.Locator.Parts()) > 1 }), err
		}
	}, []string{"differences/paths", "differences/kinds"}},
	{"what is not known has no differences", func(b *brokenClone, r *memoryrepo.Repository) {
		b.differ = func(ctx context.Context, from, to providers.Revision) ([]providers.Difference, error) {
			all, err := r.Differences(ctx, from, to)
			return all, swallowed(err, providers.ErrNotExist)
		}
	}, []string{"differences/unknown-revision"}},
	{"a rebase leaves out what was ours", func(b *brokenClone, r *memoryrepo.Repository) {
		b.rebase = func(_ context.Context, _, _, onto providers.Revision, _ providers.Combine) (providers.Revision, error) {
			return onto, nil
		}
	}, []string{"rebase/line", "rebase/conflict", "rebase/merge"}},
	{"a rebase shows what it makes", func(b *brokenClone, r *memoryrepo.Repository) {
		b.rebase = func(ctx context.Context, base, from, onto providers.Revision, combine providers.Combine) (providers.Revision, error) {
			made, err := r.Rebase(ctx, base, from, onto, combine)
			if err == nil {
				err = r.Adopt(ctx, from, made)
			}
			return made, err
		}
	}, []string{"rebase/line"}},
	{"a rebase takes one side where nobody can say", func(b *brokenClone, r *memoryrepo.Repository) {
		b.rebase = func(ctx context.Context, base, from, onto providers.Revision, _ providers.Combine) (providers.Revision, error) {
			return r.Rebase(ctx, base, from, onto, func(_, a, _ []byte, _ bool) ([]byte, bool) { return a, true })
		}
	}, []string{"rebase/conflict"}},
	{"a rebase begins where the histories part", func(b *brokenClone, r *memoryrepo.Repository) {
		b.rebase = func(ctx context.Context, base, from, onto providers.Revision, combine providers.Combine) (providers.Revision, error) {
			return r.Rebase(ctx, onto, from, onto, combine)
		}
	}, []string{"rebase/rewritten"}},
}

// brokenClones makes two clones with one mistake.
func brokenClones(breaks func(b *brokenClone, r *memoryrepo.Repository)) func(T) Clones {
	return func(T) Clones {
		remote := memoryrepo.NewRemote(nil)
		clone := func() *brokenClone {
			b := newBrokenClone(remote)
			breaks(b, b.Repository)
			return b
		}
		a := clone()
		mute := func(mute bool) {
			if a.Switches().Clear(); mute {
				a.Switches().Fail(providers.MethodPropose, 1, providers.ErrUnavailable)
			}
		}
		return Clones{A: a, B: clone(), Mute: mute, Drop: func(branch string) error { return remote.Reset(branch, "") }}
	}
}

// clonesAsOne are the checks of two clones as such of one, which make the clones themselves.
func clonesAsOne(new func(T) Clones) (all []Check) {
	for _, check := range CloneChecks() {
		all = append(all, Check{Name: check.Name, Run: func(t T, _ providers.Provider) { check.run(t, new) }})
	}
	return all
}

package providertest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// Clones are two providers on one new remote, which has no branch yet, and both track the same
// branch of it. They are Committers, Snapshotters, Pushers and Syncers.
type Clones struct {
	A, B providers.Provider
	// Drop deletes a branch ("": the tracked one) at the remote, as another user would.
	Drop func(branch string) error
	// Mute makes A's Propose fail with ErrUnavailable, until it is called with false; nil: the
	// state after such a failure is not checked.
	Mute func(mute bool)
}

// CloneCheck is one sentence of the contract that needs two clones.
type CloneCheck struct {
	Name string
	Run  func(t T, c Clones)
}

// CloneChecks are all checks that need two clones.
func CloneChecks() []CloneCheck {
	return []CloneCheck{
		{"past/at", pastAt},
		{"past/is-read-only", pastReadOnly},
		{"past/find", pastFind},
		{"past/unknown-revision", pastUnknown},
		{"push/first", pushFirst},
		{"push/nothing", pushNothing},
		{"push/branch", pushBranch},
		{"push/not-fast-forward", pushConflict},
		{"push/lease", pushLease},
		{"push/race", pushRace},
		{"push/lost-answer", pushLostAnswer},
		{"push/deleted-branch", pushDeleted},
		{"sync/fetch", syncFetch},
		{"sync/adopt", syncAdopt},
		{"sync/adopt-in-one-step", syncOneStep},
		{"sync/base", syncBase},
		{"sync/merge", syncMerge},
		{"differences/paths", differing(differPaths)},
		{"differences/kinds", differing(differKinds)},
		{"differences/unknown-revision", differing(differUnknown)},
		{"rebase/line", rebasing(rebaseLine)},
		{"rebase/conflict", rebasing(rebaseConflict)},
		{"rebase/merge", rebasing(rebaseMerge)},
		{"rebase/rewritten", rebasing(rebaseRewritten)},
		{"branches/start", branching(branchStart)},
		{"branches/side-by-side", branching(branchSideBySide)},
		{"branches/unmerged", branching(branchUnmerged)},
		{"branches/tracked-goes-on", branching(branchTrackedGoesOn)},
		{"branches/goes-on-from-another", branching(branchGoesOn)},
		{"branches/of-two", branching(branchOfTwo)},
		{"branches/deleted", branching(branchDeleted)},
		{"branches/refused", branching(branchRefused)},
		{"branches/nothing", branching(branchNothing)},
		{"branches/one-step", branching(branchOneStep)},
		{"branches/race", branching(branchRace)},
		{"branches/lost-answer", branching(branchLostAnswer)},
		{"branches/propose", branching(branchPropose)},
		{"branches/readonly", branching(branchReadOnly)},
	}
}

// RunClones tests providers with revisions and a remote against their part of the contract. Run
// does the rest of it, with a clone of a new remote. The checks run in parallel, so that
// several may call new at once.
func RunClones(t *testing.T, new func(t T) Clones) {
	if tier.Soak {
		RunWrappedClones(t, new)
		return
	}
	for _, check := range CloneChecks() {
		t.Run(check.Name, func(t *testing.T) {
			t.Parallel()
			check.run(t, new)
		})
	}
}

// RunWrappedClones is RunClones, and the same again with the clones inside wrappers: for the
// one kind of clones that is also tested inside wrappers.
func RunWrappedClones(t *testing.T, new func(t T) Clones) {
	runClones(t, CloneChecks(), new)
	t.Run("wrapped", func(t *testing.T) {
		runClones(t, CloneChecks(), func(t T) Clones {
			c := new(t)
			c.A, c.B = providers.Wrap(c.A, providers.WrapOptions{}), providers.Wrap(c.B, providers.WrapOptions{})
			return c
		})
	})
}

// OverWire is a check of each kind of request from clones to their remote, for RunCloneVariant.
// The winner of a race, and the use of fetched revisions, do not depend on the wire.
var OverWire = []string{"push/first", "push/branch", "push/not-fast-forward", "push/lost-answer", "push/deleted-branch", "sync/fetch"}

// RunCloneVariant is the part of RunClones with these names, or with names that begin with
// them: for clones that differ in nothing else from some for which all of it has run.
func RunCloneVariant(t *testing.T, names []string, new func(t T) Clones) {
	runClones(t, slices.DeleteFunc(CloneChecks(), func(c CloneCheck) bool {
		return !tier.Soak && !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(c.Name, name) })
	}), new)
}

func runClones(t *testing.T, checks []CloneCheck, new func(t T) Clones) {
	for _, check := range checks {
		t.Run(check.Name, func(t *testing.T) { check.run(t, new) })
	}
}

func (check CloneCheck) run(t T, new func(t T) Clones) {
	c := new(t)
	t.Cleanup(func() {
		if err := errors.Join(c.A.Close(), c.B.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	check.Run(t, c)
}

// rebasing, differing and branching are checks of abilities that not every store with a remote
// has.
func rebasing(run func(t T, c Clones)) func(t T, c Clones) {
	return where(providers.AbilityRebase, run)
}

func differing(run func(t T, c Clones)) func(t T, c Clones) {
	return where(providers.AbilityDiffer, run)
}

func branching(run func(t T, c Clones)) func(t T, c Clones) {
	return where(providers.AbilityBranch, run)
}

func where(a providers.Ability, run func(t T, c Clones)) func(t T, c Clones) {
	return func(t T, c Clones) {
		if c.B.Capabilities().Abilities.Has(a) {
			run(t, c)
		}
	}
}

// save commits one file unconditionally, and returns the revision.
func save(t T, p providers.Provider, name, content string) providers.Revision {
	t.Helper()
	return commit(t, p, change(name, content, providers.Unconditional())).Revision
}

func push(t T, p providers.Provider, opts providers.PushOptions) providers.PushResult {
	t.Helper()
	result, err := must[providers.Pusher](t, p).Push(t.Context(), opts)
	wantOK(t, "push", err)
	return result
}

func fetch(t T, p providers.Provider) providers.Revision {
	t.Helper()
	r, err := must[providers.Syncer](t, p).Fetch(t.Context())
	wantOK(t, "fetch", err)
	return r
}

func adopt(t T, p providers.Provider, to providers.Revision) {
	t.Helper()
	wantOK(t, "adopt", must[providers.Syncer](t, p).Adopt(t.Context(), headOf(t, p), to))
}

func headOf(t T, p providers.Provider) providers.Revision {
	t.Helper()
	return head(t, must[providers.Committer](t, p))
}

// at opens the past, until the check ends.
func at(t T, p providers.Provider, r providers.Revision) providers.Provider {
	t.Helper()
	past, err := must[providers.Snapshotter](t, p).At(t.Context(), r)
	wantOK(t, "at", err)
	t.Cleanup(func() {
		if err := past.Close(); err != nil {
			t.Errorf("close of the past: %v", err)
		}
	})
	return past
}

// shared commits and pushes a first file of A, and brings it to B.
func shared(t T, c Clones) providers.Revision {
	t.Helper()
	r := save(t, c.A, "shared", "1")
	push(t, c.A, providers.PushOptions{})
	adopt(t, c.B, fetch(t, c.B))
	return r
}

// syncFetch: fetching changes nothing that reads show.
func syncFetch(t T, c Clones) {
	first := shared(t, c)
	second := save(t, c.A, "shared", "2")
	push(t, c.A, providers.PushOptions{})
	for range 2 {
		if got := fetch(t, c.B); got != second {
			t.Errorf("fetch says %q, want %q", got, second)
		}
		if headOf(t, c.B) != first {
			t.Errorf("fetch moved the head to %q", headOf(t, c.B))
		}
		wantTree(t, c.B, "", map[string]string{"shared": "1"})
		wantTree(t, at(t, c.B, second), "", map[string]string{"shared": "2"})
	}
}

func syncAdopt(t T, c Clones) {
	first := shared(t, c)
	second := save(t, c.A, "shared", "2")
	push(t, c.A, providers.PushOptions{})
	fetch(t, c.B)
	own := save(t, c.B, "own", "x")
	s := must[providers.Syncer](t, c.B)
	wantErr(t, "adopt instead of what is not the head", s.Adopt(t.Context(), first, second), providers.ErrConflict)
	wantTree(t, c.B, "", map[string]string{"shared": "1", "own": "x"})
	for range 2 { // the second time it is in that state
		wantOK(t, "adopt", s.Adopt(t.Context(), own, second))
	}
	if headOf(t, c.B) != second {
		t.Errorf("the head is %q, want %q", headOf(t, c.B), second)
	}
	wantTree(t, c.B, "", map[string]string{"shared": "2"})
	wantTree(t, at(t, c.B, own), "", map[string]string{"shared": "1", "own": "x"})
	if result := push(t, c.B, providers.PushOptions{}); result.Pushed {
		t.Errorf("what was left behind is pushed: %+v", result)
	}
	wantOK(t, "adopt of what was left behind", s.Adopt(t.Context(), second, own))
	wantTree(t, c.B, "", map[string]string{"shared": "1", "own": "x"})
}

// syncOneStep: a listing is of one revision, even if another is adopted meanwhile.
func syncOneStep(t T, c Clones) {
	oneStep(t, c.A, must[providers.Syncer](t, c.A).Adopt)
}

// oneStep goes from one of two revisions to the other and back, and lists meanwhile.
func oneStep(t T, p providers.Provider, step func(_ context.Context, from, to providers.Revision) error) {
	t.Helper()
	pair := func(content string) providers.Revision {
		return commit(t, p, change("a", content, providers.Unconditional()), change("b", content, providers.Unconditional())).Revision
	}
	revisions := [2]providers.Revision{pair("1"), pair("22")}
	var done atomic.Bool
	race(t, "step or list", func(i int) error {
		if i == 0 {
			defer done.Store(true)
			return inTurn(t, revisions, step)
		}
		for !done.Load() {
			page, err := p.List(t.Context(), loc(""), providers.ListOptions{})
			if err != nil {
				return err
			}
			if len(page.Entries) != 2 || page.Entries[0].Size != page.Entries[1].Size {
				t.Errorf("a mixture of two revisions: %+v", page.Entries)
				return nil
			}
		}
		return nil
	}, errNever)
}

// inTurn goes from the second of two revisions to the first and back.
func inTurn(t T, revisions [2]providers.Revision, step func(_ context.Context, from, to providers.Revision) error) error {
	for round := range rounds * tier.Pick(2, rounds) {
		if err := step(t.Context(), revisions[(round+1)%2], revisions[round%2]); err != nil {
			return err
		}
		runtime.Gosched() // so that the listing goroutines get a turn
	}
	return nil
}

func syncBase(t T, c Clones) {
	first := shared(t, c)
	theirs := save(t, c.A, "a", "1")
	push(t, c.A, providers.PushOptions{})
	middle := save(t, c.B, "b", "1")
	ours := save(t, c.B, "b", "2")
	fetch(t, c.B)
	for _, x := range []struct{ a, b, want providers.Revision }{
		{ours, theirs, first}, {theirs, ours, first}, {first, ours, first}, {ours, middle, middle}, {ours, ours, ours},
	} {
		got, err := must[providers.Syncer](t, c.B).Base(t.Context(), x.a, x.b)
		wantOK(t, "base", err)
		if got != x.want {
			t.Errorf("base of %q and %q: got %q, want %q", x.a, x.b, got, x.want)
		}
	}
}

// syncMerge: a revision with both as parents is no conflict for either side, and repeating it
// makes no other.
func syncMerge(t T, c Clones) {
	shared(t, c)
	theirs := save(t, c.A, "a", "theirs")
	push(t, c.A, providers.PushOptions{})
	ours := save(t, c.B, "b", "ours")
	fetch(t, c.B)
	set := providers.ChangeSet{Base: ours, Merge: theirs, Message: "merge", Changes: []providers.Change{change("a", "theirs", absent)}}
	merged, err := must[providers.Committer](t, c.B).Commit(t.Context(), set)
	wantOK(t, "merge", err)
	for _, parent := range []providers.Revision{ours, theirs} {
		base, err := must[providers.Syncer](t, c.B).Base(t.Context(), merged.Revision, parent)
		wantOK(t, "base", err)
		if base != parent {
			t.Errorf("the merge has not the parent %q: base %q", parent, base)
		}
	}
	push(t, c.B, providers.PushOptions{})
	again, err := must[providers.Committer](t, c.B).Commit(t.Context(), providers.ChangeSet{Merge: theirs})
	wantOK(t, "merge of what is merged", err)
	if again.Committed || again.Revision != merged.Revision {
		t.Errorf("merge of what is merged says %+v", again)
	}
	save(t, c.A, "c", "more")
	third := headOf(t, c.A)
	adopt(t, c.A, fetch(t, c.A))
	empty, err := must[providers.Committer](t, c.A).Commit(t.Context(), providers.ChangeSet{Merge: third})
	wantOK(t, "merge without changes", err)
	if !empty.Committed {
		t.Errorf("merge without changes says %+v", empty)
	}
	push(t, c.A, providers.PushOptions{})
	wantTree(t, c.A, "", map[string]string{"shared": "1", "a": "theirs", "b": "ours"})
}

package providertest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/wsmount/wsmount/providers"
)

// The branches of these checks.
const (
	one = "wsmount/c/one"
	two = "wsmount/c/two"
)

func brancher(t T, p providers.Provider) providers.Brancher {
	t.Helper()
	return must[providers.Brancher](t, p)
}

func branchesOf(t T, p providers.Provider) providers.Branches {
	t.Helper()
	all, err := brancher(t, p).Branches(t.Context())
	wantOK(t, "branches", err)
	return all
}

// wantBegin checks the revision where a branch begins.
func wantBegin(t T, p providers.Provider, branch string, ask bool, want providers.Revision) {
	t.Helper()
	got, err := brancher(t, p).Begin(t.Context(), branch, ask)
	wantOK(t, "begin of "+branch, err)
	if got != want {
		t.Errorf("%q, asking %v, begins at %q, want %q", branch, ask, got, want)
	}
}

// goTo begins a branch, or goes back to it.
func goTo(t T, p providers.Provider, branch string) {
	t.Helper()
	to, err := brancher(t, p).Begin(t.Context(), branch, true)
	wantOK(t, "begin of "+branch, err)
	wantOK(t, "start of "+branch, brancher(t, p).Start(t.Context(), branch, headOf(t, p), to))
	if on := branchesOf(t, p).On; on != branch {
		t.Errorf("on %q, want %q", on, branch)
	}
}

// waiting is a branch of so many commits that is not merged.
func waiting(name string, at providers.Revision, commits int, pushed bool) providers.Branch {
	return providers.Branch{Name: name, Revision: at, Commits: commits, Pushed: pushed}
}

func wantUnmerged(t T, p providers.Provider, when string, want ...providers.Branch) {
	t.Helper()
	if got := branchesOf(t, p).Unmerged; !slices.Equal(got, want) {
		t.Errorf("%s: unmerged are %+v, want %+v", when, got, want)
	}
}

func wantUnpushed(t T, p providers.Provider, when string, want int) {
	t.Helper()
	if got := branchesOf(t, p).Unpushed; got != want {
		t.Errorf("%s: %d commits are not pushed, want %d", when, got, want)
	}
}

// branchStart: commits on a branch are pushed to it, and no push happens before there is one.
// Only a clone that asks the remote learns of it.
func branchStart(t T, c Clones) {
	first := shared(t, c)
	wantBegin(t, c.A, one, true, first)
	goTo(t, c.A, one)
	if b := branchesOf(t, c.A); b.Tracked == "" || b.Tip != first || headOf(t, c.A) != first {
		t.Errorf("at the beginning: %+v, head %q", b, headOf(t, c.A))
	}
	wantUnmerged(t, c.A, "at the beginning")
	if result := push(t, c.A, providers.PushOptions{}); result.Pushed || result.Revision != first {
		t.Errorf("a branch without commits: %+v", result)
	}
	ours := save(t, c.A, "a", "1")
	if result := push(t, c.A, providers.PushOptions{}); !result.Pushed || result.Revision != ours {
		t.Errorf("push says %+v, want %q", result, ours)
	}
	if got := fetch(t, c.B); got != first {
		t.Errorf("the tracked branch is at %q, want %q", got, first)
	}
	wantBegin(t, c.B, one, false, first)
	wantBegin(t, c.B, one, true, ours)
	wantTree(t, c.B, "", map[string]string{"shared": "1"})
	wantBegin(t, c.B, "", true, first)
	goTo(t, c.B, one)
	wantTree(t, c.B, "", map[string]string{"shared": "1", "a": "1"})
}

// branchSideBySide: a branch has nothing of another, and its unpushed commits are present when
// the head comes back to it.
func branchSideBySide(t T, c Clones) {
	first := shared(t, c)
	goTo(t, c.A, one)
	ours := save(t, c.A, "one", "1")
	goTo(t, c.A, two)
	wantTree(t, c.A, "", map[string]string{"shared": "1"})
	other := save(t, c.A, "two", "2")
	wantUnmerged(t, c.A, "before a push", waiting(one, ours, 1, false), waiting(two, other, 1, false))
	goTo(t, c.A, "")
	wantTree(t, c.A, "", map[string]string{"shared": "1"})
	wantBegin(t, c.A, one, false, ours)
	goTo(t, c.A, one)
	wantTree(t, c.A, "", map[string]string{"shared": "1", "one": "1"})
	push(t, c.A, providers.PushOptions{})
	wantUnmerged(t, c.A, "after a push", waiting(one, ours, 1, true), waiting(two, other, 1, false))
	wantBegin(t, c.B, one, true, ours)
	wantBegin(t, c.B, two, true, first)
}

// branchUnmerged: a branch is listed until its commits are in the tracked one and the clone has
// fetched that; then it continues from the tracked one.
func branchUnmerged(t T, c Clones) {
	shared(t, c)
	goTo(t, c.A, one)
	save(t, c.A, "a", "1")
	ours := save(t, c.A, "a", "2")
	wantUnmerged(t, c.A, "before a push", waiting(one, ours, 2, false))
	wantUnpushed(t, c.A, "before a push", 2)
	push(t, c.A, providers.PushOptions{})
	wantUnpushed(t, c.A, "after a push", 0)
	merged := mergeIn(t, c.B, one, ours)
	wantUnmerged(t, c.A, "merged, and not heard of", waiting(one, ours, 2, true))
	if got := fetch(t, c.A); got != merged {
		t.Errorf("fetch says %q, want %q", got, merged)
	}
	wantUnmerged(t, c.A, "merged")
	if tip := branchesOf(t, c.A).Tip; tip != merged {
		t.Errorf("the tracked branch is said to be at %q, want %q", tip, merged)
	}
	if result := push(t, c.A, providers.PushOptions{}); result.Pushed {
		t.Errorf("push of what is merged says %+v", result)
	}
	wantBegin(t, c.A, one, true, merged)
	more := save(t, c.A, "a", "3")
	wantUnmerged(t, c.A, "after another commit", waiting(one, more, 1, false))
	wantUnpushed(t, c.A, "after another commit", 1)
	goTo(t, c.A, "")
	wantUnpushed(t, c.A, "on the tracked branch", 0)
	save(t, c.A, "b", "1")
	wantUnpushed(t, c.A, "after a commit to that", 1)
}

// mergeIn merges a branch into the tracked one, as another user would.
func mergeIn(t T, p providers.Provider, branch string, at providers.Revision) providers.Revision {
	t.Helper()
	wantBegin(t, p, branch, true, at)
	save(t, p, "theirs", "1")
	result, err := must[providers.Committer](t, p).Commit(t.Context(), providers.ChangeSet{Merge: at, Message: "merge"})
	wantOK(t, "merge", err)
	push(t, p, providers.PushOptions{})
	return result.Revision
}

// branchTrackedGoesOn: a fetch asks for the tracked branch before the first push, and from then
// on for the branch, which others' commits to the tracked one do not affect.
func branchTrackedGoesOn(t T, c Clones) {
	shared(t, c)
	goTo(t, c.A, one)
	theirs := save(t, c.B, "b", "1")
	push(t, c.B, providers.PushOptions{})
	if got := fetch(t, c.A); got != theirs {
		t.Errorf("before the first push fetch says %q, want %q", got, theirs)
	}
	ours := save(t, c.A, "a", "1")
	push(t, c.A, providers.PushOptions{})
	theirs = save(t, c.B, "b", "2")
	push(t, c.B, providers.PushOptions{})
	if got := fetch(t, c.A); got != ours {
		t.Errorf("after it fetch says %q, want %q", got, ours)
	}
	wantBegin(t, c.A, one, true, ours)
	wantBegin(t, c.A, two, true, theirs)
	save(t, c.A, "a", "2")
	if result := push(t, c.A, providers.PushOptions{}); !result.Pushed {
		t.Errorf("push beside others' work says %+v", result)
	}
}

// branchGoesOn: a branch that begins at the head of another continues from the pushed commits
// of that one.
func branchGoesOn(t T, c Clones) {
	shared(t, c)
	goTo(t, c.A, one)
	ours := save(t, c.A, "a", "1")
	push(t, c.A, providers.PushOptions{})
	wantOK(t, "start where the head is", brancher(t, c.A).Start(t.Context(), two, ours, ours))
	save(t, c.B, "b", "1")
	push(t, c.B, providers.PushOptions{})
	if got := fetch(t, c.A); got != ours {
		t.Errorf("fetch says %q, want %q", got, ours)
	}
	more := save(t, c.A, "a", "2")
	push(t, c.A, providers.PushOptions{})
	wantUnmerged(t, c.A, "both", waiting(one, ours, 1, true), waiting(two, more, 2, true))
	wantBegin(t, c.B, one, true, ours)
	wantBegin(t, c.B, two, true, more)
}

// branchOfTwo: of two clones on one branch the second to push gets a conflict, and continues
// from the commits that the first pushed.
func branchOfTwo(t T, c Clones) {
	shared(t, c)
	goTo(t, c.A, one)
	save(t, c.A, "a", "1")
	push(t, c.A, providers.PushOptions{})
	goTo(t, c.B, one)
	theirs := save(t, c.B, "b", "1")
	push(t, c.B, providers.PushOptions{})
	ours := save(t, c.A, "a", "2")
	_, err := must[providers.Pusher](t, c.A).Push(t.Context(), providers.PushOptions{})
	wantErr(t, "push beside another's", err, providers.ErrConflict)
	if got := fetch(t, c.A); got != theirs || headOf(t, c.A) != ours {
		t.Errorf("fetch says %q, want %q; the head is %q, want %q", got, theirs, headOf(t, c.A), ours)
	}
	wantUnmerged(t, c.A, "beside another's", waiting(one, ours, 2, false))
	wantBegin(t, c.A, one, true, ours)
	adopt(t, c.A, theirs)
	save(t, c.A, "a", "2")
	push(t, c.A, providers.PushOptions{})
	adopt(t, c.B, fetch(t, c.B))
	wantTree(t, c.B, "", map[string]string{"shared": "1", "a": "2", "b": "1"})
}

// branchDeleted: a branch that others deleted after all of it was pushed is over; unpushed
// commits stay waiting.
func branchDeleted(t T, c Clones) {
	first := shared(t, c)
	goTo(t, c.A, one)
	save(t, c.A, "a", "1")
	push(t, c.A, providers.PushOptions{})
	unsent := save(t, c.A, "a", "2")
	goTo(t, c.A, two)
	done := save(t, c.A, "b", "1")
	push(t, c.A, providers.PushOptions{})
	wantOK(t, "deletion of a branch", c.Drop(one))
	wantOK(t, "deletion of a branch", c.Drop(two))
	wantUnmerged(t, c.A, "deleted, and not heard of", waiting(one, unsent, 2, false), waiting(two, done, 1, true))
	if got := fetch(t, c.A); got != first {
		t.Errorf("fetch says %q, want %q", got, first)
	}
	wantUnmerged(t, c.A, "deleted", waiting(one, unsent, 2, false))
	wantBegin(t, c.A, two, true, first)
	goTo(t, c.A, one)
	wantTree(t, c.A, "", map[string]string{"shared": "1", "a": "2"})
	wantTree(t, at(t, c.A, done), "", map[string]string{"shared": "1", "b": "1"})
}

// branchRefused: impossible starts change nothing, and a wrong name is refused.
func branchRefused(t T, c Clones) {
	first := shared(t, c)
	head := save(t, c.A, "a", "1")
	b, tracked := brancher(t, c.A), branchesOf(t, c.A).Tracked
	for _, name := range []string{tracked, "a..b", "a/.b", "a b", "/a", "a/"} {
		wantErr(t, fmt.Sprintf("start of %q", name), b.Start(t.Context(), name, head, first), providers.ErrInvalid)
	}
	wantErr(t, "start instead of what is not the head", b.Start(t.Context(), one, first, head), providers.ErrConflict)
	wantErr(t, "start at what is not known", b.Start(t.Context(), one, head, "no such"), providers.ErrNotExist)
	if all := branchesOf(t, c.A); all.On != "" || len(all.Unmerged) > 0 || headOf(t, c.A) != head {
		t.Errorf("afterwards: %+v, head %q, want %q", all, headOf(t, c.A), head)
	}
	wantTree(t, c.A, "", map[string]string{"shared": "1", "a": "1"})
	for range 2 { // the second time it is in that state
		wantOK(t, "start", b.Start(t.Context(), one, head, first))
	}
	wantTree(t, c.A, "", map[string]string{"shared": "1"})
	wantErr(t, "start of the same instead of what is not the head", b.Start(t.Context(), one, head, head), providers.ErrConflict)
	wantErr(t, "start of the same at what is not known", b.Start(t.Context(), one, first, "no such"), providers.ErrNotExist)
	wantTree(t, at(t, c.A, head), "", map[string]string{"shared": "1", "a": "1"})
}

// branchNothing: the first revision goes to the tracked branch.
func branchNothing(t T, c Clones) {
	wantBegin(t, c.A, one, true, "")
	wantOK(t, "start of nothing", brancher(t, c.A).Start(t.Context(), one, "", ""))
	if on := branchesOf(t, c.A).On; on != "" {
		t.Errorf("on %q, and there is no revision", on)
	}
	first := save(t, c.A, "a", "1")
	push(t, c.A, providers.PushOptions{})
	if got := fetch(t, c.B); got != first {
		t.Errorf("the tracked branch is at %q, want %q", got, first)
	}
	goTo(t, c.A, one)
}

// branchOneStep: a listing is of one revision, even if another is started meanwhile.
func branchOneStep(t T, c Clones) {
	n := 0
	oneStep(t, c.A, func(ctx context.Context, from, to providers.Revision) error {
		n++
		return brancher(t, c.A).Start(ctx, []string{one, two}[n%2], from, to)
	})
}

// branchRace: of concurrent starts from one revision, one wins, and the head is on its branch
// and at its revision.
func branchRace(t T, c Clones) {
	to := [2]providers.Revision{shared(t, c), save(t, c.A, "a", "1")}
	from := save(t, c.A, "a", "2")
	b := brancher(t, c.A)
	var winner atomic.Int32
	name := func(i int) string { return fmt.Sprintf("wsmount/c/%d", i) }
	won := race(t, "start", func(i int) error {
		err := b.Start(t.Context(), name(i), from, to[i%2])
		if err == nil {
			winner.Store(int32(i))
		}
		return err
	}, providers.ErrConflict)
	i := int(winner.Load())
	if on := branchesOf(t, c.A).On; won != 1 || on != name(i) || headOf(t, c.A) != to[i%2] {
		t.Errorf("%d won, %s the last; on %q at %q", won, name(i), on, headOf(t, c.A))
	}
}

func branchLostAnswer(t T, c Clones) {
	first := shared(t, c)
	faults := NewFaults(t)
	p := faults.Wrap(c.A)
	ours := save(t, p, "a", "1")
	faults.Queue(providers.MethodStart, Fault{After: errFault})
	wantErr(t, "start whose answer got lost", brancher(t, p).Start(t.Context(), one, ours, first), providers.ErrUnavailable)
	wantOK(t, "the repeated start", brancher(t, p).Start(t.Context(), one, ours, first))
	if on := branchesOf(t, p).On; on != one || headOf(t, p) != first {
		t.Errorf("on %q at %q, want %q at %q", on, headOf(t, p), one, first)
	}
}

// branchPropose: pushed commits that are not merged get one pull request, and a failed request
// for one is remembered.
func branchPropose(t T, c Clones) {
	shared(t, c)
	b := brancher(t, c.A)
	_, err := b.Propose(t.Context(), branchesOf(t, c.A).Tracked, providers.PullRequest{})
	wantErr(t, "a pull request of the tracked branch", err, providers.ErrInvalid, providers.ErrUnsupported)
	goTo(t, c.A, one)
	pr := providers.PullRequest{Title: "a change", Text: "why"}
	propose := func(when string, want bool) string {
		url, err := b.Propose(t.Context(), one, pr)
		wantOK(t, "pull request "+when, err)
		if (url != "") != want {
			t.Errorf("pull request %s: %q", when, url)
		}
		return url
	}
	if _, err := b.Propose(t.Context(), one, pr); err != nil {
		wantErr(t, "pull request", err, providers.ErrUnsupported)
		return
	}
	propose("of nothing", false)
	ours := save(t, c.A, "a", "1")
	propose("of what was not pushed", false)
	push(t, c.A, providers.PushOptions{})
	if c.Mute != nil {
		c.Mute(true)
		_, err := b.Propose(t.Context(), one, pr)
		wantErr(t, "pull request meanwhile", err, providers.ErrUnavailable)
		if u := branchesOf(t, c.A).Unmerged; len(u) != 1 || u[0].Wanted.IsZero() || u[0].URL != "" {
			t.Errorf("a pull request that failed shows as %+v", u)
		}
		c.Mute(false)
	}
	url := propose("of a commit", true)
	if again := propose("again", true); again != url {
		t.Errorf("pull request %q, then %q", url, again)
	}
	there := waiting(one, ours, 1, true)
	there.URL = url
	wantUnmerged(t, c.A, "with a pull request", there)
	mergeIn(t, c.B, one, ours)
	fetch(t, c.A)
	propose("of what is merged", false)
}

// branchReadOnly: read-only storage reports its branch, and does not change it.
func branchReadOnly(t T, c Clones) {
	first := shared(t, c)
	p := providers.ReadOnly(c.A, providers.ReadOnlyOptions{})
	wantErr(t, "start", p.Start(t.Context(), one, first, first), providers.ErrReadOnly)
	_, err := p.Propose(t.Context(), one, providers.PullRequest{})
	wantErr(t, "pull request", err, providers.ErrReadOnly)
	wantBegin(t, p, one, true, first)
	if all := branchesOf(t, p); all.On != "" || all.Tip != first {
		t.Errorf("it is said to be at %+v", all)
	}
}

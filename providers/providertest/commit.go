package providertest

import (
	"errors"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

var commitChecks = []Check{
	{Name: "commit/set", Needs: able(providers.AbilityCommit), Run: commitSet},
	{Name: "commit/all-or-nothing", Needs: able(providers.AbilityCommit), Run: commitAtomic},
	{Name: "commit/base", Needs: able(providers.AbilityCommit), Run: commitBase},
	{Name: "commit/nothing", Needs: able(providers.AbilityCommit), Run: commitNothing},
	{Name: "commit/entries", Needs: able(providers.AbilityCommit), Run: commitEntries},
	{Name: "commit/operation-id", Needs: able(providers.AbilityCommit), Run: commitOperation},
	{Name: "commit/too-late", Needs: able(providers.AbilityCommit), Run: commitTooLate},
}

func change(name, content string, cond providers.Condition) providers.Change {
	return providers.Change{Locator: loc(name), Body: providers.String(content), If: cond}
}

func head(t T, c providers.Committer) providers.Revision {
	t.Helper()
	r, err := c.Head(t.Context())
	wantOK(t, "head", err)
	return r
}

func commitSet(t T, p providers.Provider) {
	c := must[providers.Committer](t, p)
	old := put(t, p, loc("old"), "old")
	kept := put(t, p, loc("kept"), "before")
	before := head(t, c)
	result, err := c.Commit(t.Context(), providers.ChangeSet{
		Base: before, Message: "a set",
		Changes: []providers.Change{
			{Locator: loc("old"), Delete: true, If: providers.IfVersion(old.Version)},
			change("dir/new", "new", providers.IfAbsent()),
			change("kept", "after", providers.IfVersion(kept.Version)),
		},
	})
	wantOK(t, "commit", err)
	if !result.Committed || result.Revision == before || result.Revision != head(t, c) {
		t.Errorf("commit says %+v after %q, head is %q", result, before, head(t, c))
	}
	wantGone(t, p, loc("old"))
	wantContent(t, p, loc("dir/new"), "new")
	wantContent(t, p, loc("kept"), "after")
}

func commitAtomic(t T, p providers.Provider) {
	c := must[providers.Committer](t, p)
	old := put(t, p, loc("a"), "1")
	put(t, p, loc("a"), "2")
	put(t, p, loc("dir/file"), "x")
	before := head(t, c)
	broken := providers.Body{Reader: failing{strings.NewReader("half"), errors.New("gone")}, Size: 10}
	for what, x := range map[string]struct {
		bad  providers.Change
		want error
	}{
		"a conflict":            {change("a", "3", providers.IfVersion(old.Version)), providers.ErrConflict},
		"something in the way":  {change("a", "3", providers.IfAbsent()), providers.ErrExist},
		"a directory":           {change("dir", "3", providers.Unconditional()), providers.ErrIsDir},
		"no condition":          {change("b", "3", providers.Condition{}), providers.ErrInvalid},
		"a file above":          {change("a/below", "3", providers.IfAbsent()), providers.ErrNotDir},
		"two changes of a name": {change("good", "3", providers.IfAbsent()), providers.ErrInvalid},
		"a directory with entries": {
			providers.Change{Locator: loc("dir"), Dir: true, Delete: true, If: providers.IfDir()}, providers.ErrNotEmpty},
		"a body that fails": {providers.Change{Locator: loc("b"), Body: broken, If: providers.IfAbsent()}, providers.ErrBody},
	} {
		set := providers.ChangeSet{Changes: []providers.Change{change("good", "good", providers.IfAbsent()), x.bad}}
		_, err := c.Commit(t.Context(), set)
		wantErr(t, "commit with "+what, err, x.want)
		wantGone(t, p, loc("good"))
	}
	wantContent(t, p, loc("a"), "2")
	if after := head(t, c); after != before {
		t.Errorf("refused sets moved the head from %q to %q", before, after)
	}
}

func commitBase(t T, p providers.Provider) {
	c := must[providers.Committer](t, p)
	put(t, p, loc("first"), "x") // some stores begin without a revision
	before := head(t, c)
	_, err := c.Commit(t.Context(), providers.ChangeSet{Base: before, Changes: []providers.Change{change("a", "1", providers.IfAbsent())}})
	wantOK(t, "commit", err)
	_, err = c.Commit(t.Context(), providers.ChangeSet{Base: before, Changes: []providers.Change{change("b", "1", providers.IfAbsent())}})
	wantErr(t, "commit on an old base", err, providers.ErrConflict)
	wantGone(t, p, loc("b"))
}

func commitNothing(t T, p providers.Provider) {
	c := must[providers.Committer](t, p)
	put(t, p, loc("a"), "x")
	before := head(t, c)
	result, err := c.Commit(t.Context(), providers.ChangeSet{Message: "nothing"})
	wantOK(t, "commit of nothing", err)
	if result.Committed || result.Revision != before || head(t, c) != before {
		t.Errorf("commit of nothing says %+v, head %q, was %q", result, head(t, c), before)
	}
}

func commitOperation(t T, p providers.Provider) {
	c := must[providers.Committer](t, p)
	set := func() providers.ChangeSet {
		return providers.ChangeSet{Op: "op-1", Base: head(t, c), Changes: []providers.Change{change("a", "1", providers.IfAbsent())}}
	}
	first, err := c.Commit(t.Context(), set())
	wantOK(t, "commit", err)
	again, err := c.Commit(t.Context(), set())
	wantOK(t, "repeated commit", err)
	if again.Revision != first.Revision || !again.Committed {
		t.Errorf("the repetition says %+v, the commit said %+v", again, first)
	}
	wantEntries(t, "the repetition", again, first.Entries...)
	put(t, p, loc("a"), "another's")
	again, err = c.Commit(t.Context(), set())
	wantOK(t, "repeated commit after a change by others", err)
	wantEntries(t, "the late repetition", again, first.Entries...)
	wantContent(t, p, loc("a"), "another's")
}

func commitTooLate(t T, p providers.Provider) {
	c := must[providers.Committer](t, p)
	_, err := c.Commit(t.Context(), providers.ChangeSet{Op: "op-1", Base: "no such head"})
	wantErr(t, "commit on another head", err, providers.ErrConflict)
	late := func(op string) providers.ChangeSet {
		return providers.ChangeSet{Op: op, Changes: []providers.Change{change("a", "1", providers.IfAbsent())}}
	}
	_, err = c.Commit(t.Context(), late("op-1"))
	wantErr(t, "the commit of that operation, which comes late", err, providers.ErrConflict)
	wantGone(t, p, loc("a"))
	_, err = c.Commit(t.Context(), late("op-2"))
	wantOK(t, "another operation", err)
}

// wantEntries compares the entries in the answer of a commit.
func wantEntries(t T, what string, result providers.CommitResult, want ...providers.Info) {
	t.Helper()
	if len(result.Entries) != len(want) {
		t.Fatalf("%s: %d entries, want %d", what, len(result.Entries), len(want))
	}
	for i, got := range result.Entries {
		if got.Locator != want[i].Locator || got.Kind != want[i].Kind || got.Size != want[i].Size || got.Version != want[i].Version && !sameVersion(got, want[i]) {
			t.Errorf("%s: entry %d is %+v, want %+v", what, i, got, want[i])
		}
	}
}

// wantStats is wantEntries with the results of Stat at the places; "" is a deletion.
func wantStats(t T, p providers.Provider, result providers.CommitResult, places ...string) {
	t.Helper()
	want := make([]providers.Info, len(places))
	for i, place := range places {
		if place == "" {
			continue
		}
		info, err := p.Stat(t.Context(), loc(place))
		wantOK(t, "stat of "+place, err)
		want[i] = info
	}
	wantEntries(t, "the commit", result, want...)
}

// commitEntries: each change is answered, in its order; also one that changed
// nothing, such as the deletion of nothing.
func commitEntries(t T, p providers.Provider) {
	c := must[providers.Committer](t, p)
	put(t, p, loc("old"), "old")
	changes := []providers.Change{
		change("b", "bb", providers.IfAbsent()),
		{Locator: loc("old"), Delete: true, If: providers.Unconditional()},
		change("dir/a", "", providers.IfAbsent()),
		{Locator: loc("nothing"), Delete: true, If: providers.Unconditional()},
	}
	places := []string{"b", "", "dir/a", ""}
	if p.Capabilities().EmptyDirs {
		changes = append(changes, providers.Change{Locator: loc("made"), Dir: true}, providers.Change{Locator: loc("dir"), Dir: true})
		places = append(places, "made", "dir")
	}
	result, err := c.Commit(t.Context(), providers.ChangeSet{Changes: changes})
	wantOK(t, "commit", err)
	wantStats(t, p, result, places...)
	result, err = c.Commit(t.Context(), providers.ChangeSet{Changes: changes[3:4]})
	wantOK(t, "commit of nothing", err)
	wantEntries(t, "the commit of nothing", result, providers.Info{})
}

package providertest

import (
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// halves merges the first line and the rest each from the side that changed it.
func halves(base, a, b []byte, _ bool) ([]byte, bool) {
	cut := func(text []byte) (string, string) {
		first, rest, _ := strings.Cut(string(text), "\n")
		return first, rest
	}
	first, rest := cut(base)
	a1, a2 := cut(a)
	b1, b2 := cut(b)
	if a1 != first && b1 != first || a2 != rest && b2 != rest {
		return nil, false
	}
	if a1 == first {
		a1 = b1
	}
	if a2 == rest {
		a2 = b2
	}
	return []byte(a1 + "\n" + a2), true
}

// diverged makes a common base of both clones, and commits on it that A has pushed and B lacks.
// It returns the base and A's last revision.
func diverged(t T, c Clones) (base, theirs providers.Revision) {
	t.Helper()
	save(t, c.A, "text", "1\n2")
	save(t, c.A, "dir/gone", "x")
	save(t, c.A, "dir/kept", "x")
	base = shared(t, c)
	save(t, c.A, "text", "1\ntwo")
	save(t, c.A, "dir/theirs", "x")
	theirs = save(t, c.A, "same", "x")
	push(t, c.A, providers.PushOptions{})
	return base, theirs
}

func rebase(t T, p providers.Provider, base, from, onto providers.Revision) (providers.Revision, error) {
	t.Helper()
	return must[providers.Rebaser](t, p).Rebase(t.Context(), base, from, onto, halves)
}

// rebaseLine: the revisions are made anew, each with its tree, and reads do not show them
// before Adopt.
func rebaseLine(t T, c Clones) {
	base, theirs := diverged(t, c)
	save(t, c.B, "text", "one\n2")
	wantOK(t, "delete", c.B.Delete(t.Context(), loc("dir/gone"), providers.DeleteOptions{If: providers.Unconditional()}))
	save(t, c.B, "same", "x")
	ours := save(t, c.B, "text", "ONE\n2")
	fetch(t, c.B)
	before := headOf(t, c.B)
	got, err := rebase(t, c.B, base, ours, theirs)
	wantOK(t, "rebase", err)
	if headOf(t, c.B) != before {
		t.Errorf("the head moved")
	}
	wantContent(t, c.B, loc("text"), "ONE\n2")
	wantTree(t, at(t, c.B, got), "", map[string]string{"text": "ONE\ntwo", "dir/kept": "x", "dir/theirs": "x", "same": "x", "shared": "1"})
	if b, err := must[providers.Syncer](t, c.B).Base(t.Context(), got, theirs); err != nil || b != theirs {
		t.Errorf("it is on top of %q (%v), want %q", b, err, theirs)
	}
	adopt(t, c.B, got)
	push(t, c.B, providers.PushOptions{})
	if now := fetch(t, c.A); now != got {
		t.Errorf("pushed %q, want %q", now, got)
	}
	if again, err := rebase(t, c.B, base, got, got); err != nil || again != got {
		t.Errorf("where there is nothing to do: %q, %v", again, err)
	}
}

// rebaseConflict: a content that combine cannot merge, and a change other than of content, is a
// conflict, and nothing changes.
func rebaseConflict(t T, c Clones) {
	base, theirs := diverged(t, c)
	for _, change := range []providers.Change{
		change("text", "1\nZWEI", providers.Unconditional()),
		change("dir/theirs", "ours", providers.Unconditional()),
		{Locator: loc("text"), Delete: true, If: providers.Unconditional()},
	} {
		ours := commit(t, c.B, change).Revision
		fetch(t, c.B)
		_, err := rebase(t, c.B, base, ours, theirs)
		wantErr(t, "rebase of "+change.Locator.String(), err, providers.ErrConflict)
		if headOf(t, c.B) != ours {
			t.Errorf("the head moved")
		}
		adopt(t, c.B, base)
	}
	_, err := rebase(t, c.B, base, "no such", theirs)
	wantErr(t, "rebase of what is not known", err, providers.ErrNotExist)
}

// rebaseMerge: a merge revision is not made again.
func rebaseMerge(t T, c Clones) {
	base, theirs := diverged(t, c)
	save(t, c.B, "b", "ours")
	fetch(t, c.B)
	merged, err := must[providers.Committer](t, c.B).Commit(t.Context(), providers.ChangeSet{Merge: theirs,
		Changes: []providers.Change{change("b", "merged", providers.Unconditional())}})
	wantOK(t, "merge", err)
	save(t, c.A, "later", "x")
	push(t, c.A, providers.PushOptions{})
	onto := fetch(t, c.B)
	_, err = rebase(t, c.B, base, merged.Revision, onto)
	wantErr(t, "rebase of a merge", err, providers.ErrUnsupported)
}

// rebaseRewritten: commits from before the remote's branch was rewritten are not made again.
func rebaseRewritten(t T, c Clones) {
	shared(t, c)
	gone := save(t, c.B, "secret", "x")
	push(t, c.B, providers.PushOptions{})
	ours := save(t, c.B, "ours", "x")
	wantOK(t, "drop", c.Drop(""))
	_, err := must[providers.Syncer](t, c.A).Fetch(t.Context())
	wantErr(t, "fetch of a branch that is gone", err, providers.ErrNotExist)
	save(t, c.A, "theirs", "x")
	push(t, c.A, providers.PushOptions{})
	onto := fetch(t, c.B)
	got, err := rebase(t, c.B, gone, ours, onto)
	wantOK(t, "rebase", err)
	wantTree(t, at(t, c.B, got), "", map[string]string{"shared": "1", "theirs": "x", "ours": "x"})
}

package providertest

import "github.com/wsmount/wsmount/providers"

// pushFirst: a new remote has nothing to fetch, and the first push makes the
// branch.
func pushFirst(t T, c Clones) {
	_, err := must[providers.Syncer](t, c.A).Fetch(t.Context())
	wantErr(t, "fetch from a new remote", err, providers.ErrNotExist)
	_, err = must[providers.Pusher](t, c.A).Push(t.Context(), providers.PushOptions{})
	wantErr(t, "push of nothing", err, providers.ErrNotExist)
	r := save(t, c.A, "a", "1")
	_, err = must[providers.Syncer](t, c.B).Fetch(t.Context())
	wantErr(t, "fetch of what was not pushed", err, providers.ErrNotExist)
	if result := push(t, c.A, providers.PushOptions{}); !result.Pushed || result.Revision != r {
		t.Errorf("push says %+v, want %q", result, r)
	}
	if got := fetch(t, c.B); got != r {
		t.Errorf("fetch says %q, want %q", got, r)
	}
}

func pushNothing(t T, c Clones) {
	r := shared(t, c)
	for _, p := range []providers.Provider{c.A, c.B} {
		if result := push(t, p, providers.PushOptions{}); result.Pushed || result.Revision != r {
			t.Errorf("push of nothing says %+v, want %q", result, r)
		}
	}
}

// pushBranch: another branch is made, goes on, and leaves the tracked one alone; a pull request
// is opened once.
func pushBranch(t T, c Clones) {
	first := shared(t, c)
	second := save(t, c.A, "a", "2")
	opts := providers.PushOptions{Branch: "topic"}
	if result := push(t, c.A, opts); !result.Pushed || result.Revision != second {
		t.Errorf("push says %+v, want %q", result, second)
	}
	if result := push(t, c.A, opts); result.Pushed {
		t.Errorf("second push says %+v", result)
	}
	if got := fetch(t, c.B); got != first {
		t.Errorf("the tracked branch is at %q, want %q", got, first)
	}
	save(t, c.B, "b", "3")
	_, err := must[providers.Pusher](t, c.B).Push(t.Context(), opts)
	wantErr(t, "push over another's branch", err, providers.ErrConflict)
	opts.PullRequest = &providers.PullRequest{Title: "a change", Text: "why"}
	result, err := must[providers.Pusher](t, c.A).Push(t.Context(), opts)
	if err != nil {
		wantErr(t, "pull request", err, providers.ErrUnsupported)
		return
	}
	if again := push(t, c.A, opts); result.URL == "" || again.URL != result.URL {
		t.Errorf("pull request %q, then %q", result.URL, again.URL)
	}
}

// pushConflict: the second of two pushes from the same revision gets a conflict, and the
// commits of the first stay; the second clone continues from them.
func pushConflict(t T, c Clones) {
	shared(t, c)
	theirs := save(t, c.A, "a", "theirs")
	push(t, c.A, providers.PushOptions{})
	ours := save(t, c.B, "b", "ours")
	for _, when := range []string{"before", "after"} {
		_, err := must[providers.Pusher](t, c.B).Push(t.Context(), providers.PushOptions{})
		wantErr(t, "push beside another's "+when+" a fetch", err, providers.ErrConflict)
		if got := fetch(t, c.B); got != theirs {
			t.Errorf("the remote is at %q, want %q", got, theirs)
		}
	}
	if headOf(t, c.B) != ours {
		t.Errorf("the head is %q, want %q", headOf(t, c.B), ours)
	}
	adopt(t, c.B, theirs)
	wantTree(t, c.B, "", map[string]string{"shared": "1", "a": "theirs"})
	save(t, c.B, "b", "ours")
	push(t, c.B, providers.PushOptions{})
	adopt(t, c.A, fetch(t, c.A))
	wantTree(t, c.A, "", map[string]string{"shared": "1", "a": "theirs", "b": "ours"})
}

// pushLease: a forced push replaces the revision that it names, and no other.
func pushLease(t T, c Clones) {
	first := shared(t, c)
	theirs := save(t, c.A, "a", "theirs")
	push(t, c.A, providers.PushOptions{})
	ours := save(t, c.B, "b", "ours")
	_, err := must[providers.Pusher](t, c.B).Push(t.Context(), providers.PushOptions{Lease: first})
	wantErr(t, "forced push over what has moved on", err, providers.ErrConflict)
	_, err = must[providers.Pusher](t, c.B).Push(t.Context(), providers.PushOptions{Lease: first, Branch: "new"})
	wantErr(t, "forced push over a branch that is not there", err, providers.ErrConflict)
	if got := fetch(t, c.B); got != theirs {
		t.Fatalf("the remote is at %q, want %q", got, theirs)
	}
	push(t, c.B, providers.PushOptions{Lease: theirs})
	if got := fetch(t, c.A); got != ours {
		t.Errorf("the remote is at %q, want %q", got, ours)
	}
	_, err = must[providers.Pusher](t, c.A).Push(t.Context(), providers.PushOptions{})
	wantErr(t, "push of what was overwritten", err, providers.ErrConflict)
}

// pushRace: of concurrent pushes, one wins.
func pushRace(t T, c Clones) {
	shared(t, c)
	ours := map[providers.Provider]providers.Revision{c.A: save(t, c.A, "a", "1"), c.B: save(t, c.B, "b", "2")}
	sides := []providers.Provider{c.A, c.B}
	var won [2]bool
	race(t, "push", func(i int) error {
		if i >= 2 {
			return nil
		}
		_, err := must[providers.Pusher](t, sides[i]).Push(t.Context(), providers.PushOptions{})
		won[i] = err == nil
		return err
	}, providers.ErrConflict)
	if won[0] == won[1] {
		t.Fatalf("two pushes at once succeeded: %v", won)
	}
	for i, p := range sides {
		if got := fetch(t, p); won[i] != (got == ours[p]) {
			t.Errorf("side %d won: %v; the remote is at %q, it pushed %q", i, won[i], got, ours[p])
		}
	}
}

func pushLostAnswer(t T, c Clones) {
	shared(t, c)
	faults := NewFaults(t)
	p := faults.Wrap(c.A)
	faults.Queue(providers.MethodPush, Fault{After: errFault})
	r := save(t, p, "a", "1")
	_, err := must[providers.Pusher](t, p).Push(t.Context(), providers.PushOptions{})
	wantErr(t, "push whose answer got lost", err, providers.ErrUnavailable)
	if got := push(t, p, providers.PushOptions{}); got.Pushed || got.Revision != r {
		t.Errorf("the repeated push says %+v, want %q", got, r)
	}
}

// pushDeleted: a branch that others deleted is not made again before a fetch has shown that.
func pushDeleted(t T, c Clones) {
	r := shared(t, c)
	wantOK(t, "deletion of the branch", c.Drop(""))
	save(t, c.A, "a", "1")
	_, err := must[providers.Pusher](t, c.A).Push(t.Context(), providers.PushOptions{})
	wantErr(t, "push to a deleted branch", err, providers.ErrConflict)
	_, err = must[providers.Syncer](t, c.A).Fetch(t.Context())
	wantErr(t, "fetch of a deleted branch", err, providers.ErrNotExist)
	wantTree(t, c.A, "", map[string]string{"shared": "1", "a": "1"})
	wantTree(t, at(t, c.A, r), "", map[string]string{"shared": "1"})
	push(t, c.A, providers.PushOptions{})
}

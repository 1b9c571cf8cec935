package providertest

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

var partsChecks = []Check{
	{Name: "parts/content", Needs: able(providers.AbilityParts), Heavy: true, Run: partsContent},
	{Name: "parts/copied", Needs: able(providers.AbilityParts), Heavy: true, Run: partsCopied},
	{Name: "parts/conditions", Needs: able(providers.AbilityParts), Run: partsConditions},
	{Name: "parts/aborted", Needs: able(providers.AbilityParts), Run: partsAborted},
	{Name: "parts/operation-id", Needs: repeatable(providers.AbilityParts), Run: partsOperation},
}

// part is content of the smallest size that a part may have, which begins with n.
func part(p providers.Provider, n byte) []byte {
	return bytes.Repeat([]byte{n}, int(max(1, p.Capabilities().Parts.Min)))
}

// upload begins an upload to "large".
func upload(t T, p providers.Provider, opts providers.WriteOptions) providers.Upload {
	t.Helper()
	u, err := must[providers.Multiparter](t, p).StartParts(t.Context(), loc("large"), opts)
	if err != nil {
		t.Fatalf("start of an upload: %v", err)
	}
	return u
}

// partsContent: parts come in any order and at the same time, one replaces that of the same
// number, and nothing is visible before the upload is complete.
func partsContent(t T, p providers.Provider) {
	put(t, p, loc("large"), "before")
	u := upload(t, p, unconditional)
	bodies := []string{string(part(p, 'a')), string(part(p, 'b')), "end"}
	wantOK(t, "part", u.Part(t.Context(), 2, providers.String(string(part(p, 'x')))))
	var work sync.WaitGroup
	for n, body := range slices.Backward(bodies) {
		work.Go(func() { wantOK(t, "part", u.Part(t.Context(), n+1, providers.String(body))) })
	}
	work.Wait()
	wantContent(t, p, loc("large"), "before")
	made, err := u.Complete(t.Context())
	wantOK(t, "complete", err)
	info := wantContent(t, p, loc("large"), strings.Join(bodies, ""))
	if !info.Version.Matches(made.Version) || made.Locator != loc("large") {
		t.Errorf("complete says %+v, read %+v", made, info)
	}
	wantOK(t, "abort of what is complete", u.Abort(t.Context()))
	wantContent(t, p, loc("large"), strings.Join(bodies, ""))
}

// partsCopied: a part may be a range of an existing file, in the version asked for.
func partsCopied(t T, p providers.Provider) {
	a := string(part(p, 'a'))
	old := put(t, p, loc("large"), "old")
	source := put(t, p, loc("large"), a+"tail")
	u := upload(t, p, providers.WriteOptions{If: providers.IfVersion(source.Version)})
	n := int64(len(a))
	err := u.CopyPart(t.Context(), 1, loc("large"), providers.ReadOptions{Offset: 0, Length: n, Version: old.Version})
	wantErr(t, "copy of a range of an old version", err, providers.ErrConflict)
	wantErr(t, "copy of any version", u.CopyPart(t.Context(), 1, loc("large"), providers.ReadOptions{Length: n}), providers.ErrInvalid)
	wantOK(t, "copy of a range", u.CopyPart(t.Context(), 1, loc("large"), providers.ReadOptions{Offset: 0, Length: n, Version: source.Version}))
	wantOK(t, "part", u.Part(t.Context(), 2, providers.String("new")))
	_, err = u.Complete(t.Context())
	wantOK(t, "complete", err)
	wantContent(t, p, loc("large"), a+"new")
}

func partsConditions(t T, p providers.Provider) {
	m := must[providers.Multiparter](t, p)
	_, err := m.StartParts(t.Context(), loc("large"), providers.WriteOptions{})
	wantErr(t, "without condition", err, providers.ErrInvalid)
	old := put(t, p, loc("large"), "old")
	now := put(t, p, loc("large"), "now")
	for _, x := range []struct {
		what string
		cond providers.Condition
		want error
	}{
		{"over something", providers.IfAbsent(), providers.ErrExist},
		{"over another version", providers.IfVersion(old.Version), providers.ErrConflict},
	} {
		u, err := m.StartParts(t.Context(), loc("large"), providers.WriteOptions{If: x.cond})
		if err == nil {
			wantOK(t, "part", u.Part(t.Context(), 1, providers.String("new")))
			_, err = u.Complete(t.Context())
			wantOK(t, "abort", u.Abort(t.Context()))
		}
		wantErr(t, x.what, err, x.want)
		wantContent(t, p, loc("large"), "now")
	}
	u := upload(t, p, providers.WriteOptions{If: providers.IfVersion(now.Version)})
	wantOK(t, "part", u.Part(t.Context(), 1, providers.String("new")))
	_, err = u.Complete(t.Context())
	wantOK(t, "over the right version", err)
	wantContent(t, p, loc("large"), "new")
}

// partsAborted: an upload that was not completed leaves nothing, whether Abort or AbortParts
// ended it.
func partsAborted(t T, p providers.Provider) {
	u := upload(t, p, unconditional)
	wantOK(t, "part", u.Part(t.Context(), 1, providers.String("x")))
	wantOK(t, "abort", u.Abort(t.Context()))
	left := upload(t, p, unconditional)
	wantOK(t, "part", left.Part(t.Context(), 1, providers.String("x")))
	m := must[providers.Multiparter](t, p)
	for _, x := range []struct {
		before time.Time
		want   int
	}{{time.Now().Add(-time.Hour), 0}, {time.Now().Add(time.Hour), 1}, {time.Now().Add(time.Hour), 0}} {
		if n, err := m.AbortParts(t.Context(), x.before); err != nil || n != x.want {
			t.Errorf("%d uploads aborted and %v, want %d", n, err, x.want)
		}
	}
	if _, err := left.Complete(t.Context()); err == nil {
		t.Errorf("an upload that was aborted is completed")
	}
	wantGone(t, p, loc("large"))
}

// partsOperation: a Complete whose answer got lost can be repeated.
func partsOperation(t T, p providers.Provider) {
	u := upload(t, p, providers.WriteOptions{If: providers.IfAbsent(), Op: "op-1"})
	wantOK(t, "part", u.Part(t.Context(), 1, providers.String("x")))
	first, err := u.Complete(t.Context())
	wantOK(t, "complete", err)
	again, err := u.Complete(t.Context())
	if wantOK(t, "complete again", err); !again.Version.Matches(first.Version) {
		t.Errorf("complete says %+v, and then %+v", first, again)
	}
	wantContent(t, p, loc("large"), "x")
}

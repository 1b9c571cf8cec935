package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// loc is short for MustLocator.
func loc(s string) providers.Locator { return providers.MustLocator(s) }

// put writes content over any file, and fails the check if that fails.
func put(t T, p providers.Provider, l providers.Locator, content string) providers.Info {
	t.Helper()
	info, err := p.Write(t.Context(), l, providers.String(content), providers.WriteOptions{If: providers.Unconditional()})
	if err != nil {
		t.Fatalf("write %q: %v", l, err)
	}
	return info
}

// wantContent reads l and compares.
func wantContent(t T, p providers.Provider, l providers.Locator, want string) providers.Info {
	t.Helper()
	got, info, err := providers.Fetch(t.Context(), p, l, providers.ReadOptions{})
	if err != nil {
		t.Fatalf("read %q: %v", l, err)
	}
	if !bytes.Equal(got, []byte(want)) {
		t.Errorf("content of %q: got %s, want %s", l, brief(string(got)), brief(want))
	}
	return info
}

// wantGone checks that there is no entry at l.
func wantGone(t T, p providers.Provider, l providers.Locator) {
	t.Helper()
	if info, err := p.Stat(t.Context(), l); !errors.Is(err, providers.ErrNotExist) {
		t.Errorf("stat %q: got %v, %v; want nothing there", l, info.Kind, err)
	}
}

// wantErr checks the kind of an error, and that it is a *providers.Error.
func wantErr(t T, what string, err error, kinds ...error) {
	t.Helper()
	if !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
		t.Errorf("%s: got error %v, want %v", what, err, kinds)
		return
	}
	var e *providers.Error
	if !errors.As(err, &e) {
		t.Errorf("%s: error %v is no *providers.Error", what, err)
	}
}

// wantOK checks that there is no error.
func wantOK(t T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// list is all entries of a directory in order of their names.
func list(t T, p providers.Provider, l providers.Locator, opts providers.ListOptions) []providers.Info {
	t.Helper()
	var infos []providers.Info
	for info, err := range providers.All(t.Context(), p, l, opts) {
		if err != nil {
			t.Fatalf("list %q: %v", l, err)
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b providers.Info) int { return a.Locator.Compare(b.Locator) })
	return infos
}

// wantNames compares the Locators of a listing, in order.
func wantNames(t T, infos []providers.Info, want ...string) {
	t.Helper()
	var got []string
	for _, info := range infos {
		got = append(got, info.Locator.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("listing: got %q, want %q", got, want)
	}
}

// brief keeps messages short.
func brief(s string) string {
	if len(s) > 60 {
		return fmt.Sprintf("%q... (%d bytes)", s[:60], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// unconditional writes over any version.
var unconditional = providers.WriteOptions{If: providers.Unconditional()}

// canceled is a context that has ended.
func canceled(t T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// pattern is n bytes that differ from place to place: 997 is prime, so no
// power of two is a period.
func pattern(n int) string {
	var block strings.Builder
	for i := range 997 {
		block.WriteByte(byte(i * 7 / 3))
	}
	return strings.Repeat(block.String(), n/997+1)[:n]
}

package providers_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

func TestParseLocator(t *testing.T) {
	long := strings.Repeat("n", providers.MaxName)
	for _, c := range []struct {
		name, in, want string
		err            error
	}{
		{"root", "", "", nil},
		{"slash", "/", "", nil},
		{"dot", ".", "", nil},
		{"relative", "a/b", "a/b", nil},
		{"absolute is relative", "/a/b", "a/b", nil},
		{"empty segments", "a//b///c/", "a/b/c", nil},
		{"dots", "./a/././b/.", "a/b", nil},
		{"backslash is a character", `a\..\b`, `a\..\b`, nil},
		{"three dots", "...", "...", nil},
		{"dots in names", "..a/a..", "..a/a..", nil},
		{"spaces", " / a", " / a", nil},
		{"not utf-8", "\xff/\xfe", "\xff/\xfe", nil},
		{"longest", long, long, nil},
		{"upwards", "..", "", providers.ErrInvalid},
		{"upwards inside", "a/../b", "", providers.ErrInvalid},
		{"upwards at the end", "a/..", "", providers.ErrInvalid},
		{"NUL", "a\x00b", "", providers.ErrInvalid},
		{"too long", "a/" + long + "n", "", providers.ErrNameTooLong},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := providers.ParseLocator(c.in)
			assert.True(t, errors.Is(err, c.err) && got.String() == c.want, got, c.want, c.err, err)
		})
	}
}

func TestLocatorParts(t *testing.T) {
	for _, c := range []struct {
		in, name, parent string
		parts            []string
	}{
		{"", "", "", nil},
		{"a", "a", "", []string{"a"}},
		{"a/b/c", "c", "a/b", []string{"a", "b", "c"}},
	} {
		l := providers.MustLocator(c.in)
		if l.Name() != c.name || l.Parent().String() != c.parent || !slices.Equal(l.Parts(), c.parts) || l.IsRoot() != (c.in == "") {
			t.Errorf("%q: name %q, parent %q, parts %q", c.in, l.Name(), l.Parent(), l.Parts())
		}
	}
	child, err := providers.MustLocator("a").Child("b/c", "", "./d")
	assert.True(t, child == providers.MustLocator("a/b/c/d") && err == nil, "child", child, err)
	assert.Is(t, assert.ErrOf(child.Child("x", "../y")), providers.ErrInvalid, "child above")
}

func TestLocatorContains(t *testing.T) {
	for _, c := range []struct {
		l, m string
		want bool
	}{
		{"", "", true}, {"", "a/b", true}, {"a", "a", true}, {"a", "a/b/c", true},
		{"a", "", false}, {"a", "ab", false}, {"abcd", "abcde/f", false}, {"a/b", "a", false}, {"a/b", "a/bc", false},
	} {
		assert.Equal(t, providers.MustLocator(c.l).Contains(providers.MustLocator(c.m)), c.want, c.l, "contains", c.m)
	}
}

func TestMustLocatorPanics(t *testing.T) {
	defer func() {
		assert.False(t, recover() == nil, "no panic")
	}()
	providers.MustLocator("..")
}

// anyLocator is any there is.
func anyLocator(t *rapid.T) providers.Locator {
	name := rapid.OneOf(rapid.StringMatching(`[a-c.%~+\\x02]{1,6}`), rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 6), func(b []byte) string { return string(b) }))
	names := rapid.SliceOfN(name.Filter(func(s string) bool {
		return !strings.ContainsAny(s, "/\x00") && s != "." && s != ".."
	}), 0, 4).Draw(t, "names")
	return assert.Of(providers.Locator{}.Child(names...)).OK(t)
}

// A Locator is a fixed point of parsing, travels as text and as bytes, and is the child of its
// parent.
func TestLocatorProperties(t *testing.T) {
	tier.Check(t, func(t *rapid.T) {
		l := anyLocator(t)
		assert.Of(providers.ParseLocator(l.String())).Equal(t, l, "parsed again")
		text, err := json.Marshal(map[string]providers.Locator{"l": l})
		var back map[string]providers.Locator
		if err != nil || json.Unmarshal(text, &back) != nil || back["l"] != l {
			t.Errorf("%q travels as %s and arrives as %q (%v)", l, text, back["l"], err)
		}
		assert.Of(l.Parent().Child(l.Name())).Equal(t, l, "child of parent")
		if m := anyLocator(t); (l.Compare(m) == 0) != (l == m) || l.Compare(m) != -m.Compare(l) {
			t.Errorf("%q and %q compare as %d and %d", l, m, l.Compare(m), m.Compare(l))
		}
	})
	var l providers.Locator
	for _, text := range []string{`"../x"`, `"\\x:zz"`, `"\\x:2e2e"`} {
		assert.Is(t, json.Unmarshal([]byte(text), &l), providers.ErrInvalid, text, "read as", l)
	}
}

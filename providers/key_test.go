package providers_test

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// TestKeyTable is the table of Key's comment, and what lies around it.
func TestKeyTable(t *testing.T) {
	n := strings.Repeat
	for _, c := range []struct{ name, key, locator string }{
		{"plain", `a/b\c`, `a/b\c`},
		{"empty", "", "%~"},
		{"slash", "/", "%~/%~"},
		{"leading slash", "/a", "%~/a"},
		{"trailing slash", "a/", "a/%~"},
		{"empty segment", "a//b", "a/%~/b"},
		{"dot", "./a", "%~./a"},
		{"upwards", "../x", "%~../x"},
		{"three dots", ".../x", ".../x"},
		{"NUL", "a\x00b", "%~a%00b"},
		{"percent", "100%/%41", "100%/%41"},
		{"percent beside NUL", "%\x00", "%~%25%00"},
		{"looks escaped", "%~.", "%~%25~."},
		{"looks escaped twice", "%~%25~.", "%~%25~%2525~."},
		{"mark without meaning", "%~draft", "%~draft"},
		{"mark with a broken escape", "%~%2", "%~%2"},
		{"mark alone", "%~", "%~%25~"},
		{"longest plain", n("n", 255), n("n", 255)},
		{"long", n("n", 256), "%+" + n("n", 253) + "/%~nnn"},
		{"long, exactly two parts", n("n", 506), "%+" + n("n", 253) + "/%~" + n("n", 253)},
		{"very long", n("n", 507) + "/x", "%+" + n("n", 253) + "/%+" + n("n", 253) + "/%~n/x"},
		{"short, long when escaped", n("\x00", 100), "%+" + n("%00", 84) + "%/%~00" + n("%00", 15)},
		{"looks long", "%+" + n("n", 253), "%+%25+" + n("n", 249) + "/%~nnnn"},
		{"looks nearly long", "%+" + n("n", 252), "%+" + n("n", 252)},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := providers.Key(c.key).Locator()
			assert.Equal(t, l.String(), c.locator, "locator: got", l)
			assert.Of(l.Key()).Equal(t, providers.Key(c.key), "and back")
		})
	}
}

func TestLocatorsWithoutKey(t *testing.T) {
	open := "%+" + strings.Repeat("n", 253)
	for name, l := range map[string]string{
		"root": "", "unfinished": open, "finished wrongly": open + "/x", "finished with nothing": open + "/%~",
		"would be short": "%+" + strings.Repeat("%25", 84) + "%/%~25", "broken escape": open + "/%~%",
	} {
		key, err := providers.MustLocator(l).Key()
		assert.Is(t, err, providers.ErrInvalid, name, "got key", key, err)
	}
}

// anyKey is any bytes, and often what is dangerous.
func anyKey(t *rapid.T, label string) providers.Key {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"", ".", "..", "/", "//", "\x00", "%", "%~", "%+", "%00", "%25", "a", "b", `\`, "\xff"}),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.IntRange(240, 270), func(n int) string { return strings.Repeat("n", n) }),
		rapid.Map(rapid.IntRange(240, 260), func(n int) string { return "%+" + strings.Repeat("%", n) }),
	)
	return providers.Key(strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, label), ""))
}

// Every key has a Locator that POSIX allows, and it leads back. That a key is found again is also
// what makes two keys never share one.
func TestKeyRoundTrip(t *testing.T) {
	tier.Check(t, func(t *rapid.T) {
		key := anyKey(t, "key")
		l := key.Locator()
		parsed, err := providers.ParseLocator(l.String())
		assert.Must(t, parsed == l && !l.IsRoot() && err == nil, l, "is no name", parsed, err)
		clean := path.Clean(l.String())
		assert.Must(t, clean == l.String(), l, "is not clean", clean)
		assert.Of(l.Key()).Equal(t, key, "has locator", l, "which has key")
	})
}

// Every name that a program makes is found again under this name, except the malformed long ones,
// which have no key.
func TestLocatorRoundTrip(t *testing.T) {
	tier.Check(t, func(t *rapid.T) {
		l := anyLocator(t)
		if rapid.Bool().Draw(t, "of a key") {
			var err error
			l, err = l.Child(anyKey(t, "key").Locator().Parts()[0])
			assert.Must(t, err == nil, err)
		}
		key, err := l.Key()
		if err != nil {
			assert.Must(t, l.IsRoot() || hasLongName(l), l, "has no key:", err)
			return
		}
		back := key.Locator()
		assert.Must(t, back == l, l, "has key", key, "which has locator", back)
	})
}

func hasLongName(l providers.Locator) bool {
	for _, name := range l.Parts() {
		if len(name) == providers.MaxName && strings.HasPrefix(name, "%+") {
			return true
		}
	}
	return false
}

// The key of everything below a directory begins with its prefix.
func TestPrefix(t *testing.T) {
	tier.Check(t, func(t *rapid.T) {
		key := anyKey(t, "key")
		for dir := key.Locator(); !dir.IsRoot(); {
			dir = dir.Parent()
			prefix := assert.Of(dir.Prefix()).OK(t)
			assert.Must(t, strings.HasPrefix(string(key), string(prefix)), key, "is below", dir, "whose prefix is", prefix)
		}
	})
	for dir, want := range map[string]providers.Key{"": "", "a": "a/", "a/%~": "a//", "%~..": "../"} {
		assert.Of(providers.MustLocator(dir).Prefix()).Equal(t, want, "prefix of", dir)
	}
}

func FuzzKey(f *testing.F) {
	for _, seed := range []string{"", "a//b", "../x", "a\x00b", "%~.", "%+" + strings.Repeat("%", 253)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		assert.Of(providers.Key(s).Locator().Key()).Equal(t, providers.Key(s), "came back as")
	})
}

package bucket

import (
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// TestMark: marking and its opposite, on names that look marked.
func TestMark(t *testing.T) {
	for _, name := range []string{"", "a", "a%2F", "%2F", "%2F%2F", "a%2F%2F%2F", "%2", "2F", "F%2Fx"} {
		for _, marked := range []bool{false, true} {
			segment := mark(name, marked)
			if plain, got := unmark(segment); plain != name || got != marked {
				t.Errorf("mark(%q, %v) = %q, which is read as %q, %v", name, marked, segment, plain, got)
			}
		}
	}
}

// FuzzKeys: the Locator that a listing gives a key leads to that key, whichever
// of its directories are beside files, and to no other.
func FuzzKeys(f *testing.F) {
	for _, key := range []string{"a", "a/b%2F/c", "a//b", "../x", "%~.", strings.Repeat("l%2F", 100), "n\x00"} {
		f.Add(key, uint8(0))
		f.Add(key, uint8(5))
	}
	p := &Provider{objects: objects{prefix: "pre/"}}
	f.Fuzz(func(t *testing.T, key string, files uint8) {
		n := -1
		l, err := locate(providers.Locator{}, "pre/", key, false, func(string) bool {
			n++
			return files>>(n%8)&1 == 1
		})
		assert.OK(t, err, key, "has no Locator")
		at, err := p.find(l)
		if err != nil || at.key != "pre/"+key || at.partial {
			t.Errorf("%q is at %q, which leads to %q (%v)", key, l, at.key, err)
		}
	})
}

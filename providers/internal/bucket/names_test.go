package bucket

import (
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// Marking and its opposite, on names that look marked.
func TestMark(t *testing.T) {
	for _, name := range []string{"", "a", "a%2F", "%2F", "%2F%2F", "a%2F%2F%2F", "%2", "2F", "F%2Fx"} {
		for _, marked := range []bool{false, true} {
			segment := mark(name, marked)
			plain, got := unmark(segment)
			assert.True(t, plain == name && got == marked, "mark", name, marked, segment, "which is read as", plain, got)
		}
	}
}

// The Locator that a listing gives a key leads to that key, whichever of its directories are
// beside files, and to no other.
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
		at := assert.Of(p.find(l)).OK(t)
		assert.True(t, at.key == "pre/"+key && !at.partial, key, "is at", l, "which leads to", at.key)
	})
}

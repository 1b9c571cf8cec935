package rules

import (
	"path"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
)

// excludes excludes what a pattern of path.Match says, and all below it. asked counts.
type excludes struct {
	pattern string
	same    bool // it says the same below any two directories
	asked   int
}

func (x *excludes) Match(at string, _ bool) bool {
	x.asked++
	for ; at != "." && at != ""; at = path.Dir(at) {
		if ok, _ := path.Match(x.pattern, at); ok {
			return true
		}
	}
	return false
}

func (x *excludes) SameBelow(string, string) bool { return x.same }

func (x *excludes) String() string { return x.pattern }

// A directory crosses the border when it, or anything known in it, would be excluded under
// one of its names and not under the other.
func TestCrosses(t *testing.T) {
	w := newWorld(t)
	w.makes("d/", "d/sub/", "d/sub/f", "top")
	for what, c := range map[string]struct {
		pattern string
		same    bool
		to      string
		want    bool
	}{
		"no rule":                     {"none", false, "e", false},
		"the new name":                {"e", false, "e", true},
		"the old name":                {"d", false, "e", true},
		"both":                        {"[de]", false, "e", false},
		"below the new name":          {"e/sub/f", false, "e", true},
		"below the old name":          {"d/sub/*", false, "e", true},
		"below both":                  {"*/sub/f", false, "e", false},
		"below, where nothing is":     {"e/sub/g", false, "e", false},
		"below, but it says the same": {"e/sub/f", true, "e", false},
	} {
		w.see(func(v *tree.View) {
			x := &excludes{pattern: c.pattern, same: c.same}
			assert.Equal(t, Crosses(v, x, w.link("d"), w.link(c.to), w.inos["d"]), c.want, what)
			if c.same {
				assert.Equal(t, x.asked, 2, what, "asked of what is below")
			}
		})
	}
	w.see(func(v *tree.View) {
		gone := table.Link{Dir: 99, Name: "x"}
		assert.False(t, Crosses(v, &excludes{pattern: "*"}, gone, w.link("e"), w.inos["d"]), "of no path")
		assert.False(t, Crosses(v, &excludes{pattern: "e"}, w.link("d"), w.link("e"), 99), "of no inode")
	})
}

// How much is not shown is the sum over the directories that do not show all.
func TestHidden(t *testing.T) {
	w := newWorld(t)
	hidden := func(want int, dirs ...table.Ino) {
		t.Helper()
		w.see(func(v *tree.View) {
			assert.Equal(t, Hidden(v), want, "hidden")
			assert.Slice(t, Hiding(v), dirs, "hiding")
		})
	}
	hidden(0)
	w.do(func(tx *tree.Tx) {
		SetHidden(tx, 5, 3)
		SetHidden(tx, 7, 300)
		SetHidden(tx, 8, 0)
	})
	hidden(303, 5, 7)
	w.do(func(tx *tree.Tx) {
		SetHidden(tx, 5, 0)
		SetHidden(tx, 7, 2)
	})
	hidden(2, 7)
}

package memory

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// A directory's entries are a sorted map, of which every state stays as it was, and the same
// names make the same treap.
func TestEntries(t *testing.T) {
	tier.Check(t, func(t *rapid.T) {
		names := rapid.StringMatching(`[a-d]{0,3}`)
		want := map[string]*node{}
		var e *entries
		var past []*entries
		var had []map[string]*node
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			name := names.Draw(t, "name")
			past, had = append(past, e), append(had, maps.Clone(want))
			if rapid.Bool().Draw(t, "put") {
				n := &node{}
				e, want[name] = e.put(name, n), n
			} else {
				e = e.remove(name)
				delete(want, name)
			}
		}
		wantEntries(t, e, want, names.Draw(t, "first"))
		for i := range past {
			wantEntries(t, past[i], had[i], "")
		}
		var again *entries
		for _, name := range rapid.Permutation(slices.Sorted(maps.Keys(want))).Draw(t, "order") {
			again = again.put(name, want[name])
		}
		assert.Must(t, reflect.DeepEqual(e, again), "the same names in another order make another treap")
	})
}

func wantEntries(t *rapid.T, e *entries, want map[string]*node, first string) {
	var got, names []string
	e.from(first, func(name string, n *node) bool {
		assert.Must(t, n == want[name] && e.get(name) == n, name, "has another node")
		got = append(got, name)
		return true
	})
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if name >= first {
			names = append(names, name)
		}
	}
	assert.Must(t, slices.Equal(got, names), "from", first, got, names)
}

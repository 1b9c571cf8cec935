package cache

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/wsmount/wsmount/fs"
)

// Entries come in the order of their cookies, which are never given twice,
// whatever was removed before.
func TestTableEntries(t *testing.T) {
	var table table = newMemTable()
	rng := rand.New(rand.NewPCG(1, 2))
	want := map[string]uint64{}
	given := map[uint64]string{}
	for range 5000 {
		name := fmt.Sprint(rng.IntN(100))
		if _, there := want[name]; there && rng.IntN(5) > 0 {
			table.dropEntry(7, name)
			delete(want, name)
		} else {
			table.setEntry(7, name, fs.Ino(rng.IntN(100)+1))
			e, ok := table.entry(7, name)
			if owner := given[e.cookie]; !ok || there && e.cookie != want[name] || !there && owner != "" {
				t.Fatalf("%q got cookie %d, which was %q's", name, e.cookie, owner)
			}
			want[name], given[e.cookie] = e.cookie, name
		}
		if table.count(7) != len(want) {
			t.Fatalf("%d entries, want %d", table.count(7), len(want))
		}
	}
	seen, last := 0, uint64(cookieParent)
	for e, ok := table.next(7, 0); ok; e, ok = table.next(7, e.cookie) {
		if e.cookie <= last || want[e.name] != e.cookie {
			t.Fatalf("%q at %d after %d, want at %d", e.name, e.cookie, last, want[e.name])
		}
		seen, last = seen+1, e.cookie
	}
	if seen != len(want) {
		t.Errorf("%d entries seen, want %d", seen, len(want))
	}
}

package bundle

import (
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/wsmount/wsmount/integration/assert"
)

// Two branches that share a commit: it is there once, before those that stand on it.
func TestHead(t *testing.T) {
	id := func(c string) plumbing.Hash { return plumbing.NewHash(strings.Repeat(c, 40)) }
	parents := map[plumbing.Hash][]plumbing.Hash{id("b"): {id("a")}, id("c"): {id("b"), id("f")}, id("d"): {id("b"), id("a")}}
	head, commits, err := Head([]Branch{{"refs/heads/main", []plumbing.Hash{id("c"), id("b")}}, {"refs/heads/side", []plumbing.Hash{id("d"), id("b")}}},
		func(c plumbing.Hash) ([]plumbing.Hash, error) { return parents[c], nil })
	assert.OK(t, err)
	assert.Slice(t, commits, []plumbing.Hash{id("b"), id("c"), id("d")})
	want := "# v2 git bundle\n-" + id("a").String() + "\n-" + id("f").String() + "\n" + id("c").String() + " refs/heads/main\n" + id("d").String() + " refs/heads/side\n\n"
	assert.Equal(t, head, want)
}

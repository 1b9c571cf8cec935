package rebase_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/git/internal/attributes"
	"github.com/wsmount/wsmount/providers/git/internal/rebase"
)

// Of a file that is declared so the lines of both sides are kept, in the order of
// git's union; of others nothing is.
func TestUnion(t *testing.T) {
	for name, c := range map[string]struct{ attributes, base, ours, theirs string }{
		"both appended":      {"*.log merge=union\n", "a\n", "a\nx\n", "a\ny\nz\n"},
		"both made":          {"*.log merge=union\n", "", "x\n", "y\n"},
		"both changed":       {"*.log merge=union\n", "a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n"},
		"not declared":       {"*.txt merge=union\n", "a\n", "a\nx\n", "a\ny\n"},
		"declared otherwise": {"*.log merge=union\ndir/a.log -merge\n", "a\n", "a\nx\n", "a\ny\n"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := func(log string) genTree {
				tree := genTree{attributes.Name: {"100644", c.attributes}, "other": {"100644", "other\n"}}
				if log != "" {
					tree["dir/a.log"] = genFile{"100644", log}
				}
				return tree
			}
			g := &mergeCases{t: t, dir: t.TempDir()}
			first := g.commit(0, tree(c.base))
			g.commit(first, tree(c.ours))
			g.commit(first, tree(c.theirs))
			in, ids := g.load()
			if err := os.WriteFile(filepath.Join(g.dir, "info", "attributes"), []byte(c.attributes), 0o600); err != nil {
				t.Fatal(err) // where git without files looks
			}
			want, conflict := g.git(nil, "merge-tree", "--write-tree", ids[2].String(), ids[3].String())
			tip, err := rebase.Rebase(t.Context(), in, ids[1], ids[3], ids[2], func(base, a, b []byte, union bool) ([]byte, bool) {
				if !union {
					return nil, false
				}
				return g.union(base, a, b), true
			})
			assert.Must(t, (err != nil) == (conflict != nil), "git", conflict, err)
			if err != nil {
				return
			}
			commit := assert.Of(in.Commit(tip)).OK(t)
			if got := commit.Tree.String() + "\n"; got != want {
				log, _ := g.git(nil, "show", tip.String()+":dir/a.log")
				t.Errorf("got tree %s, git has %s: %q", got, want, log)
			}
		})
	}
}

// union is git's of three texts.
func (c *mergeCases) union(texts ...[]byte) []byte {
	c.t.Helper()
	args := []string{"merge-file", "-p", "--union"}
	for _, i := range []int{1, 0, 2} {
		path := filepath.Join(c.dir, fmt.Sprintf("text%d", i))
		assert.OK(c.t, os.WriteFile(path, texts[i], 0o600))
		args = append(args, path)
	}
	out := assert.Of(c.git(nil, args...)).OK(c.t)
	return []byte(out)
}

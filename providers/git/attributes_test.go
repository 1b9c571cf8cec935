package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// What attributes say of merging is what git reads in them.
func TestMergeDriverAsGit(t *testing.T) {
	c := &mergeCases{t: t, dir: t.TempDir()}
	tier.RequireTools(t, "git")
	assert.OK(t, assert.ErrOf(c.git(nil, "init", "-q")))
	paths := []string{"a.log", "d/a.log", "d/e/a.log", "d/log", "x y.log", "CHANGES", "d/CHANGES", "log/a", "*.log"}
	for _, text := range []string{
		"*.log merge=union", "/*.log merge=union", "d/*.log merge=union", "d/** merge=union", "**/a.log merge=union", "d/**/a.log merge=union",
		"*.log merge=union\na.log -merge", "*.log merge=union\n/a.log !merge", "*.log text merge=union eol=lf # no", "# *.log merge=union",
		"\"x y.log\" merge=union", "log merge=union", "log/ merge=union", "/ merge=union", "CHANGES merge=ours\nd/CHANGES merge=union",
		"  *.log   merge=union  \r\n", "*.log binary", "*.log merge", "*.log", "", "d merge=union", "[ab].log merge=union", "a.lo? merge=union",
		"[attr]lines merge=union\n*.log lines", "*.log lines\n[attr]lines merge=union", "[attr]lines merge=union\n*.log lines -merge",
		"[attr]lines merge=union\n*.log -lines", "[attr]a b\n[attr]b merge=union\n*.log a", "[attr]binary merge=union\n*.log binary",
		"[attr]a a\n*.log a", "*.log merge=union !merge", "*.log merge=union\n*.log !merge",
	} {
		assert.OK(t, os.WriteFile(filepath.Join(c.dir, attributesName), []byte(text), 0o600))
		out, err := c.git(nil, append([]string{"check-attr", "-z", "merge", "--"}, paths...)...)
		says := strings.Split(out, "\x00") // path, attribute and value of each
		assert.Must(t, err == nil && len(says) == 3*len(paths)+1, out, err)
		for i, path := range paths {
			want := says[3*i+2] == "union"
			lines, _ := parseAttributes(text, ownMacros, true)
			driver, _ := valueOf(lines, strings.Split(path, "/"), "merge")
			assert.Equal(t, driver == "union", want, text, "of", path, "as git does")
		}
	}
}

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
				tree := genTree{attributesName: {"100644", c.attributes}, "other": {"100644", "other\n"}}
				if log != "" {
					tree["dir/a.log"] = genFile{"100644", log}
				}
				return tree
			}
			g := &mergeCases{t: t, dir: t.TempDir()}
			first := g.commit(0, tree(c.base))
			g.commit(first, tree(c.ours))
			g.commit(first, tree(c.theirs))
			r, ids := g.load()
			if err := os.WriteFile(filepath.Join(g.dir, "info", "attributes"), []byte(c.attributes), 0o600); err != nil {
				t.Fatal(err) // where git without files looks
			}
			want, conflict := g.git(nil, "merge-tree", "--write-tree", ids[2].String(), ids[3].String())
			tip, err := r.rebase(t.Context(), ids[1], ids[3], ids[2], func(base, a, b []byte, union bool) ([]byte, bool) {
				if !union {
					return nil, false
				}
				return g.union(base, a, b), true
			})
			assert.Must(t, (err != nil) == (conflict != nil), "git", conflict, err)
			if err != nil {
				return
			}
			commit := assert.Of(r.commit(tip)).OK(t)
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

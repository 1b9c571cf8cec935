package rebase_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/rebase"
	"github.com/wsmount/wsmount/providers/git/internal/space"
)

// A genFile is a file of a generated tree, or a link.
type genFile struct{ mode, content string }

type genTree map[string]genFile

// has reports whether a path is taken, by itself or by a file on the way to it.
func (g genTree) has(path string) bool {
	for at := range g {
		if at == path || strings.HasPrefix(at, path+"/") || strings.HasPrefix(path, at+"/") {
			return true
		}
	}
	return false
}

// A mergeGen makes three trees: what both sides began from, and theirs. No side
// renames a file and changes it too, and new content is like no other, so that git
// finds exact renames only. No two files of the base are equal: which of them was
// renamed git decides by the order in which it came to see them.
type mergeGen struct {
	*rand.Rand
	next int
}

func (g *mergeGen) content() string {
	g.next++
	var b strings.Builder
	for line := range 6 {
		fmt.Fprintf(&b, "%d %d %x\n", g.next, line, g.Uint64())
	}
	return b.String()
}

func (g *mergeGen) path() string {
	names := []string{"a", "b", "c", "d"}
	path := names[g.IntN(4)]
	for range g.IntN(3) {
		path += "/" + names[g.IntN(4)]
	}
	return path
}

func (g *mergeGen) base() genTree {
	tree := genTree{}
	for range 2 + g.IntN(7) {
		path := g.path()
		if tree.has(path) {
			continue
		}
		f := genFile{"100644", g.content()}
		switch g.IntN(12) {
		case 0:
			f.content = ""
		case 1:
			f = genFile{"120000", fmt.Sprintf("to/%d", g.Uint64())}
		case 2:
			f.mode = "100755"
		}
		tree[path] = f
	}
	return tree
}

// side changes some of a tree.
func (g *mergeGen) side(base genTree) genTree {
	tree := maps.Clone(base)
	for _, at := range slices.Sorted(maps.Keys(base)) {
		switch f := tree[at]; g.IntN(8) {
		case 0:
			delete(tree, at)
		case 1, 2:
			delete(tree, at)
			for to := g.path(); ; to = g.path() + strconv.Itoa(g.IntN(3)) {
				if !tree.has(to) {
					if f.mode == "100644" && g.IntN(4) == 0 {
						f.mode = "100755"
					}
					tree[to] = f
					break
				}
			}
		case 3:
			if f.content != "" && f.mode != "120000" {
				f.content = g.edit(f.content)
				tree[at] = f
			}
		case 4:
			if f.mode == "100644" {
				f.mode = "100755"
				tree[at] = f
			}
		}
	}
	if dir := g.path(); g.IntN(3) == 0 && !tree.has(dir+"9") {
		for _, at := range slices.Sorted(maps.Keys(base)) { // a whole directory
			if rest, is := strings.CutPrefix(at, dir+"/"); is && tree[at] == base[at] {
				delete(tree, at)
				tree[dir+"9/"+rest] = base[at]
			}
		}
	}
	for range g.IntN(2) {
		if at := g.path(); !tree.has(at) {
			tree[at] = genFile{"100644", g.content()}
		}
	}
	return tree
}

// edit changes the first line or the last.
func (g *mergeGen) edit(text string) string {
	lines := strings.SplitAfter(text, "\n")
	lines[[]int{0, 5}[g.IntN(2)]] = fmt.Sprintf("edited %d\n", g.IntN(3))
	return strings.Join(lines, "")
}

// combineLines merges texts of equally many lines, none of which were made anew
// beside another.
func combineLines(base, a, b []byte, _ bool) ([]byte, bool) {
	x, y, z := bytes.SplitAfter(base, []byte("\n")), bytes.SplitAfter(a, []byte("\n")), bytes.SplitAfter(b, []byte("\n"))
	var out []byte
	for i := range x {
		switch {
		case bytes.Equal(x[i], y[i]), bytes.Equal(y[i], z[i]):
			out = append(out, z[i]...)
		case bytes.Equal(x[i], z[i]):
			out = append(out, y[i]...)
		default:
			return nil, false
		}
	}
	return out, true
}

// mergeCases are trees as commits of a repository.
type mergeCases struct {
	t      *testing.T
	dir    string
	stream bytes.Buffer
	number int
}

func (c *mergeCases) git(in []byte, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", c.dir, "-c", "merge.directoryRenames=false"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	return string(out), err
}

// commit adds a commit of a tree to what is imported.
func (c *mergeCases) commit(parent int, tree genTree) int {
	c.number++
	fmt.Fprintf(&c.stream, "commit refs/heads/c%d\nmark :%d\ncommitter A <a@b.test> 1700000000 +0000\ndata 1\nc\n", c.number, c.number)
	if parent > 0 {
		fmt.Fprintf(&c.stream, "from :%d\n", parent)
	}
	c.stream.WriteString("deleteall\n")
	for _, at := range slices.Sorted(maps.Keys(tree)) {
		fmt.Fprintf(&c.stream, "M %s inline %s\ndata %d\n%s\n", tree[at].mode, at, len(tree[at].content), tree[at].content)
	}
	return c.number
}

// load imports the commits, and opens them.
func (c *mergeCases) load() (in rebase.Repository, ids []odb.ID) {
	c.t.Helper()
	tier.RequireTools(c.t, "git")
	assert.OK(c.t, assert.ErrOf(c.git(nil, "init", "--bare", "-q")))
	assert.OK(c.t, assert.ErrOf(c.git(c.stream.Bytes(), "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet")))
	ids = make([]odb.ID, c.number+1)
	for i := range ids[1:] {
		b := assert.Of(os.ReadFile(filepath.Join(c.dir, "refs", "heads", fmt.Sprintf("c%d", i+1)))).OK(c.t)
		ids[i+1] = plumbing.NewHash(strings.TrimSpace(string(b)))
	}
	objects := assert.Of(odb.Open(filepath.Join(c.dir, "objects"), c.t.TempDir(), space.Disk{})).OK(c.t)
	c.t.Cleanup(func() { _ = objects.Close() })
	in.Objects = objects
	in.Commit = func(commit odb.ID) (object.Commit, error) {
		raw, err := objects.Get(commit, odb.Commit)
		if err != nil {
			return object.Commit{}, err
		}
		return object.ParseCommit(raw)
	}
	in.Fetch = func(context.Context, ...odb.ID) error { return nil } // all are local
	return in, ids
}

// A commit that is made anew on top of others is what git makes of it, where git
// has no conflict, and a conflict where git has one: what was renamed there is
// changed under its new name, and the other way round.
func TestRenamesAsGit(t *testing.T) {
	const number = 100
	all, clean, followed := 0, 0, 0
	tier.Seeds(t, 1, func(t *testing.T, seed uint64) {
		g := &mergeGen{Rand: rand.New(rand.NewPCG(seed, 7))}
		c := &mergeCases{t: t, dir: t.TempDir()}
		var trees [][3]genTree
		for range number {
			base := g.base()
			three := [3]genTree{base, g.side(base), g.side(base)}
			first := c.commit(0, base)
			c.commit(first, three[1])
			c.commit(first, three[2])
			trees = append(trees, three)
		}
		in, ids := c.load()
		for i, three := range trees {
			all++
			if !c.sameAsGit(in, three, ids[3*i+1], ids[3*i+2], ids[3*i+3]) {
				continue
			}
			clean++
			if changedWhereItWent(three) {
				followed++
			}
		}
	})
	t.Logf("%d cases, %d clean, %d of them with a rename that mattered", all, clean, followed)
	assert.True(t, clean >= all/20 && followed >= all/100, "the cases say too little")
}

// sameAsGit makes ours anew on top of theirs, as git does, and reports whether that went
// without a conflict.
func (c *mergeCases) sameAsGit(in rebase.Repository, three [3]genTree, base, ours, theirs odb.ID) (clean bool) {
	c.t.Helper()
	want, conflict := c.git(nil, "merge-tree", "--write-tree", ours.String(), theirs.String())
	want, _, _ = strings.Cut(want, "\n")
	tip, err := rebase.Rebase(c.t.Context(), in, base, theirs, ours, combineLines)
	if conflict == nil && errors.Is(err, providers.ErrConflict) && bothMade(three) {
		return false // git takes the new file, and what the other side changed under the old name is gone
	}
	if (conflict != nil) != errors.Is(err, providers.ErrConflict) || err != nil && !errors.Is(err, providers.ErrConflict) {
		c.t.Errorf("git says %v %s, we %v\nbase %v\nours %v\ntheirs %v", conflict, want, err, three[0], three[1], three[2])
	}
	if err != nil || conflict != nil {
		return false
	}
	commit := assert.Of(in.Commit(tip)).OK(c.t)
	if commit.Tree.String() != want {
		got, _ := c.git(nil, "ls-tree", "-r", commit.Tree.String())
		wanted, _ := c.git(nil, "ls-tree", "-r", want)
		c.t.Errorf("got\n%s\ngit has\n%s\nbase %v\nours %v\ntheirs %v", got, wanted, three[0], three[1], three[2])
	}
	return true
}

// changedWhereItWent reports whether one side renamed what the other changed.
func changedWhereItWent(three [3]genTree) bool {
	for at, f := range three[0] {
		for side := range 2 {
			_, here := three[1+side][at]
			other, there := three[2-side][at]
			if !here && there && other != f {
				return true
			}
		}
	}
	return false
}

// bothMade reports whether both sides have the same new file.
func bothMade(three [3]genTree) bool {
	for at, f := range three[1] {
		if _, was := three[0][at]; !was && three[2][at] == f {
			return true
		}
	}
	return false
}

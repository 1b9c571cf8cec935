package integration

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/tier"
)

// Two mounts, of which one rebases and one merges, and a plain clone change
// lines of the same texts, each its own, and now and then a mount is killed. In
// every run all three have all of it in the end, and nobody had to resolve
// anything.
func TestGitConverges(t *testing.T) {
	t.Parallel()
	merged := false
	tier.Seeds(t, 1, func(t *testing.T, seed uint64) {
		g := newGitStage(t)
		c := &converging{gitStage: g, r: rand.New(rand.NewPCG(seed, 0)), files: map[string][]string{}}
		c.begin()
		for _, policy := range []string{"rebase", "merge"} {
			g.workspace(policy, "pull: {on: turn-start}, commit: {on: per-turn}, push: {on: per-commit}, conflict: {policy: "+policy+"}")
			c.mounts = append(c.mounts, g.w.Mount("@acme/"+policy))
		}
		c.run(seed)
		if t.Failed() {
			return
		}
		for _, m := range c.mounts {
			m.Stop()
		}
		g.sound()
		merged = merged || g.repo.Git("rev-list", "--merges", "--count", "main") != "0\n"
	})
	assert.False(t, !t.Failed() && !merged, "nothing was merged")
}

// converging is the stage of three writers. Who is 0 or 1 is a mount, 2 the
// clone.
type converging struct {
	*gitStage
	mounts []*harness.Mount
	r      *rand.Rand
	files  map[string][]string // the lines that are to be in the end
	edits  int
}

const convergeLines = 30

// convergeSteps are so few in make test that they take seconds; with its seed, mounts are
// killed and others' changes merged in them.
var convergeSteps = tier.Pick(12, 24)

// begin is the first commit.
func (c *converging) begin() {
	begin := map[string]string{}
	for _, name := range []string{"a.txt", "deep/b.txt"} {
		for i := range convergeLines {
			c.files[name] = append(c.files[name], fmt.Sprint("line ", i))
		}
		begin[name] = c.content(name)
	}
	c.other.Write(begin)
	c.other.Commit("main", "begin")
}

func (c *converging) run(seed uint64) {
	for range convergeSteps {
		c.step()
	}
	for range 2 {
		for _, m := range c.mounts {
			c.event(m, "turn-end")
			c.event(m, "turn-start")
		}
	}
	c.fresh()
	for path := range c.files {
		for _, root := range []string{c.mounts[0].Dir, c.mounts[1].Dir, c.other.Dir} {
			got, err := os.ReadFile(filepath.Join(root, path))
			if err != nil || string(got) != c.content(path) {
				c.t.Errorf("seed %d: %s has in %s, %v\n%s\nwant\n%s", seed, root, path, err, got, c.content(path))
			}
		}
	}
}

func (c *converging) content(path string) string {
	return strings.Join(c.files[path], "\n") + "\n"
}

// step is one act of one of the three.
func (c *converging) step() {
	who := c.r.IntN(3)
	if who == 2 {
		c.fresh()
		c.edit(who, c.other.Dir)
		c.other.Commit("main", fmt.Sprint("theirs ", c.edits))
		return
	}
	m := c.mounts[who]
	switch c.r.IntN(8) {
	case 0, 1, 2, 3:
		c.edit(who, m.Dir)
	case 4:
		c.event(m, "turn-start")
	case 5, 6:
		c.event(m, "turn-end")
	case 7:
		m.Kill()
		m.Start()
	}
}

// edit changes a line that only one may change, with one between it and those
// of the others: changes of lines that meet are a conflict.
func (c *converging) edit(who int, root string) {
	paths := slices.Sorted(maps.Keys(c.files))
	for _, path := range paths[c.r.IntN(len(paths)):] {
		at := 6*c.r.IntN(convergeLines/6) + 2*who
		file := filepath.Join(root, path)
		old, err := os.ReadFile(file)
		c.check(err)
		lines := strings.Split(strings.TrimSuffix(string(old), "\n"), "\n")
		assert.Must(c.t, len(lines) == convergeLines, file, "has", len(lines), "lines:", old)
		c.edits++
		lines[at] = fmt.Sprintf("edit %d, of %d", c.edits, who)
		c.files[path][at] = lines[at]
		c.check(os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
}

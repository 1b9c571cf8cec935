package lines

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// Every merge is the one that git makes: the same bytes, the same number of
// conflicts, and the same union.
func TestAsGit(t *testing.T) {
	tier.RequireTools(t, "git")
	t.Run("table", func(t *testing.T) {
		var cases []mergeCase
		for _, c := range merges {
			m := mergeCase{c.name, spelled(c.base), spelled(c.ours), spelled(c.theirs)}
			if Text(m.base) && Text(m.ours) && Text(m.theirs) {
				cases = append(cases, m)
			}
		}
		compareWithGit(t, cases)
	})
	tier.Seeds(t, 1, func(t *testing.T, seed uint64) {
		compareWithGit(t, newGenerator(seed).some(150, shapes))
		compareWithGit(t, newGenerator(seed).some(1, longest))
	})
}

// To start git is most of the work, so one shell starts it for many cases.
const mergeAll = `
for base in *.base; do
	c=${base%.base}
	git merge-file -p -L here -L before -L there $c.ours $c.base $c.theirs >$c.merged
	echo $? >$c.conflicts
	git merge-file -p --union $c.ours $c.base $c.theirs >$c.united
done`

// compareWithGit merges cases both ways and tells where they differ.
func compareWithGit(t *testing.T, cases []mergeCase) {
	t.Helper()
	g := mergeDir(t.TempDir())
	defer g.clear(t)
	for i, c := range cases {
		g.write(t, i, "base", c.base)
		g.write(t, i, "ours", c.ours)
		g.write(t, i, "theirs", c.theirs)
	}
	g.run(t)
	for i, c := range cases {
		want := Merged{Content: g.read(t, i, "merged")}
		assert.OK(t, assert.ErrOf(fmt.Sscan(string(g.read(t, i, "conflicts")), &want.Conflicts)))
		got := Merge(c.base, c.ours, c.theirs, labels)
		got.Conflicts = min(got.Conflicts, 127) // git's exit status says no more
		if !bytes.Equal(got.Content, want.Content) || got.Conflicts != want.Conflicts {
			t.Errorf("%v\ngot  %d conflicts, %.9000q\ngit: %d conflicts, %.9000q", c, got.Conflicts, got.Content, want.Conflicts, want.Content)
		}
		if got, want := Union(c.base, c.ours, c.theirs), g.read(t, i, "united"); !bytes.Equal(got, want) {
			t.Errorf("%v\ngot  the union %.9000q\ngit: %.9000q", c, got, want)
		}
	}
}

func (c mergeCase) String() string {
	return fmt.Sprintf("%s\nbase   %.9000q\nours   %.9000q\ntheirs %.9000q", c.shape, c.base, c.ours, c.theirs)
}

// A mergeDir is where git merges, without anybody's settings: a case is a few files.
type mergeDir string

func (g mergeDir) run(t *testing.T) {
	t.Helper()
	cmd := exec.Command("sh", "-c", mergeAll)
	cmd.Dir = string(g)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CEILING_DIRECTORIES=" + filepath.Dir(cmd.Dir)}
	out, err := cmd.CombinedOutput()
	assert.Must(t, err == nil && len(out) == 0, "git:", err, out)
}

// clear is not left to the end of the test: many cases are gigabytes.
func (g mergeDir) clear(t *testing.T) {
	t.Helper()
	assert.Is(t, os.RemoveAll(string(g)), nil)
}

func (g mergeDir) write(t *testing.T, i int, kind string, data []byte) {
	t.Helper()
	assert.OK(t, os.WriteFile(g.path(i, kind), data, 0o600))
}

func (g mergeDir) read(t *testing.T, i int, kind string) []byte {
	t.Helper()
	data := assert.Of(os.ReadFile(g.path(i, kind))).OK(t)
	return data
}

func (g mergeDir) path(i int, kind string) string {
	return filepath.Join(string(g), fmt.Sprintf("%d.%s", i, kind))
}

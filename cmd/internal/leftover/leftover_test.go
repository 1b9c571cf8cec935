package leftover

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// An upload is hinted at where the workspace is kept at the same storage, whatever the working
// copy is called; an export always.
func TestWays(t *testing.T) {
	for now, uploads := range map[string]bool{"": false, "abc": true, "/state/acme/ops/abc.review": true, "abd": false} {
		got := Ways("/state/acme/ops/abc", now)
		assert.Contains(t, got, "`wsmount recover export /state/acme/ops/abc DIR`")
		assert.Equal(t, strings.Contains(got, "`wsmount recover upload /state/acme/ops/abc`"), uploads, now, got)
	}
}

// What there is of commits is right, and not what was noted of them; without any, nothing is lost
// that is no change.
func TestCount(t *testing.T) {
	commit := func(name string, at int64) providers.UnpushedCommit {
		return providers.UnpushedCommit{Revision: providers.Revision(name), Time: time.Unix(at, 0)}
	}
	branches := []providers.UnpushedBranch{{Name: "a", Commits: []providers.UnpushedCommit{commit("2", 9), commit("1", 7)}}, {Name: "b", Commits: []providers.UnpushedCommit{commit("1", 7)}}}
	for _, c := range []struct {
		name     string
		noted    *cache.Unpushed
		branches []providers.UnpushedBranch
		total    int
		says     string
	}{
		{"nothing", nil, nil, 0, ""},
		{"changes", nil, nil, 3, "unsaved changes (3)"},
		{"a push that came to its end", &cache.Unpushed{Commits: 4}, nil, 0, ""},
		{"a push that is owed, of changes", &cache.Unpushed{}, nil, 1, "unsaved changes (1)"},
		{"another branch", nil, branches, 0, "commits that are not pushed (2)"},
		{"more than was noted", &cache.Unpushed{Commits: 1}, branches, 1, "unsaved changes (1) and commits that are not pushed (2)"},
	} {
		r := Report{Branches: c.branches}
		r.Unpushed, r.Total = c.noted, c.total
		r.count()
		assert.Equal(t, r.Text(), c.says, c.name)
		assert.Equal(t, r.Empty(), c.says == "", c.name, "is empty")
		if c.branches != nil {
			assert.Equal(t, r.Unpushed.Since, time.Unix(7, 0), c.name, "since")
		}
	}
}

func TestFetch(t *testing.T) {
	got := Exported{Bundle: "/home/bob's/out/unpushed.bundle"}.Fetch()
	assert.Equal(t, got, `git fetch '/home/bob'\''s/out/unpushed.bundle' 'refs/heads/*:refs/heads/recovered/*'`)
}

// A file of commits is safe once it is written, overwrites nothing, and of one that cannot be
// read whole nothing stays.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	e := export{ctx: t.Context(), root: assert.Of(os.OpenRoot(dir)).OK(t)}
	defer e.root.Close()
	gives := func(r io.Reader) providers.Opener {
		return func() (io.ReadCloser, error) { return io.NopCloser(r), nil }
	}
	assert.OK(t, e.write("d/f", 0o700, gives(strings.NewReader("one"))))
	name := filepath.Join(dir, "d/f")
	tier.OnDisk(t, name)
	assert.Is(t, e.write("d/f", 0o700, gives(strings.NewReader("two"))), os.ErrExist)
	assert.Equal(t, string(assert.Of(os.ReadFile(name)).OK(t)), "one")
	damaged := io.MultiReader(strings.NewReader("half"), broken{})
	assert.Is(t, e.write("d/damaged", 0o600, gives(damaged)), io.ErrUnexpectedEOF)
	assert.Is(t, assert.ErrOf(os.Lstat(filepath.Join(dir, "d/damaged"))), os.ErrNotExist)
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

package seamtest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/project"
)

func repos(t providertest.T, b seam.Backend, want ...project.Repo) {
	t.Helper()
	got, err := project.Repos(t.Context(), b)
	assert.OK(t, err, "repositories")
	assert.Slice(t, got, want, "repositories")
}

// routingRepos: repositories are registered, listed and removed, in the order in which they
// came.
func routingRepos(t providertest.T, b seam.Backend) {
	writeIf(b, func(seam.Conditional) {
		first, second := project.Repo{Slug: "atlas", Root: "/src/atlas"}, project.Repo{Slug: "b", Root: "/src/b", Wiki: "/src/b/wiki"}
		repos(t, b)
		for _, r := range []project.Repo{first, second} {
			assert.OK(t, project.Register(t.Context(), b, r), "register", r.Slug)
		}
		first.Root = "/srv/atlas"
		assert.OK(t, project.Register(t.Context(), b, first), "register again")
		repos(t, b, first, second)
		for _, there := range []bool{true, false} {
			removed, err := project.Unregister(t.Context(), b, "atlas")
			assert.OK(t, err, "unregister")
			assert.Equal(t, removed, there, "whether it was there")
		}
		repos(t, b, second)
	})
}

// routingCounted: of several that register at once, each is registered.
func routingCounted(t providertest.T, b seam.Backend) {
	writeIf(b, func(seam.Conditional) {
		var want []string
		var all sync.WaitGroup
		for i := range 6 {
			slug := fmt.Sprintf("p%d", i)
			want = append(want, slug)
			all.Go(func() {
				if err := project.Register(t.Context(), b, project.Repo{Slug: slug, Root: "/src/" + slug}); err != nil {
					t.Errorf("register among others: %v", err)
				}
			})
		}
		all.Wait()
		list, err := project.Repos(t.Context(), b)
		assert.OK(t, err, "repositories")
		var got []string
		for _, r := range list {
			got = append(got, r.Slug)
		}
		slices.Sort(got)
		assert.Slice(t, got, want, "slugs")
	})
}

// unclosed is a backend that its owner closes.
type unclosed struct{ seam.Backend }

func (unclosed) Close() error { return nil }

// routingState: a project has its place, and state lies in it exactly if the backend promises a
// replication.
func routingState(t providertest.T, b seam.Backend) {
	root := filepath.Join(t.TempDir(), "checkout")
	assert.OK(t, os.MkdirAll(filepath.Join(root, ".harness"), 0o700))
	assert.OK(t, os.WriteFile(filepath.Join(root, ".harness", "project.json"), []byte(`{"vault_project": "atlas"}`), 0o600))
	p, err := project.Resolve(t.Context(), b, root)
	assert.OK(t, err, "resolve the project")
	assert.Equal(t, p.Locator, at(t, b, "projects", "atlas"), "where the project lies")
	m := project.Machine{Config: seam.Config{Err: fs.ErrNotExist}, Checkout: func(string) (seam.Backend, error) { return unclosed{b}, nil },
		Memory: func(context.Context) (seam.Backend, error) { return unclosed{b}, nil }}
	s, err := m.State(t.Context(), root)
	assert.OK(t, err, "state of the project")
	want := at(t, b, ".harness")
	if b.Capabilities().Sync {
		want = at(t, b, "projects", "atlas", "_harness")
	}
	assert.Equal(t, s.Dir, want, "where the state lies")
	write(t, b, at(t, b, want.Key(), "PLAN.md"), "# Plan\n")
	holds(t, s.Backend, at(t, b, want.Key(), "PLAN.md"), "# Plan\n")
}

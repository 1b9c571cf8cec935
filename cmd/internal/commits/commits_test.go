package commits

import (
	"errors"
	"os"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }

// Whoever has a commit made, it is asked for before it is made, and counts once: but not
// where nothing was made, and one whose answer got lost counts until it is known.
func TestEachCommitIsAskedFor(t *testing.T) {
	repo := memoryrepo.NewRepository(memoryrepo.NewRemote(nil), "", memory.Options{})
	counted, refused := 0, errors.New("limit-exceeded")
	var denied error
	tool := New(repo, providers.WrapOptions{})
	tool.Bind(Bound{Begin: func() (func() error, error) {
		if denied != nil {
			return nil, denied
		}
		counted++
		return func() error { counted--; return nil }, nil
	}})
	commit := func(op, content string) error {
		c := providers.Change{Locator: providers.MustLocator("f"), Body: providers.String(content), If: providers.IfAbsent()}
		if info, err := repo.Stat(t.Context(), c.Locator); err == nil {
			c.If = providers.IfVersion(info.Version)
		}
		return assert.ErrOf(tool.Commit(t.Context(), providers.ChangeSet{Op: op, Changes: []providers.Change{c}}))
	}
	ask := func(op string) error { // as cache asks what became of a set
		return assert.ErrOf(tool.Commit(t.Context(), providers.ChangeSet{Base: "none", Op: op}))
	}
	head := func() providers.Revision {
		r, err := repo.Head(t.Context())
		assert.True(t, err == nil || errors.Is(err, providers.ErrNotExist), err)
		return r
	}

	denied = refused
	before := head()
	assert.Is(t, commit("1", "one"), refused)
	assert.Equal(t, head(), before, "a refused commit: the head")
	denied = nil
	assert.OK(t, commit("2", "one"))
	assert.Equal(t, counted, 1, "a commit")
	assert.OK(t, commit("3", "one"))
	assert.Equal(t, counted, 1, "what it was already")
	repo.Switches().Fail(providers.MethodCommit, 1, providers.ErrPermission)
	assert.Is(t, commit("4", "two"), providers.ErrPermission)
	assert.Equal(t, counted, 1, "a commit that the store has refused")

	repo.Switches().Fail(providers.MethodCommit, 1, providers.ErrUnavailable)
	assert.Is(t, commit("5", "two"), providers.ErrUnavailable)
	assert.Equal(t, counted, 2, "a commit without an answer")
	denied = refused // who only asks is never refused
	assert.True(t, ask("5") != nil, "it was made")
	assert.Equal(t, counted, 1, "it was not made")
	denied = nil
	repo.Switches().Lose(providers.MethodCommit, 1)
	assert.Is(t, commit("6", "two"), providers.ErrUnavailable)
	assert.OK(t, ask("6"))
	assert.Equal(t, counted, 2, "it was made")
	assert.OK(t, ask("6"))
	assert.Equal(t, counted, 2, "asked again")
}

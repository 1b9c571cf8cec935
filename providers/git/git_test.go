package git_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/seamtest"
)

func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }

// place is a new directory: what syncing costs is nothing that the contract asks about.
func place(t providertest.T) string {
	t.Helper()
	return testrun.InMemory(t)
}

// clone opens a clone of a repository.
func clone(t providertest.T, url string, change ...func(*git.Options)) *git.Provider {
	t.Helper()
	o := git.Options{URL: url, Dir: place(t)}
	for _, f := range change {
		f(&o)
	}
	return assert.Of(git.Open(t.Context(), o)).OK(t, "open")
}

// Each check begins with a copy of one clone: opening that asks nobody.
func TestContract(t *testing.T) {
	t.Parallel()
	empty := gitserver.Start(t).Create(t, "empty")
	first := place(t)
	assert.OK(t, clone(t, empty.URL, func(o *git.Options) { o.Dir = first }).Close())
	providertest.Run(t, func(t providertest.T) providers.Provider {
		return clone(t, empty.URL, func(o *git.Options) {
			assert.OK(t, os.CopyFS(o.Dir, os.DirFS(first)), "copy")
		})
	})
}

func TestContractClones(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	var n atomic.Int32
	providertest.RunClones(t, func(ct providertest.T) providertest.Clones {
		repo := server.Create(t, fmt.Sprint("r", n.Add(1)))
		pulls := &onePull{}
		return providertest.Clones{
			A: clone(ct, repo.URL, func(o *git.Options) { o.Pulls = pulls }), B: clone(ct, repo.URL),
			Drop: dropping(repo), Mute: func(mute bool) { pulls.mute = mute },
		}
	})
}

// dropping deletes branches of a repository.
func dropping(repo *gitserver.Repo) func(branch string) error {
	return func(branch string) error {
		if branch == "" {
			branch = "main"
		}
		return assert.ErrOf(repo.Try("update-ref", "-d", "refs/heads/"+branch))
	}
}

// onePull is an API with one pull request from each branch.
type onePull struct{ mute bool }

func (p *onePull) Ensure(_ context.Context, head, _, _, _ string) (string, error) {
	if p.mute {
		return "", providers.ErrUnavailable
	}
	return "http://pulls.test/" + head, nil
}

// A branch is a place for memory, though it has no empty directories, and keeps no times of
// files.
func TestSeam(t *testing.T) {
	t.Parallel()
	empty := gitserver.Start(t).Create(t, "empty")
	first := place(t)
	assert.OK(t, clone(t, empty.URL, func(o *git.Options) { o.Dir = first }).Close())
	seamtest.Run(t, func(t providertest.T) seam.Backend {
		return seam.New(clone(t, empty.URL, func(o *git.Options) {
			assert.OK(t, os.CopyFS(o.Dir, os.DirFS(first)), "copy")
		}))
	}, "info/time")
}

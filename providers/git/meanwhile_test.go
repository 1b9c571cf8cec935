package git_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git"
)

// meanwhile is an API of pull requests, in whose place something is done.
type meanwhile func()

func (m meanwhile) Ensure(context.Context, string, string, string, string) (string, error) {
	m()
	return "http://pull/1", nil
}

// What is committed while a push is under way, a file in LFS among it whose content
// is just being uploaded, is no part of that push and waits for the next: the branch
// never names an object that the server does not have.
func TestCommitDuringAPush(t *testing.T) {
	t.Parallel()
	const branch = "wsmount/c/one"
	for _, during := range []string{"/batch", "/objects/", "/verify/", "/git-receive-pack", "pull request"} {
		t.Run(during, func(t *testing.T) {
			t.Parallel()
			var s *largeStage
			var once sync.Once
			commit := func() {
				once.Do(func() {
					write(t, s.p, "new.bin", "newer")
					write(t, s.p, "more", "x")
				})
			}
			pulls := meanwhile(func() {
				if during == "pull request" {
					commit()
				}
			})
			withPulls := func(o *git.Options) { o.Pulls = pulls }
			s = newLargeStage(t, withPulls)
			goTo(t, s.p, branch)
			write(t, s.p, "new.bin", "new")
			object := func(content string) bool {
				return slices.Contains(slices.Collect(maps.Values(s.lfs.Objects())), content)
			}
			s.lfs.Fail(func(r *http.Request) *gitserver.Answer {
				if strings.Contains(r.URL.Path, during) && r.Method != http.MethodGet {
					commit()
				}
				return nil
			})
			s.server.Hook(func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
					assert.True(t, object("new"), "the branch is to move before its objects are there")
					if strings.Contains(r.URL.Path, during) {
						commit()
					}
				}
				return false
			})
			pushes := func(content string, waits int, pushed bool) {
				t.Helper()
				assert.OK(t, assert.ErrOf(s.p.Push(t.Context(), providers.PushOptions{PullRequest: &providers.PullRequest{}})))
				if got := s.repo.Git("show", branch+":new.bin"); got != pointerTo(content) || !object(content) {
					t.Errorf("the server has %q of %q and %v", got, content, s.lfs.Objects())
				}
				assert.OK(t, s.p.Close())
				s.p = clone(t, s.repo.URL, in(s.dir), withPulls) // which sweeps
				if b := branches(t, s.p).Unmerged; s.kept() != waits || len(b) != 1 || b[0].Pushed != pushed {
					t.Errorf("%d objects wait, want %d; branches %+v", s.kept(), waits, b)
				}
			}
			pushes("new", 1, false)
			pushes("newer", 0, true)
		})
	}
}

package git_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git"
)

// page is a success that is made of another.
func page(r *http.Request, kind, body string, answer func(kind, body string) (string, string)) (*http.Response, error) {
	kind, body = answer(kind, body)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body))}, nil
}

// notGit are answers that a git server never gives, each made of what it has answered
// to a request that reached it.
var notGit = map[string]struct {
	reaches bool
	answer  func(kind, body string) (newKind, newBody string)
}{
	"login page": {false, func(string, string) (string, string) { return "text/html", "<html><body>Log in</body></html>" }},
	"nothing":    {false, func(string, string) (string, string) { return "", "" }},
	"another verb's": {false, func(string, string) (string, string) {
		return "application/x-git-upload-archive-result", "0008NAK\n0000"
	}},
	"a report of nothing": {false, func(string, string) (string, string) {
		return "application/x-git-receive-pack-result", "0017\x01000eunpack ok\n00000000"
	}},
	"nothing, of the right type":  {true, func(kind, _ string) (string, string) { return kind, "" }},
	"no branches, and no service": {true, func(kind, _ string) (string, string) { return kind, "0000" }},
	"half":                        {true, func(kind, body string) (string, string) { return kind, body[:len(body)/2] }},
	"all but the end":             {true, func(kind, body string) (string, string) { return kind, strings.TrimSuffix(body, "0000") }},
}

// asks are the requests that git makes, by how their URLs end.
var asks = map[string]string{"upload-pack's branches": "?service=git-upload-pack", "receive-pack's branches": "?service=git-receive-pack",
	"a pack": "/git-upload-pack", "a push": "/git-receive-pack"}

// A success that a git server never gives is none: nothing counts as pushed, fetched
// or empty for it, and all goes on once the server is there again.
func TestAnswersThatAreNotGits(t *testing.T) {
	t.Parallel()
	for what, foreign := range notGit {
		for name, end := range asks {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				_, repo, other := seeded(t)
				var away atomic.Bool
				through := func(o *git.Options) {
					o.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
						answered := away.Load() && strings.HasSuffix(r.URL.String(), end)
						if answered && !foreign.reaches {
							return page(r, "", "", foreign.answer)
						}
						real, err := http.DefaultTransport.RoundTrip(r)
						if !answered || err != nil {
							return real, err
						}
						defer real.Body.Close()
						body, err := io.ReadAll(real.Body)
						if err != nil {
							return nil, err
						}
						return page(r, real.Header.Get("Content-Type"), string(body), foreign.answer)
					})
				}
				p := clone(t, repo.URL, through)
				other.Write(map[string]string{"theirs": "new\n"})
				other.Commit("topic", "more")
				write(t, p, "ours", "new\n")
				away.Store(true)
				if strings.Contains(end, "receive") {
					_, err := p.Push(t.Context(), providers.PushOptions{})
					// A push that arrived, and whose report is lost, shows in the branch.
					if arrived := foreign.reaches && end == asks["a push"]; !arrived || err != nil {
						assert.Is(t, err, providers.ErrUnavailable, "push")
					}
					away.Store(false)
					assert.OK(t, assert.ErrOf(p.Push(t.Context(), providers.PushOptions{})))
					assert.Equal(t, repo.Git("show", "main:ours"), "new\n", "the server")
					return
				}
				other.Git("push", "-q", "origin", "HEAD:refs/heads/main")
				o := git.Options{URL: repo.URL, Dir: filepath.Join(place(t), "new"), Branch: "topic"}
				through(&o)
				if end == asks["a pack"] && what == "all but the end" {
					return // a pack that has its own end is whole
				}
				assert.Is(t, assert.ErrOf(git.Open(t.Context(), o)), providers.ErrUnavailable, "open")
				assert.Is(t, assert.ErrOf(p.Fetch(t.Context())), providers.ErrUnavailable, "fetch")
				away.Store(false)
				assert.OK(t, assert.ErrOf(p.Fetch(t.Context())))
			})
		}
	}
}

// notLFS are answers that no API of LFS and no storage gives.
var notLFS = map[string]gitserver.Answer{
	"login page":          {Status: 200, Header: map[string]string{"Content-Type": "text/html"}, Body: "<html>Log in</html>"},
	"page that is a file": {Status: 200, Header: map[string]string{"Content-Type": "text/html", "ETag": `"65a1-2f"`}, Body: "<html>Log in</html>"},
	"nothing":             {Status: 200, Header: map[string]string{"Content-Type": ""}},
	"another verb's":      {Status: 200, Body: `{"locks": []}`},
	"half":                {Status: 200, Body: `{"transfer": "basic", "obj`},
}

// An object counts as stored only if the server says so: a push waits until then, and
// a clone learns nothing of what the server offers.
func TestAnswersThatAreNotLFSs(t *testing.T) {
	t.Parallel()
	for what, answer := range notLFS {
		for name, match := range map[string]string{"batch": "POST /acme/r.git/info/lfs/objects/batch", "upload": "PUT /objects/", "verify": "POST /acme/r.git/info/lfs/verify/"} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				s := newLargeStage(t)
				foreign := func(r *http.Request) *gitserver.Answer {
					if !strings.HasPrefix(r.Method+" "+r.URL.Path, match) {
						return nil
					}
					return &answer
				}
				if name == "batch" {
					s.lfs.Fail(foreign)
					_, err := s.p.List(t.Context(), providers.Locator{}, providers.ListOptions{})
					assert.Is(t, err, providers.ErrUnavailable, "a listing")
					s.lfs.Fail(nil)
					reads(t, s.p, "a.bin", inLFS)
				}
				write(t, s.p, "new.bin", "new")
				s.lfs.Fail(foreign)
				assert.Is(t, s.push(), providers.ErrUnavailable, "a push")
				assert.True(t, assert.ErrOf(s.repo.Try("show", "main:new.bin")) != nil, "git has the pointer")
				s.lfs.Fail(nil)
				assert.OK(t, s.push())
				assert.Equal(t, len(s.lfs.Objects()), 3, "the server")
			})
		}
	}
}

// Package gitserver serves git repositories over HTTP and SSH, and as a git daemon,
// with the git program, for tests and the benchmark.
//
// It knows `git http-backend`, `git upload-pack`, `git receive-pack` and `git daemon`
// and the way they are run, and nothing of who uses it.
// It lies outside internal, because the tests of the provider use it as well as
// those of the program.
//
//	server := gitserver.Start(t)
//	repo := server.Create("acme/ops") // server.URL + "/acme/ops.git"
//	repo.Push("main", map[string]string{"README.md": "hello\n"})
//
// StartAPI adds the part of GitHub's REST API that wsmount uses, held to GitHub's
// own description of it, bin/github-api.json, which `make soak` fetches.
//
// A test without the program or the description is skipped, and fails where
// WSMOUNT_REQUIRE asks for all.
package gitserver

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// T is what this package needs of a test.
type T interface {
	Helper()
	TempDir() string
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// A Server is a running one, with any number of repositories.
type Server struct {
	URL string // without a slash at its end

	root    string
	program string
	parts   string // the directory of what the program consists of
	http    *httptest.Server

	mu       sync.Mutex // guards what follows
	token    string
	app      *App // beside the token, what it mints is taken
	api      *API
	lfs      *LFS
	requests []string
	hook     func(http.ResponseWriter, *http.Request) bool
}

// Launch serves what is made below root.
func Launch(root string) (*Server, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	parts, err := exec.Command(program, "--exec-path").Output() // it prints one line
	if err != nil {
		return nil, err
	}
	s := &Server{root: root, program: program, parts: strings.TrimSpace(string(parts))}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL
	return s, nil
}

// Stop ends the server, whoever still reads an answer, or has ceased to.
func (s *Server) Stop() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Require has the server ask for a token, as the password of any user, from now
// on; "" asks for nothing.
func (s *Server) Require(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// Hook sees each request first, and answers it itself if it returns true; nil:
// none does.
func (s *Server) Hook(hook func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// Requests are what was asked since it was last told: method, path and query.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.requests
	s.requests = nil
	return was
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	token, hook, app, api, lfs := s.token, s.hook, s.app, s.api, s.lfs
	s.mu.Unlock()
	if hook != nil && hook(w, r) {
		return
	}
	if strings.HasPrefix(r.URL.Path, apiPath+"/") && api != nil {
		api.serve(w, r, func(password string) bool { return password != "" && password == token || app.minted(password) })
		return
	}
	if _, password, _ := r.BasicAuth(); token != "" && password != token && !app.minted(password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		w.Header().Set("LFS-Authenticate", `Basic realm="Git LFS"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if at := lfsPath.FindStringSubmatch(r.URL.Path); at != nil && lfs != nil {
		lfs.serve(w, r, at[2])
		return
	}
	h := cgi.Handler{Path: filepath.Join(s.parts, "git-http-backend"), Stderr: &bytes.Buffer{},
		Env: append(environment(s.root), "GIT_PROJECT_ROOT="+s.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test")}
	h.ServeHTTP(w, r)
}

// environment is all that the git program gets: nothing of who runs the test. No command
// looks afterwards for something to collect.
func environment(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false", "GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@acme.test", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@acme.test"}
}

// A Repo is a repository of a server, or a clone of one.
type Repo struct {
	t   T
	Dir string
	URL string
	of  *Repo // whose objects a clone has; nil: it has its own
}

// Create makes an empty bare repository, whose HEAD names main.
func (s *Server) Create(t T, name string) *Repo {
	t.Helper()
	r := &Repo{t: t, Dir: filepath.Join(s.root, name+".git"), URL: s.URL + "/" + name + ".git"}
	for _, dir := range []string{"hooks", "objects", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(r.Dir, dir), 0o755); err != nil {
			t.Fatalf("%v", err)
		}
	}
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": repoConfig} {
		if err := os.WriteFile(filepath.Join(r.Dir, name), []byte(text), 0o644); err != nil {
			t.Fatalf("%v", err)
		}
	}
	return r
}

// repoConfig has pushes over HTTP taken, and no push look for something to collect.
const repoConfig = `[core]
	repositoryformatversion = 0
	bare = true
[http]
	receivepack = true
[receive]
	autogc = false
`

// Git runs the git program in the repository and returns what it prints.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	out, err := r.Try(args...)
	if err != nil {
		r.t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// Try is Git that may fail.
func (r *Repo) Try(args ...string) (string, error) {
	cmd := exec.Command("git", args...) // a test's limit is go test's
	cmd.Dir = r.Dir
	cmd.Env = environment(r.Dir)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s%s", err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

// Clone makes a clone with a work tree.
func (r *Repo) Clone(dir string) *Repo {
	r.t.Helper()
	r.Git("clone", "-q", r.Dir, dir)
	return &Repo{t: r.t, Dir: dir}
}

// Share makes a clone with a work tree whose objects are those of the repository, so that
// to follow its branches costs little.
func (r *Repo) Share(dir string) *Repo {
	r.t.Helper()
	r.Git("clone", "-q", "--shared", r.Dir, dir)
	return &Repo{t: r.t, Dir: dir, of: r}
}

// Follow has the work tree of a clone be what a branch is at where it is from.
func (r *Repo) Follow(branch string) error {
	tip := "FETCH_HEAD"
	if r.of != nil {
		at, err := os.ReadFile(filepath.Join(r.of.Dir, "refs", "heads", branch))
		if err != nil {
			return err
		}
		tip = strings.TrimSpace(string(at))
	} else if _, err := r.Try("fetch", "-q", "origin", branch); err != nil {
		return err
	}
	_, err := r.Try("reset", "-q", "--hard", tip)
	return err
}

// Write writes files of a clone; an empty directory on the way is made.
func (r *Repo) Write(files map[string]string) {
	r.t.Helper()
	for name, content := range files {
		path := filepath.Join(r.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatalf("%v", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			r.t.Fatalf("%v", err)
		}
	}
}

// Commit commits all of a clone and pushes it to a branch of where it is from.
func (r *Repo) Commit(branch, message string) {
	r.t.Helper()
	r.Git("add", "-A")
	r.Git("commit", "-q", "-m", message)
	r.Git("push", "-q", "origin", "HEAD:refs/heads/"+branch)
}

// Filter has the server leave out contents for who asks for that, and send them by
// their names later, as public servers do.
func (r *Repo) Filter() {
	r.t.Helper()
	r.Git("config", "uploadpack.allowFilter", "true")
	r.Git("config", "uploadpack.allowAnySHA1InWant", "true")
}

package gitserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An API answers for the pull requests of a server's repositories, in the shapes
// that GitHub documents, and takes nothing that GitHub does not document: a
// request that is wrong fails the test.
type API struct {
	URL string // without a slash at its end

	t      T
	server *Server
	app    *App

	mu     sync.Mutex // guards what follows
	pulls  []*Pull
	fail   func(r *http.Request) *Answer
	filter bool // by head and base, as GitHub does and Gitea does not
}

// A Pull is a pull request.
type Pull struct {
	Repo              string // owner/name
	From              string // the repository that Head is in; "": Repo
	Number            int
	State             string // open or closed
	Head, Base        string
	Title, Text, HTML string
}

// An Answer is one that a test gives in the API's place.
type Answer struct {
	Status int
	Header map[string]string
	Body   string
}

const apiPath = "/api/v3"

// StartAPI has a server answer for pull requests.
func (s *Server) StartAPI(t T) *API {
	t.Helper()
	a := &API{URL: s.URL + apiPath, t: t, server: s, filter: true}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.api = a
	return a
}

// Fail sees each request that is right, and may answer it; nil: none does.
func (a *API) Fail(f func(r *http.Request) *Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fail = f
}

// Unfiltered has it list pull requests as Gitea does, whatever is asked for.
func (a *API) Unfiltered() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.filter = false
}

// Pulls are the pull requests, in order.
func (a *API) Pulls() (all []Pull) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.pulls {
		all = append(all, *p)
	}
	return all
}

// Add makes a pull request as somebody else would.
func (a *API) Add(p Pull) Pull {
	a.mu.Lock()
	defer a.mu.Unlock()
	return *a.add(p)
}

// Close closes a pull request.
func (a *API) Close(number int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pulls[number-1].State = "closed"
}

func (a *API) add(p Pull) *Pull {
	p.Number, p.State = len(a.pulls)+1, "open"
	p.HTML = fmt.Sprintf("%s/%s/pull/%d", a.server.URL, p.Repo, p.Number)
	if p.From == "" {
		p.From = p.Repo
	}
	a.pulls = append(a.pulls, &p)
	return &p
}

// wrong fails the test, and the request.
func (a *API) wrong(w http.ResponseWriter, r *http.Request, format string, args ...any) {
	a.t.Errorf("the API was asked %s %s: %s", r.Method, r.URL.RequestURI(), fmt.Sprintf(format, args...))
	answer(w, http.StatusTeapot, map[string]any{"message": "this is not what GitHub documents"})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // plain values; who asks hears of a connection that broke
}

func (a *API) serve(w http.ResponseWriter, r *http.Request, accepts func(password string) bool) {
	path := strings.Split(strings.TrimPrefix(r.URL.Path, apiPath+"/"), "/")
	if accept := r.Header.Get("Accept"); !strings.Contains(accept, "application/vnd.github") || r.Header.Get("User-Agent") == "" {
		a.wrong(w, r, "Accept %q, User-Agent %q", accept, r.Header.Get("User-Agent"))
		return
	}
	a.mu.Lock()
	fail := a.fail
	a.mu.Unlock()
	if len(path) == 4 && path[0] == "app" && path[1] == "installations" && path[3] == "access_tokens" && a.app != nil {
		a.app.mint(a, w, r, path[2])
		return
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); !ok || !accepts(token) {
		answer(w, http.StatusUnauthorized, map[string]any{"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest"})
		return
	}
	if len(path) != 4 || path[0] != "repos" || path[3] != "pulls" {
		a.wrong(w, r, "there is nothing here")
		return
	}
	if fail != nil {
		if x := fail(r); x != nil {
			for k, v := range x.Header {
				w.Header().Set(k, v)
			}
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.WriteHeader(x.Status)
			fmt.Fprint(w, x.Body)
			return
		}
	}
	switch repo := path[1] + "/" + path[2]; r.Method {
	case http.MethodGet:
		a.list(w, r, repo)
	case http.MethodPost:
		a.create(w, r, repo)
	default:
		a.wrong(w, r, "no such method")
	}
}

// pageSize is smaller than anybody asks for, so that pages are needed.
const pageSize = 2

func (a *API) list(w http.ResponseWriter, r *http.Request, repo string) {
	q := r.URL.Query()
	for key := range q {
		if !slices.Contains([]string{"state", "head", "base", "sort", "direction", "per_page", "page"}, key) {
			a.wrong(w, r, "unknown parameter %s", key)
			return
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []any
	for _, p := range a.pulls {
		owner, _, _ := strings.Cut(p.From, "/")
		chosen := (q.Get("head") == "" || q.Get("head") == owner+":"+p.Head) && (q.Get("base") == "" || q.Get("base") == p.Base)
		if p.Repo == repo && (q.Get("state") == "all" || p.State == "open") && (chosen || !a.filter) {
			found = append(found, p.json())
		}
	}
	page, err := strconv.Atoi(q.Get("page"))
	if err != nil {
		page = 1
	}
	from := min((page-1)*pageSize, len(found))
	to := min(from+pageSize, len(found))
	if to < len(found) {
		w.Header().Set("Link", fmt.Sprintf(`<%s/repos/%s/pulls?page=%d>; rel="next"`, a.URL, repo, page+1))
	}
	answer(w, http.StatusOK, append([]any{}, found[from:to]...))
}

func (p *Pull) json() map[string]any {
	side := func(repo, ref string) map[string]any {
		owner, name, _ := strings.Cut(repo, "/")
		return map[string]any{"label": owner + ":" + ref, "ref": ref, "repo": map[string]any{"id": 1, "name": name, "full_name": repo,
			"owner": map[string]any{"login": owner, "id": 7, "type": "Organization"}, "fork": repo != p.Repo}}
	}
	return map[string]any{"id": p.Number, "number": p.Number, "state": p.State, "title": p.Title, "body": p.Text, "html_url": p.HTML,
		"created_at": time.Now().UTC().Format(time.RFC3339), "draft": false, "head": side(p.From, p.Head), "base": side(p.Repo, p.Base)}
}

func invalid(w http.ResponseWriter, what map[string]any) {
	what["resource"] = "PullRequest"
	answer(w, http.StatusUnprocessableEntity, map[string]any{"message": "Validation Failed", "errors": []any{what},
		"documentation_url": "https://docs.github.com/rest/pulls/pulls#create-a-pull-request"})
}

func (a *API) create(w http.ResponseWriter, r *http.Request, repo string) {
	var in struct {
		Title, Head, Base, Body string
		Draft                   bool
		MaintainerCanModify     *bool `json:"maintainer_can_modify"`
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil || r.Header.Get("Content-Type") != "application/json" || len(r.URL.RawQuery) > 0 {
		a.wrong(w, r, "body of type %q: %v", r.Header.Get("Content-Type"), err)
		return
	}
	if in.Title == "" || in.Head == "" || in.Base == "" || len(in.Title) > 256 || len(in.Body) > 65536 {
		a.wrong(w, r, "title %q, head %q, base %q, %d bytes of body", in.Title, in.Head, in.Base, len(in.Body))
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	owner, _, _ := strings.Cut(repo, "/")
	git := &Repo{t: a.t, Dir: filepath.Join(a.server.root, repo+".git")}
	for field, branch := range map[string]string{"head": in.Head, "base": in.Base} {
		if _, err := git.Try("rev-parse", "-q", "--verify", "refs/heads/"+branch); err != nil {
			invalid(w, map[string]any{"field": field, "code": "invalid"})
			return
		}
	}
	for _, p := range a.pulls {
		if p.State == "open" && p.Repo == repo && p.From == repo && p.Head == in.Head && p.Base == in.Base {
			invalid(w, map[string]any{"code": "custom", "message": "A pull request already exists for " + owner + ":" + in.Head + "."})
			return
		}
	}
	if n, err := git.Try("rev-list", "--count", in.Base+".."+in.Head); err != nil || strings.TrimSpace(n) == "0" {
		invalid(w, map[string]any{"code": "custom", "message": "No commits between " + in.Base + " and " + in.Head})
		return
	}
	p := a.add(Pull{Repo: repo, Head: in.Head, Base: in.Base, Title: in.Title, Text: in.Body})
	answer(w, http.StatusCreated, p.json())
}

package gitserver

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// repo is the repository that a request is about: owner/name.
func (r *request) repo() string { return r.call.InPath("owner") + "/" + r.call.InPath("repo") }

// pageSize is smaller than anybody asks for, so that pages are needed.
const pageSize = 2

func (a *API) list(w http.ResponseWriter, r *request) {
	q, repo := r.URL.Query(), r.repo()
	a.mu.Lock()
	defer a.mu.Unlock()
	found := []any{}
	for _, p := range a.pulls {
		owner, _, _ := strings.Cut(p.From, "/")
		chosen := (q.Get("head") == "" || q.Get("head") == owner+":"+p.Head) && (q.Get("base") == "" || q.Get("base") == p.Base)
		if p.Repo == repo && (q.Get("state") == "all" || p.State == "open") && (chosen || !a.filter) {
			found = append(found, a.show(p, a.example(r, http.StatusOK)))
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
	answer(w, http.StatusOK, found[from:to])
}

// show makes a pull request of an example of one.
func (a *API) show(p *Pull, example map[string]any) map[string]any {
	maps.Copy(example, map[string]any{"id": p.Number, "number": p.Number, "state": p.State, "title": p.Title, "body": p.Text,
		"url": fmt.Sprintf("%s/repos/%s/pulls/%d", a.URL, p.Repo, p.Number), "html_url": p.HTML,
		"created_at": time.Now().UTC().Format(time.RFC3339), "closed_at": nil, "merged_at": nil, "draft": false, "requested_teams": []any{},
		"head": showSide(example["head"], p.From, p.Head, p.From != p.Repo), "base": showSide(example["base"], p.Repo, p.Base, false)})
	return example
}

// showSide is one of the two branches of a pull request.
func showSide(example any, repo, ref string, fork bool) map[string]any {
	side := object(example)
	of, by := object(side["repo"]), object(side["user"])
	owner, name, _ := strings.Cut(repo, "/")
	maps.Copy(by, map[string]any{"login": owner, "id": 7, "type": "Organization"})
	maps.Copy(of, map[string]any{"id": 1, "name": name, "full_name": repo, "owner": by, "fork": fork})
	for _, shown := range []string{"network_count", "subscribers_count", "template_repository"} {
		delete(of, shown) // in the example, and not in what it is an example of
	}
	maps.Copy(side, map[string]any{"label": owner + ":" + ref, "ref": ref, "user": by, "repo": of})
	return side
}

// object is a copy of a value that is one.
func object(value any) map[string]any {
	o := map[string]any{}
	if given, ok := value.(map[string]any); ok {
		maps.Copy(o, given)
	}
	return o
}

func invalid(w http.ResponseWriter, what map[string]any) {
	what["resource"] = "PullRequest"
	answer(w, http.StatusUnprocessableEntity, map[string]any{"message": "Validation Failed", "errors": []any{what},
		"documentation_url": "https://docs.github.com/rest/pulls/pulls#create-a-pull-request"})
}

func (a *API) create(w http.ResponseWriter, r *request) {
	var in struct{ Title, Head, Base, Body string }
	r.decode(&in)
	// This much the description leaves to words.
	if in.Title == "" || in.Head == "" || in.Base == "" || len(in.Title) > 256 || len(in.Body) > 65536 {
		a.t.Errorf("%s: title %q, head %q, base %q, %d bytes of body", r.call.ID, in.Title, in.Head, in.Base, len(in.Body))
	}
	repo := r.repo()
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
	answer(w, http.StatusCreated, a.show(p, a.example(r, http.StatusCreated)))
}

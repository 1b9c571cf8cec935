package gitserver

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/wsmount/wsmount/integration/gitserver/internal/openapi"
)

// An API answers for the pull requests of a server's repositories as GitHub does:
// a request that does not fit GitHub's own description of its API fails the test,
// and so does an answer, where there is the description. What an answer holds that nobody here knows is that of
// the description's example.
type API struct {
	URL string // without a slash at its end

	t         T
	described *openapi.Description // nil: nothing is held to it
	server    *Server
	app       *App

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
	Status  int
	Header  map[string]string
	Body    string
	Foreign bool // not GitHub's: a proxy's, or that of something broken
}

const apiPath = "/api/v3"

func (s *Server) startAPI(t T, d *openapi.Description) *API {
	a := &API{URL: s.URL + apiPath, t: t, described: d, server: s, filter: true}
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

// A request is one that fits the description, and its body.
type request struct {
	*http.Request
	call *openapi.Call
	body []byte
}

func (a *API) serve(w http.ResponseWriter, r *http.Request, accepts func(password string) bool) {
	in, err := a.fitting(r)
	if err != nil {
		a.t.Errorf("the API was asked %s %s: %v", r.Method, r.URL.RequestURI(), err)
		answer(w, http.StatusTeapot, map[string]any{"message": "this is not what GitHub documents"})
		return
	}
	out := httptest.NewRecorder()
	foreign := a.handle(out, in, accepts)
	if err := in.call.Answer(out.Code, out.Header(), out.Body.Bytes()); err != nil && !foreign {
		a.t.Errorf("the API was to answer %s %s: %v", r.Method, r.URL.RequestURI(), err)
	}
	maps.Copy(w.Header(), out.Header())
	w.WriteHeader(out.Code)
	_, _ = w.Write(out.Body.Bytes()) // who asks hears of a connection that broke
}

// fitting is a request, if it fits the description and what GitHub says of
// headers, which no description holds.
func (a *API) fitting(r *http.Request) (*request, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	asked := r.Clone(r.Context())
	asked.URL.Path, asked.URL.RawPath = strings.TrimPrefix(r.URL.Path, apiPath), ""
	call, err := a.callOf(asked, body)
	if err != nil {
		return nil, err
	}
	for _, header := range []struct {
		name     string
		optional bool
		fits     func(value string) bool
		want     string
	}{
		{"Accept", false, func(v string) bool { return strings.HasPrefix(v, "application/vnd.github") }, "application/vnd.github+json or the like"},
		{"User-Agent", false, func(v string) bool { return v != "" && !strings.HasPrefix(v, "Go-http-client") }, "who asks"},
		{"Authorization", false, func(v string) bool { return v != "" }, "credentials"},
		{"X-GitHub-Api-Version", true, func(v string) bool { return v == describedVersion }, describedVersion},
	} {
		value := r.Header.Get(header.name)
		if left := value == "" && header.optional; !left && !header.fits(value) {
			return nil, fmt.Errorf("%s: header %s is %q, want %s", call.ID, header.name, value, header.want)
		}
	}
	return &request{r, call, body}, nil
}

// callOf finds the operation that a request is of.
func (a *API) callOf(r *http.Request, body []byte) (*openapi.Call, error) {
	if a.described != nil {
		return a.described.Request(r, body)
	}
	mux, names := http.NewServeMux(), map[string]string{
		"GET /repos/{owner}/{repo}/pulls":                         "pulls/list",
		"POST /repos/{owner}/{repo}/pulls":                        "pulls/create",
		"POST /app/installations/{installation_id}/access_tokens": "apps/create-installation-access-token",
	}
	for pattern := range names {
		mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) {})
	}
	_, pattern := mux.Handler(r)
	if pattern == "" {
		return nil, fmt.Errorf("%s %s: nobody here answers that", r.Method, r.URL.Path)
	}
	path := map[string]string{}
	given := strings.Split(r.URL.Path, "/")
	for i, part := range strings.Split(pattern, "/") {
		if strings.HasPrefix(part, "{") {
			path[strings.Trim(part, "{}")] = given[i]
		}
	}
	return openapi.Undescribed(names[pattern], path), nil
}

// describedVersion is the version of the API that the description is of, and the
// one that who names none gets.
const describedVersion = "2022-11-28"

// handle answers a request that fits. foreign: what a test had it answer is not
// GitHub's.
func (a *API) handle(w http.ResponseWriter, r *request, accepts func(password string) bool) (foreign bool) {
	if r.call.ID == "apps/create-installation-access-token" {
		a.app.mint(w, r)
		return false
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); !ok || !accepts(token) {
		answer(w, http.StatusUnauthorized, map[string]any{"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest"})
		return false
	}
	a.mu.Lock()
	fail := a.fail
	a.mu.Unlock()
	if fail != nil {
		if given := fail(r.Request); given != nil {
			given.send(w)
			return given.Foreign
		}
	}
	switch r.call.ID {
	case "pulls/list":
		a.list(w, r)
	case "pulls/create":
		a.create(w, r)
	default:
		a.t.Errorf("nobody here answers %s", r.call.ID)
	}
	return false
}

func (x *Answer) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", jsonType)
	for k, v := range x.Header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(x.Status)
	fmt.Fprint(w, x.Body)
}

const jsonType = "application/json; charset=utf-8"

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // plain values; who asks hears of a connection that broke
}

// decode reads a body, whose fields are known to have their types.
func (r *request) decode(into any) { _ = json.Unmarshal(r.body, into) }

// example is an object like those that GitHub answers with.
func (a *API) example(r *request, status int) map[string]any {
	found, err := r.call.Example(status)
	if list, ok := found.([]any); ok && len(list) > 0 {
		found = list[0]
	}
	object, ok := found.(map[string]any)
	if !ok {
		a.t.Errorf("no object: %T, %v", found, err)
	}
	return maps.Clone(object)
}

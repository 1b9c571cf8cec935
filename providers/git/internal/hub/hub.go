// Package hub speaks with the API of a server that knows pull requests: GitHub,
// GitHub Enterprise, and Gitea, whose API has the same requests.
//
// It knows that API through go-github, and the kinds of package providers for its errors. Each
// operation asks for its credentials anew; they are in the header of its requests and nowhere
// else. A GET may be redirected within the server, a change is not.
//
//	h, err := hub.New(hub.Options{URL: "https://api.github.com", Owner: "acme", Repo: "ops", Credentials: reveal})
//	url, err := h.Ensure(ctx, "topic", "main", "a title", "why")
package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/google/go-github/v88/github"

	"github.com/wsmount/wsmount/providers"
)

// Options: URL, Owner and Repo are required.
type Options struct {
	URL         string // of the API, without user and query
	Owner, Repo string
	// Credentials reveals the fields token, or username and password.
	Credentials func(ctx context.Context) (map[string]string, error)
	Transport   http.RoundTripper // nil: http.DefaultTransport
}

// Hub is a repository at an API. All methods may be used at once.
type Hub struct{ o Options }

// New is the repository at an API. No request is sent yet.
func New(o Options) *Hub {
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	return &Hub{o}
}

// client is for one operation.
func (h *Hub) client(ctx context.Context) (*github.Client, error) {
	if h.o.Credentials == nil {
		return nil, fmt.Errorf("a pull request needs credentials: %w", providers.ErrUnauthenticated)
	}
	fields, err := h.o.Credentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", providers.ErrUnauthenticated, err)
	}
	t := &transport{next: polite{h.o.Transport}, token: fields["token"], user: fields["username"], password: fields["password"]}
	base := strings.TrimRight(h.o.URL, "/") + "/"
	return github.NewClient(github.WithURLs(&base, nil), github.WithHTTPClient(&http.Client{Transport: t, CheckRedirect: within}))
}

// within lets a GET follow a redirect within the same server. net/http has turned a redirected
// change into a GET before this is called, so the first request counts.
func within(next *http.Request, via []*http.Request) error {
	first := via[0]
	if first.Method != http.MethodGet || next.URL.Host != first.URL.Host || next.URL.Scheme != first.URL.Scheme || len(via) > 3 {
		return fmt.Errorf("the API redirects to %s, which is not followed: %w", next.URL.Host, providers.ErrPermission)
	}
	return nil
}

// transport adds the credentials.
type transport struct {
	next                  http.RoundTripper
	token, user, password string
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if t.token != "" {
		r.Header.Set("Authorization", "Bearer "+t.token)
	} else {
		r.SetBasicAuth(t.user, t.password)
	}
	return t.next.RoundTrip(r)
}

// polite names the client, as GitHub demands, and bounds the size of an answer.
type polite struct{ next http.RoundTripper }

// answerMax is more than a page of any answer of the API.
const answerMax = 32 << 20

func (p polite) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", "wsmount")
	resp, err := p.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, answerMax)
	if resp.StatusCode/100 != 2 {
		return resp, nil
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err := isAnswer(r, resp, body); err != nil {
		return nil, err
	}
	return resp, nil
}

// isAnswer is the error for a success that is not the API's. A login page, a maintenance page or
// a proxy answers everything with a page of its own, and an empty one would be taken for a list
// without entries. Every GET of this package is for a list, and a change is answered with the
// object that it made.
func isAnswer(r *http.Request, resp *http.Response, body []byte) error {
	begin := byte('{')
	if r.Method == http.MethodGet {
		begin = '['
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "application/json" && !strings.HasSuffix(kind, "+json") || !json.Valid(body) || bytes.TrimSpace(body)[0] != begin {
		return foreign(fmt.Sprintf("status %d, type %q", resp.StatusCode, resp.Header.Get("Content-Type")))
	}
	return nil
}

// Ensure finds the open pull request from one branch to another or opens it, and
// gives its URL; "" when there is nothing between the two.
func (h *Hub) Ensure(ctx context.Context, head, base, title, text string) (string, error) {
	c, err := h.client(ctx)
	if err != nil {
		return "", err
	}
	url, err := h.find(ctx, c, head, base)
	if err != nil || url != "" {
		return url, translate(ctx, err)
	}
	made, _, err := c.PullRequests.Create(ctx, h.o.Owner, h.o.Repo, &github.NewPullRequest{Title: &title, Head: &head, Base: &base, Body: &text})
	switch what := outcome(err); what {
	case opened:
		if made.GetHTMLURL() == "" {
			return "", foreign("the answer is no pull request")
		}
		return made.GetHTMLURL(), nil
	case nothing:
		return "", nil
	case already: // another client was faster, or this one was and the answer got lost
		url, again := h.find(ctx, c, head, base)
		if again == nil && url == "" {
			again = err // the server says it exists, and does not list it
		}
		return url, translate(ctx, again)
	}
	return "", translate(ctx, err)
}

// pagesMax bounds the search where a server cannot filter by branch.
const pagesMax = 50

// find looks for the open pull request. The server's choice is checked again:
// Gitea knows no filter by head, and a fork may have a branch of the same name.
func (h *Hub) find(ctx context.Context, c *github.Client, head, base string) (string, error) {
	o := &github.PullRequestListOptions{State: "open", Head: h.o.Owner + ":" + head, Base: base, ListOptions: github.ListOptions{PerPage: 100}}
	for range pagesMax {
		list, resp, err := c.PullRequests.List(ctx, h.o.Owner, h.o.Repo, o)
		if err != nil {
			return "", err
		}
		for _, pr := range list {
			if pr.GetNumber() == 0 || pr.GetHTMLURL() == "" {
				return "", foreign("a list is not of pull requests")
			}
			if pr.GetHead().GetRef() == head && pr.GetBase().GetRef() == base && isWithin(pr) {
				return pr.GetHTMLURL(), nil
			}
		}
		if resp.NextPage == 0 {
			return "", nil
		}
		o.Page = resp.NextPage
	}
	return "", nil
}

// isWithin reports whether a pull request's branch is in the repository itself,
// whose name may be another than it is asked for by.
func isWithin(pr *github.PullRequest) bool {
	from, to := pr.GetHead().GetRepo().GetFullName(), pr.GetBase().GetRepo().GetFullName()
	return from != "" && strings.EqualFold(from, to)
}

// Outcomes of an attempt to open a pull request.
const (
	failed = iota
	opened
	already
	nothing
)

// outcome tells the errors that are no failure: GitHub has one status for all, and words.
func outcome(err error) int {
	var e *github.ErrorResponse
	switch {
	case err == nil:
		return opened
	case !errors.As(err, &e) || e.Response == nil:
		return failed
	}
	said := strings.ToLower(e.Message)
	for _, one := range e.Errors {
		said += "\n" + strings.ToLower(one.Message)
	}
	status := e.Response.StatusCode
	switch {
	case status == http.StatusConflict || status == http.StatusUnprocessableEntity && strings.Contains(said, "pull request already exists"):
		return already
	case status == http.StatusUnprocessableEntity && strings.Contains(said, "no commits between"):
		return nothing
	}
	return failed
}

package lfs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// The operations of the API.
const (
	Download = "download"
	Upload   = "upload"
)

// Options: Find is required.
type Options struct {
	// Find is the API's endpoint for an operation. ErrNotOffered: there is none.
	Find      func(ctx context.Context, operation string) (Endpoint, error)
	Transport http.RoundTripper // nil: http.DefaultTransport
	Now       func() time.Time  // nil: time.Now
}

// Endpoint is the address of an API.
type Endpoint struct {
	URL    string            // to which /objects/batch is added
	Header map[string]string // of each request to it
	Until  time.Time         // when it is to be found anew; zero: not told
}

// ParseEndpoint reads a server's answer to git-lfs-authenticate.
func ParseEndpoint(text []byte, now time.Time) (Endpoint, error) {
	var a action
	if err := json.Unmarshal(text, &a); err != nil {
		return Endpoint{}, foreign("the server's git-lfs-authenticate does not answer in JSON: %v", err)
	}
	err := a.check(now)
	return Endpoint{a.Href, a.Header, a.until}, err
}

// ErrNotOffered says that a server has no LFS.
var ErrNotOffered = errors.New("the server does not offer LFS")

// Client asks one API. All methods may be used at once.
type Client struct {
	o    Options
	asks *http.Client // the API, and for objects
	puts *http.Client

	mu    sync.Mutex        // guards all below
	known map[string]action // downloads, by OID, until they expire
}

// New is the client of an API. No request is sent yet.
func New(o Options) *Client {
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Client{o: o, known: map[string]action{},
		asks: &http.Client{Transport: o.Transport, CheckRedirect: follow},
		puts: &http.Client{Transport: o.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

const hopsMax = 5

// follow lets a request follow a redirect. Headers meant for one server are not sent to another:
// net/http removes only those that it knows.
func follow(next *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > hopsMax, next.Method != first.Method, first.URL.Scheme == "https" && next.URL.Scheme != "https":
		return &Error{Kind: providers.ErrPermission, Says: "a redirect to " + origin(next.URL) + " is not followed"}
	case origin(next.URL) != origin(first.URL):
		maps.DeleteFunc(next.Header, func(name string, _ []string) bool { return !slices.Contains(plain, name) })
	}
	return nil
}

// plain are the headers that tell nothing about the client.
var plain = []string{"Accept", "Accept-Encoding", "Content-Type", "Range", "User-Agent"}

// action is a link in an answer, with the headers for its request.
type action struct {
	Href      string            `json:"href"`
	Header    map[string]string `json:"header"`
	ExpiresIn int64             `json:"expires_in"` // seconds; it counts before ExpiresAt
	ExpiresAt time.Time         `json:"expires_at"`

	until time.Time // zero: not told
	url   *url.URL
}

type (
	question struct {
		Operation string   `json:"operation"`
		Transfers []string `json:"transfers"`
		Ref       *ref     `json:"ref,omitempty"`
		Objects   []object `json:"objects"`
		HashAlgo  string   `json:"hash_algo"`
	}
	ref struct {
		Name string `json:"name"`
	}
	object struct {
		OID     string             `json:"oid"`
		Size    int64              `json:"size"`
		Actions map[string]*action `json:"actions,omitempty"`
		Error   *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error,omitempty"`
	}
	answer struct {
		Transfer string   `json:"transfer"`
		HashAlgo string   `json:"hash_algo"`
		Objects  []object `json:"objects"`
		Message  string   `json:"message"`
	}
)

const (
	mediaType = "application/vnd.git-lfs+json"
	answerMax = 8 << 20 // bytes: more than for any batch
	batchMax  = 100     // objects; the API names no limit, and some servers have one
)

// Offered reports whether the server offers LFS, asked by an object. With an error the answer is
// unknown: the server was unreachable. A server that refuses the request is taken to offer it.
func (c *Client) Offered(ctx context.Context, p Pointer) (bool, error) {
	_, err := c.batch(ctx, Download, "", []Pointer{p})
	switch {
	case err == nil, errors.Is(err, providers.ErrPermission), errors.Is(err, providers.ErrUnauthenticated), errors.Is(err, providers.ErrQuota):
		return true, nil
	case errors.Is(err, ErrNotOffered):
		return false, nil
	}
	return false, err
}

// batch asks about objects; the answer has them in the same order.
func (c *Client) batch(ctx context.Context, operation, branch string, of []Pointer) ([]object, error) {
	at, err := c.o.Find(ctx, operation)
	if err != nil {
		return nil, err
	}
	q := question{Operation: operation, Transfers: []string{"basic"}, HashAlgo: "sha256"}
	if branch != "" {
		q.Ref = &ref{branch}
	}
	for _, p := range of {
		q.Objects = append(q.Objects, object{OID: p.OID, Size: p.Size})
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	client := c.asks
	if operation == Upload {
		client = c.puts
	}
	a, err := c.ask(ctx, client, at, body)
	if err != nil {
		return nil, err
	}
	return c.read(a, of)
}

// ask sends one batch.
func (c *Client) ask(ctx context.Context, client *http.Client, at Endpoint, body []byte) (a answer, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(at.URL, "/")+"/objects/batch", bytes.NewReader(body))
	if err != nil {
		return a, &Error{Kind: providers.ErrInvalid, Says: "the address of LFS is not a URL"} // it may hold credentials
	}
	set(req, at.Header)
	req.Header.Set("Accept", mediaType)
	req.Header.Set("Content-Type", mediaType)
	resp, err := client.Do(req)
	if err != nil {
		return a, failed(ctx, "the API of LFS", req.URL, err)
	}
	defer resp.Body.Close()
	isJSON := hasJSON(resp)
	if isJSON {
		if err := json.NewDecoder(io.LimitReader(resp.Body, answerMax)).Decode(&a); err != nil && resp.StatusCode == http.StatusOK {
			return a, firstOf(ctx.Err(), foreign("the API of LFS at %s: the answer is not JSON: %v", origin(req.URL), err))
		}
	}
	switch resp.StatusCode {
	case http.StatusOK:
		if isJSON {
			return a, nil
		}
		return a, foreign("the API of LFS at %s: the answer is not the API's, but that of a login page, a proxy or the like: type %q", origin(req.URL), resp.Header.Get("Content-Type"))
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusNotImplemented:
	default:
		return a, answered("the API of LFS at "+origin(req.URL), resp.StatusCode, a.Message)
	}
	// A server without the API answers like that.
	return a, &Error{Kind: providers.ErrUnsupported, Code: fmt.Sprint(resp.StatusCode), Err: ErrNotOffered,
		Says: line(fmt.Sprintf("%s does not offer LFS: status %d %s", origin(req.URL), resp.StatusCode, a.Message))}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func hasJSON(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == mediaType || kind == "application/json"
}

// set gives a request the headers that an answer names for it.
func set(req *http.Request, header map[string]string) {
	for name, value := range header {
		req.Header.Set(name, value)
	}
	req.Header.Set("User-Agent", "wsmount")
}

// read checks an answer.
func (c *Client) read(a answer, of []Pointer) ([]object, error) {
	if a.Transfer != "" && a.Transfer != "basic" || a.HashAlgo != "" && a.HashAlgo != "sha256" {
		return nil, &Error{Kind: providers.ErrUnsupported, Says: line(fmt.Sprintf("the API of LFS wants the transfer %q with the hash %q", a.Transfer, a.HashAlgo))}
	}
	by := map[string]object{}
	for _, o := range a.Objects {
		by[o.OID] = o
	}
	all := make([]object, len(of))
	for i, p := range of {
		o, ok := by[p.OID]
		if !ok || o.Error == nil && o.Size != p.Size {
			return nil, foreign("the API of LFS does not answer for %s of %d bytes", p.OID, p.Size)
		}
		for name, act := range o.Actions {
			if err := act.check(c.o.Now()); err != nil {
				return nil, fmt.Errorf("%s of %s: %w", name, p.OID, err)
			}
		}
		all[i] = o
	}
	return all, nil
}

// soon is how long before its end a link is no longer used.
const soon = 10 * time.Second

func (a *action) check(now time.Time) (err error) {
	if a == nil {
		return damaged("the API of LFS has a link that is null")
	}
	a.url, err = url.Parse(a.Href)
	if err != nil || a.url.Host == "" || a.url.Scheme != "https" && a.url.Scheme != "http" {
		return damaged("the API of LFS has a link that is no URL of http")
	}
	switch {
	case a.ExpiresIn != 0:
		a.until = now.Add(time.Duration(a.ExpiresIn) * time.Second)
	case !a.ExpiresAt.IsZero():
		a.until = a.ExpiresAt
	}
	return nil
}

// lasts reports whether a link can still be used.
func (c *Client) lasts(a action) bool {
	return a.until.IsZero() || c.o.Now().Add(soon).Before(a.until)
}

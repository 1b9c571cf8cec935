package gitserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// An LFS is the side of a server that has large files: the Batch API, and at another
// origin the storage that its answers lead to. It takes nothing that git-lfs does not
// document, and shows no object of which the upload was not verified: a request that
// is wrong fails the test.
type LFS struct {
	Storage string // the origin of the storage

	t       T
	storage *httptest.Server

	mu       sync.Mutex // guards what follows
	objects  map[string]*stored
	tickets  map[string]ticket
	life     time.Duration
	fail     func(r *http.Request) *Answer
	requests []string
}

type stored struct {
	content  []byte
	verified bool
}

// A ticket lets who has it do one thing at the storage.
type ticket struct {
	method, oid string
	until       time.Time
}

var lfsPath = regexp.MustCompile(`^/(.+)\.git/info/lfs/(.+)$`)

// StartLFS has a server offer LFS for all its repositories, which share objects.
func (s *Server) StartLFS(t T) *LFS {
	t.Helper()
	l := &LFS{t: t, objects: map[string]*stored{}, tickets: map[string]ticket{}, life: time.Hour}
	l.storage = httptest.NewServer(http.HandlerFunc(l.store))
	l.Storage = l.storage.URL
	t.Cleanup(l.storage.Close)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lfs = l
	return l
}

// StopLFS has the server offer LFS no more: it answers like one that never did.
func (s *Server) StopLFS() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lfs = nil
}

func (s *Server) offersLFS() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lfs != nil
}

var lfsAsked = regexp.MustCompile(`^'?/?([A-Za-z0-9/._-]+)'? (download|upload)$`)

// authenticate answers git-lfs-authenticate, with what the API asks for.
func (s *Server) authenticate(asked string, out io.Writer) (status uint32) {
	at := lfsAsked.FindStringSubmatch(asked)
	if at == nil {
		return 1
	}
	s.mu.Lock()
	token := base64.StdEncoding.EncodeToString([]byte("ssh:" + s.token))
	s.mu.Unlock()
	_ = json.NewEncoder(out).Encode(map[string]any{"href": s.URL + "/" + at[1] + "/info/lfs", // who asks hears of a connection that broke
		"header": map[string]string{"Authorization": "Basic " + token}, "expires_in": 3600})
	return 0
}

// Put makes an object, and gives the text of its pointer.
func (l *LFS) Put(content string) (pointer string) {
	oid := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.objects[oid] = &stored{[]byte(content), true}
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oid, len(content))
}

// Objects are those that were verified, by their hash.
func (l *LFS) Objects() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]string{}
	for oid, o := range l.objects {
		if o.verified {
			all[oid] = string(o.content)
		}
	}
	return all
}

// Drop loses an object of a content.
func (l *LFS) Drop(content string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.objects, fmt.Sprintf("%x", sha256.Sum256([]byte(content))))
}

// Spoil changes an object of a content, and not its size.
func (l *LFS) Spoil(content string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.objects[fmt.Sprintf("%x", sha256.Sum256([]byte(content)))].content = bytes.Repeat([]byte("?"), len(content))
}

// Fail sees each request that is right, to the API and to the storage, and may
// answer it; nil: none does.
func (l *LFS) Fail(f func(r *http.Request) *Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = f
}

// Life is how long links are good for, from now on.
func (l *LFS) Life(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.life = d
}

// Forget has no link be good any more.
func (l *LFS) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.tickets)
}

// Requests are what was asked of the API and the storage since it was last told:
// method, the last part of the path, and what part of the content.
func (l *LFS) Requests() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.requests
	l.requests = nil
	return was
}

// wrong fails the test, and the request.
func (l *LFS) wrong(w http.ResponseWriter, r *http.Request, format string, args ...any) {
	l.t.Errorf("LFS was asked %s %s: %s", r.Method, r.URL.Path, fmt.Sprintf(format, args...))
	l.answer(w, http.StatusTeapot, map[string]any{"message": "this is not what git-lfs documents"})
}

const lfsType = "application/vnd.git-lfs+json"

func (l *LFS) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", lfsType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // plain values; who asks hears of a connection that broke
}

// refuses notes a request, and answers it if the test wants that.
func (l *LFS) refuses(w http.ResponseWriter, r *http.Request, what string) bool {
	l.mu.Lock()
	l.requests = append(l.requests, strings.TrimSpace(r.Method+" "+what+" "+r.Header.Get("Range")))
	fail := l.fail
	l.mu.Unlock()
	if fail == nil {
		return false
	}
	x := fail(r)
	if x == nil {
		return false
	}
	w.Header().Set("Content-Type", lfsType)
	for k, v := range x.Header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(x.Status)
	fmt.Fprint(w, x.Body)
	return true
}

// isJSON reports whether a header names the type of the API.
func isJSON(header string) bool {
	kind, _, _ := strings.Cut(header, ";")
	return kind == lfsType
}

// serve is the API, for who may use the repository.
func (l *LFS) serve(w http.ResponseWriter, r *http.Request, what string) {
	switch {
	case what == "locks/verify" && r.Method == http.MethodPost: // which git-lfs takes for a server without locks
		l.answer(w, http.StatusNotFound, map[string]any{"message": "there are no locks"})
		return
	case what != "objects/batch" && !strings.HasPrefix(what, "verify/") || r.Method != http.MethodPost || len(r.URL.RawQuery) > 0:
		l.wrong(w, r, "there is nothing here")
		return
	case !isJSON(r.Header.Get("Accept")) || !isJSON(r.Header.Get("Content-Type")) || r.Header.Get("User-Agent") == "":
		l.wrong(w, r, "Accept %q, Content-Type %q, User-Agent %q", r.Header.Get("Accept"), r.Header.Get("Content-Type"), r.Header.Get("User-Agent"))
		return
	}
	if l.refuses(w, r, what[:strings.IndexByte(what, '/')]) {
		return
	}
	if oid, ok := strings.CutPrefix(what, "verify/"); ok {
		l.verify(w, r, oid)
		return
	}
	l.batch(w, r)
}

type lfsObject struct {
	OID     string         `json:"oid"`
	Size    int64          `json:"size"`
	Actions map[string]any `json:"actions,omitempty"`
	Error   map[string]any `json:"error,omitempty"`
}

var lfsOID = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (l *LFS) batch(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Operation string
		Transfers []string
		Ref       *struct{ Name string }
		Objects   []lfsObject
		HashAlgo  string `json:"hash_algo"`
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(&in)
	upload := in.Operation == "upload"
	switch {
	case err != nil, !upload && in.Operation != "download", !slices.Contains(in.Transfers, "basic"), in.HashAlgo != "" && in.HashAlgo != "sha256",
		len(in.Objects) == 0, len(in.Objects) > 100, in.Ref != nil && !strings.HasPrefix(in.Ref.Name, "refs/heads/"):
		l.wrong(w, r, "%v: %+v", err, in)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range in.Objects {
		o := &in.Objects[i]
		if !lfsOID.MatchString(o.OID) || o.Size < 0 || o.Actions != nil || o.Error != nil {
			l.wrong(w, r, "object %+v", *o)
			return
		}
		is := l.objects[o.OID]
		if is != nil && !is.verified {
			is = nil
		}
		switch {
		case is != nil && int64(len(is.content)) != o.Size:
			o.Error = map[string]any{"code": http.StatusUnprocessableEntity, "message": "the size is another"}
		case upload && is == nil:
			o.Actions = map[string]any{"upload": l.link(http.MethodPut, o.OID),
				"verify": map[string]any{"href": "http://" + r.Host + strings.TrimSuffix(r.URL.Path, "objects/batch") + "verify/" + o.OID, "header": l.credentials(r)}}
		case upload:
		case is == nil:
			o.Error = map[string]any{"code": http.StatusNotFound, "message": "Object does not exist"}
		default:
			o.Actions = map[string]any{"download": l.link(http.MethodGet, o.OID)}
		}
	}
	l.answer(w, http.StatusOK, map[string]any{"transfer": "basic", "objects": in.Objects, "hash_algo": "sha256"})
}

// credentials are those of a request, for a link to the same server.
func (l *LFS) credentials(r *http.Request) map[string]string {
	if a := r.Header.Get("Authorization"); a != "" {
		return map[string]string{"Authorization": a}
	}
	return nil
}

// link is one to the storage. mu is held.
func (l *LFS) link(method, oid string) map[string]any {
	name := fmt.Sprintf("RemoteAuth %d", len(l.tickets)+1)
	l.tickets[name] = ticket{method, oid, time.Now().Add(l.life)}
	return map[string]any{"href": l.Storage + "/objects/" + oid, "header": map[string]string{"Authorization": name, "X-Kind": "ticket"},
		"expires_in": int64(l.life / time.Second)}
}

func (l *LFS) verify(w http.ResponseWriter, r *http.Request, oid string) {
	var in lfsObject
	err := json.NewDecoder(r.Body).Decode(&in)
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.objects[oid]
	if err == nil && in.OID == oid && o == nil {
		l.answer(w, http.StatusNotFound, map[string]any{"message": "it was not uploaded"})
		return
	}
	if err != nil || in.OID != oid || int64(len(o.content)) != in.Size {
		l.wrong(w, r, "%v: %+v", err, in)
		return
	}
	o.verified = true
	w.WriteHeader(http.StatusOK)
}

// store is the storage, which knows tickets and nobody's password.
func (l *LFS) store(w http.ResponseWriter, r *http.Request) {
	oid, ok := strings.CutPrefix(r.URL.Path, "/objects/")
	if !ok || r.Header.Get("X-Kind") != "ticket" {
		l.wrong(w, r, "X-Kind %q", r.Header.Get("X-Kind"))
		return
	}
	if l.refuses(w, r, "object") {
		return
	}
	name := r.Header.Get("Authorization")
	l.mu.Lock()
	t := l.tickets[name]
	l.mu.Unlock()
	switch {
	case strings.HasPrefix(name, "Basic"):
		l.wrong(w, r, "with the credentials of git")
	case t.oid != oid || t.method != r.Method || time.Now().After(t.until):
		http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
	case r.Method == http.MethodPut:
		l.receive(w, r, oid)
	default:
		l.send(w, r, oid)
	}
}

func (l *LFS) receive(w http.ResponseWriter, r *http.Request, oid string) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(content)); got != oid || r.ContentLength != int64(len(content)) || r.Header.Get("Content-Type") == "" {
		l.wrong(w, r, "content %s of type %q, %d bytes said", got, r.Header.Get("Content-Type"), r.ContentLength)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.objects[oid] == nil {
		l.objects[oid] = &stored{content: content}
	}
	w.WriteHeader(http.StatusOK)
}

func (l *LFS) send(w http.ResponseWriter, r *http.Request, oid string) {
	l.mu.Lock()
	o := l.objects[oid]
	l.mu.Unlock()
	if o == nil || !o.verified {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(o.content))
}

// Package gcsserver is Google Cloud Storage with one bucket in memory, for tests.
//
// It follows the service's documentation where a program can rely on it: generations,
// preconditions of both, the rules of patch, rewrite, compose and listings. It knows nothing
// of who uses it, and lies outside internal, because the tests of the provider use it as
// well as those of the program.
//
//	server := gcsserver.Start(t) // at server.Endpoint
//
// Beside it is an Emulator, which is another's.
package gcsserver

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Bucket is the name of the one that there is.
const Bucket = "files"

// Server is the service. What a test sets while requests come, it sets in Set.
type Server struct {
	Endpoint string // set by Start

	Versioned bool   // keeps what is replaced or deleted
	Slow      bool   // a rewrite takes two requests
	Missing   bool   // there is no bucket
	PageMax   int    // the largest page; 0: a thousand
	Token     string // that a request must have; "": any
	Careless  string // what ignores conditions
	// Before is asked before each request. true: it has answered; nil: nothing comes between.
	Before func(w http.ResponseWriter, r *http.Request, op string) bool

	mu      sync.Mutex // guards all of it
	objects map[string]*Object
	past    []*Object
	uploads map[string]*session
	last    int64 // generation
	seen    []string
}

// Object is one as the service describes it.
type Object struct {
	Kind           string    `json:"kind"`
	Name           string    `json:"name"`
	Size           int64     `json:"size,string"`
	Generation     int64     `json:"generation,string"`
	Metageneration int64     `json:"metageneration,string"`
	TimeCreated    time.Time `json:"timeCreated"`
	MD5Hash        string    `json:"md5Hash,omitempty"`
	MediaLink      string    `json:"mediaLink,omitempty"` // of a server that listens
	// What a client says.
	ContentType        string            `json:"contentType,omitempty"`
	CacheControl       string            `json:"cacheControl,omitempty"`
	ContentDisposition string            `json:"contentDisposition,omitempty"`
	ContentEncoding    string            `json:"contentEncoding,omitempty"`
	ContentLanguage    string            `json:"contentLanguage,omitempty"`
	StorageClass       string            `json:"storageClass,omitempty"`
	Metadata           map[string]string `json:"metadata,omitempty"`

	content []byte
}

// New is an empty bucket that nobody reaches but by ServeHTTP.
func New() *Server { return &Server{objects: map[string]*Object{}, uploads: map[string]*session{}} }

// Start serves an empty bucket until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := New()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	s.Endpoint = web.URL
	return s
}

// Set changes what the server does from now on.
func (s *Server) Set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Seen are the operations that were asked for.
func (s *Server) Seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// refused is an answer that is no success.
type refused struct {
	status       int
	reason, text string
}

var (
	noSource     = &refused{http.StatusNotFound, "notFound", "Object k (generation: 0) not found."}
	noSuchObject = &refused{http.StatusNotFound, "notFound", "No such object: b/k"}
	noSuchBucket = &refused{http.StatusNotFound, "notFound", "The specified bucket does not exist."}
	notMet       = &refused{http.StatusPreconditionFailed, "conditionNotMet", "At least one of the pre-conditions you specified did not hold."}
)

func badRequest(text string) *refused {
	return &refused{http.StatusBadRequest, "invalid", text}
}

var xmlCodes = map[*refused]string{noSuchObject: "NoSuchKey", noSuchBucket: "NoSuchBucket", notMet: "PreconditionFailed"}

// Put keeps an object that another wrote.
func (s *Server) Put(key, content string, metadata map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(key, []byte(content), Object{Metadata: metadata}, true)
}

// PutPacked makes an object that is stored packed.
func (s *Server) PutPacked(key, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(key, []byte(content), Object{ContentEncoding: "gzip"}, true)
}

// Get is an object's content and its metadata; "" and nil: it is not there.
func (s *Server) Get(key string) (content string, metadata map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[key]
	if o == nil {
		return "", nil
	}
	return string(o.content), maps.Clone(o.Metadata)
}

// etag is an object's version, "" of none.
func (o *Object) etag() string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf("%d.%d", o.Generation, o.Metageneration)
}

// ETags are the versions of all objects.
func (s *Server) ETags() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for key, o := range s.objects {
		all[key] = o.etag()
	}
	return all
}

// Replace makes an object in the place of one that has a version, or of none for "". It
// reports false if there is another.
func (s *Server) Replace(key, etag, content string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[key].etag() != etag {
		return false
	}
	s.keep(key, []byte(content), Object{}, true)
	return true
}

// Remove deletes an object.
func (s *Server) Remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retire(key)
}

// Keys are those of all objects.
func (s *Server) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Resource is an object as answers describe it.
func (s *Server) Resource(key string) (text string, err error) {
	s.Set(func() {
		var b []byte
		b, err = json.Marshal(s.objects[key])
		text = string(b)
	})
	return text, err
}

// keep makes a new generation.
func (s *Server) keep(key string, content []byte, said Object, hasMD5 bool) *Object {
	s.retire(key)
	s.last++
	o := &said
	o.Kind, o.Name, o.Size, o.Generation, o.Metageneration = "storage#object", key, int64(len(content)), 1_700_000_000_000_000+s.last, 1
	o.TimeCreated, o.content, o.MD5Hash, o.MediaLink = time.Now().UTC(), content, "", ""
	if s.Endpoint != "" {
		o.MediaLink = s.Endpoint + "/" + Bucket + "/" + url.PathEscape(key)
	}
	if hasMD5 {
		sum := md5.Sum(content)
		o.MD5Hash = base64.StdEncoding.EncodeToString(sum[:])
	}
	o.ContentType = cmp.Or(o.ContentType, "application/octet-stream")
	o.StorageClass = cmp.Or(o.StorageClass, "STANDARD")
	s.objects[key] = o
	return o
}

func (s *Server) retire(key string) {
	if o := s.objects[key]; o != nil && s.Versioned {
		s.past = append(s.past, o)
	}
	delete(s.objects, key)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away, and nothing is kept
	}
	w.Header().Set("X-Guploader-Uploadid", "fake")
	c := &call{s: s, r: r, q: r.URL.Query(), body: body, w: w}
	s.serve(c)
	if c.content != nil {
		_, _ = w.Write(c.content) // without the lock: who reads it may ask for something else first
	}
}

func (s *Server) serve(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op, run := c.route()
	c.op = op
	s.seen = append(s.seen, op)
	if s.Before != nil && s.Before(c.w, c.r, op) {
		return
	}
	switch {
	case s.Token != "" && c.r.Header.Get("Authorization") != "Bearer "+s.Token:
		c.refuse(&refused{http.StatusUnauthorized, "authError", "Invalid Credentials"})
	case s.Missing:
		c.refuse(noSuchBucket)
	default:
		if refusal := run(); refusal != nil {
			c.refuse(refusal)
		}
	}
}

// call is one request.
type call struct {
	s       *Server
	r       *http.Request
	q       url.Values
	body    []byte
	content []byte // of an object, to be sent
	w       http.ResponseWriter
	op      string
}

const objectsPath = "/storage/v1/b/" + Bucket + "/o"

func (c *call) route() (op string, run func() *refused) {
	path := c.r.URL.EscapedPath()
	if path == "/upload"+objectsPath {
		if c.q.Get("uploadType") == "resumable" {
			return "insert", c.resumable
		}
		return "insert", c.insert
	}
	switch path {
	case objectsPath:
		return "list", c.list
	case strings.TrimSuffix(objectsPath, "/o"):
		return "bucket", func() *refused {
			return c.answer(map[string]any{"kind": "storage#bucket", "location": "EU", "versioning": map[string]bool{"enabled": c.s.Versioned}})
		}
	}
	rest, ok := strings.CutPrefix(path, objectsPath+"/")
	if !ok {
		key, _ := strings.CutPrefix(c.r.URL.Path, "/"+Bucket+"/")
		return "download", func() *refused { return c.download(key) }
	}
	segments := strings.Split(rest, "/")
	for i, one := range segments {
		segments[i], _ = url.PathUnescape(one)
	}
	key := segments[0]
	switch {
	case len(segments) == 2 && segments[1] == "compose":
		return "compose", func() *refused { return c.compose(key) }
	case len(segments) == 6 && segments[1] == "rewriteTo":
		return "rewrite", func() *refused { return c.rewrite(key, segments[5]) }
	case c.r.Method == http.MethodDelete:
		return "delete", func() *refused { return c.delete(key) }
	case c.r.Method == http.MethodPatch:
		return "patch", func() *refused { return c.patch(key) }
	}
	return "get", func() *refused { return c.get(key) }
}

func (c *call) refuse(x *refused) {
	if strings.HasPrefix(c.r.URL.Path, "/"+Bucket+"/") {
		code := xmlCodes[x]
		if code == "" {
			code = "InvalidRange"
		}
		c.w.Header().Set("Content-Type", "application/xml; charset=UTF-8")
		c.w.WriteHeader(x.status)
		fmt.Fprintf(c.w, "<?xml version='1.0' encoding='UTF-8'?><Error><Code>%s</Code><Message>%s</Message></Error>", code, x.text)
		return
	}
	c.w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	c.w.WriteHeader(x.status)
	fmt.Fprintf(c.w, `{"error":{"code":%d,"message":%q,"errors":[{"message":%q,"domain":"global","reason":%q}]}}`, x.status, x.text, x.text, x.reason)
}

func (c *call) answer(document any) *refused {
	text, err := json.Marshal(document)
	if err != nil {
		return badRequest(err.Error())
	}
	c.w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_, _ = c.w.Write(text)
	return nil
}

// holds looks at the preconditions that begin so, for an object that may be nil.
func (c *call) holds(q url.Values, prefix string, o *Object) *refused {
	if c.op == c.s.Careless {
		return nil
	}
	for name, has := range map[string]func() int64{
		"GenerationMatch": func() int64 { return o.Generation }, "MetagenerationMatch": func() int64 { return o.Metageneration },
	} {
		asked := q.Get(prefix + name)
		if asked == "" {
			continue
		}
		want, err := strconv.ParseInt(asked, 10, 64)
		if err != nil {
			return badRequest("Invalid long: " + asked)
		}
		is := int64(0)
		if o != nil {
			is = has()
		}
		if is != want {
			return notMet
		}
	}
	return nil
}

// find is an object, or the generation of it that is asked for.
func (c *call) find(key string) (*Object, *refused) {
	asked := c.q.Get("generation")
	o := c.s.objects[key]
	if asked != "" && (o == nil || asked != strconv.FormatInt(o.Generation, 10)) {
		i := slices.IndexFunc(c.s.past, func(p *Object) bool { return p.Name == key && strconv.FormatInt(p.Generation, 10) == asked })
		if i < 0 {
			return nil, noSuchObject
		}
		return c.s.past[i], nil
	}
	if o == nil {
		return nil, noSuchObject
	}
	return o, nil
}

func (c *call) get(key string) *refused {
	o, refusal := c.find(key)
	if refusal != nil {
		return refusal
	}
	if refusal := c.holds(c.q, "if", o); refusal != nil {
		return refusal
	}
	return c.answer(o)
}

func (c *call) insert() *refused {
	_, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || c.q.Get("uploadType") != "multipart" {
		return badRequest("not multipart")
	}
	parts := multipart.NewReader(bytes.NewReader(c.body), params["boundary"])
	var all [2][]byte
	for i := range all {
		part, err := parts.NextRawPart()
		if err != nil {
			return badRequest("a part is missing")
		}
		if all[i], err = io.ReadAll(part); err != nil {
			return badRequest("a part is cut off")
		}
	}
	return c.make(c.q, all[0], all[1])
}

// make makes an object of what is said of it and its content.
func (c *call) make(q url.Values, resource, content []byte) *refused {
	var said Object
	if err := json.Unmarshal(resource, &struct {
		*Object
		Size, Generation, Metageneration *string
	}{Object: &said}); err != nil {
		return badRequest(err.Error())
	}
	sum := md5.Sum(content)
	if is := base64.StdEncoding.EncodeToString(sum[:]); said.MD5Hash != "" && said.MD5Hash != is {
		return badRequest(fmt.Sprintf("Provided MD5 hash %q doesn't match calculated MD5 hash %q.", said.MD5Hash, is))
	}
	if strings.ContainsAny(said.Name, "\r\n") || len(said.Name) > 1024 || said.Name == "" {
		return badRequest("Invalid object name")
	}
	if refusal := c.holds(q, "if", c.s.objects[said.Name]); refusal != nil {
		return refusal
	}
	return c.answer(c.s.keep(said.Name, content, said, true))
}

// session is a resumable upload.
type session struct {
	q        url.Values // of the request that began it
	resource []byte
	content  []byte  // that has come so far
	made     *Object // nil: there is more to come
}

// resumable begins an upload, or takes a chunk. One that has come already may come again, and
// conditions are looked at when all is there.
func (c *call) resumable() *refused {
	id := c.q.Get("upload_id")
	if id == "" {
		id = strconv.Itoa(len(c.s.uploads))
		c.s.uploads[id] = &session{q: c.q, resource: c.body}
		c.w.Header().Set("Location", fmt.Sprintf("http://%s%s?uploadType=resumable&upload_id=%s", c.r.Host, c.r.URL.EscapedPath(), id))
		return nil
	}
	u := c.s.uploads[id]
	span, total, _ := strings.Cut(strings.TrimPrefix(c.r.Header.Get("Content-Range"), "bytes "), "/")
	first, _, _ := strings.Cut(span, "-")
	from, err := strconv.Atoi(first)
	switch {
	case u == nil:
		return &refused{http.StatusGone, "gone", "no such upload"}
	case u.made != nil:
		return c.answer(u.made)
	case err != nil || from > len(u.content):
		return badRequest("Content-Range")
	}
	u.content = append(u.content[:from:from], c.body...)
	if total == "*" {
		c.w.Header().Set("X-Http-Status-Code-Override", "308")
		c.w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(u.content)-1))
		return nil
	}
	if refusal := c.make(u.q, u.resource, u.content); refusal != nil {
		return refusal
	}
	var said struct{ Name string }
	_ = json.Unmarshal(u.resource, &said) // make did
	u.made = c.s.objects[said.Name]
	return nil
}

func (c *call) delete(key string) *refused {
	o, refusal := c.find(key)
	if refusal != nil {
		return refusal
	}
	if refusal := c.holds(c.q, "if", o); refusal != nil {
		return refusal
	}
	c.s.retire(key)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// patch merges, and null takes away.
func (c *call) patch(key string) *refused {
	o, refusal := c.find(key)
	if refusal != nil {
		return refusal
	}
	if refusal := c.holds(c.q, "if", o); refusal != nil {
		return refusal
	}
	var said map[string]any
	if err := json.Unmarshal(c.body, &said); err != nil {
		return badRequest(err.Error())
	}
	fields := map[string]*string{
		"contentType": &o.ContentType, "cacheControl": &o.CacheControl, "contentDisposition": &o.ContentDisposition,
		"contentEncoding": &o.ContentEncoding, "contentLanguage": &o.ContentLanguage,
	}
	for name, value := range said {
		if field := fields[name]; field != nil {
			*field, _ = value.(string)
		}
	}
	metadata, _ := said["metadata"].(map[string]any)
	kept := maps.Clone(o.Metadata)
	if kept == nil {
		kept = map[string]string{}
	}
	for name, value := range metadata {
		if value == nil {
			delete(kept, name)
			continue
		}
		kept[name], _ = value.(string)
	}
	o.Metadata = kept
	o.Metageneration++
	return c.answer(o)
}

func (c *call) said(text []byte) (said Object, refusal *refused) {
	if err := json.Unmarshal(text, &said); err != nil {
		return said, badRequest(err.Error())
	}
	return said, nil
}

func (c *call) rewrite(from, to string) *refused {
	source, refusal := c.find(from)
	if refusal != nil {
		return refusal
	}
	if refusal := c.holds(c.q, "ifSource", source); refusal != nil {
		return refusal
	}
	if refusal := c.holds(c.q, "if", c.s.objects[to]); refusal != nil {
		return refusal
	}
	said, refusal := c.said(c.body)
	if refusal != nil {
		return refusal
	}
	if said.ContentType == "" && (said.Metadata != nil || said.CacheControl != "") {
		return badRequest("Required: contentType")
	}
	if c.s.Slow && c.q.Get("rewriteToken") == "" {
		return c.answer(map[string]any{"kind": "storage#rewriteResponse", "done": false, "rewriteToken": "next"})
	}
	made := c.s.keep(to, source.content, said, true)
	return c.answer(map[string]any{"kind": "storage#rewriteResponse", "done": true, "resource": made})
}

func (c *call) compose(to string) *refused {
	var asked struct {
		Destination   json.RawMessage
		SourceObjects []struct {
			Name                string
			ObjectPreconditions struct{ IfGenerationMatch string }
		}
	}
	if err := json.Unmarshal(c.body, &asked); err != nil {
		return badRequest(err.Error())
	}
	if n := len(asked.SourceObjects); n < 1 || n > 32 {
		return badRequest("The number of source components provided must be between 1 and 32")
	}
	if refusal := c.holds(c.q, "if", c.s.objects[to]); refusal != nil {
		return refusal
	}
	said, refusal := c.said(asked.Destination)
	if refusal != nil {
		return refusal
	}
	var content []byte
	for _, one := range asked.SourceObjects {
		o := c.s.objects[one.Name]
		if o == nil {
			return noSource
		}
		if refusal := c.holds(url.Values{"ifGenerationMatch": {one.ObjectPreconditions.IfGenerationMatch}}, "if", o); refusal != nil {
			return refusal
		}
		content = append(content, o.content...)
	}
	return c.answer(c.s.keep(to, content, said, false))
}

// list counts objects and prefixes together, and tells each prefix once.
func (c *call) list() *refused {
	limit := c.s.PageMax
	if limit == 0 {
		limit = 1000
	}
	if told := c.q.Get("maxResults"); told != "" {
		n, err := strconv.Atoi(told)
		if err != nil || n < 1 {
			return badRequest("maxResults")
		}
		limit = min(limit, n)
	}
	prefix, delimiter, after := c.q.Get("prefix"), c.q.Get("delimiter"), c.q.Get("pageToken")
	var prefixes []string
	var items []*Object
	next, last, told := "", "", 0
	for _, key := range slices.Sorted(maps.Keys(c.s.objects)) {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok || key < c.q.Get("startOffset") {
			continue
		}
		group, hasGroup := "", false
		if i := strings.Index(rest, delimiter); delimiter != "" && i >= 0 {
			group, hasGroup = prefix+rest[:i+len(delimiter)], true
		}
		isItem := !hasGroup || c.q.Get("includeTrailingDelimiter") == "true" && key == group
		if passed := after != "" && key <= after; passed {
			if hasGroup {
				last = group
			}
			continue
		}
		isNew := hasGroup && group != last && !slices.Contains(prefixes, group)
		if !isItem && !isNew {
			continue
		}
		if told == limit {
			next = after
			break
		}
		if told++; isItem {
			items = append(items, c.s.objects[key])
		}
		if isNew {
			prefixes = append(prefixes, group)
		}
		after, last = key, group
	}
	document := map[string]any{"kind": "storage#objects", "items": items, "prefixes": prefixes}
	if next != "" {
		document["nextPageToken"] = next
	}
	return c.answer(document)
}

// download is the XML API's.
func (c *call) download(key string) *refused {
	o, refusal := c.find(key)
	if refusal != nil {
		return refusal
	}
	asked := url.Values{"ifGenerationMatch": {c.r.Header.Get("X-Goog-If-Generation-Match")}, "ifMetagenerationMatch": {c.r.Header.Get("X-Goog-If-Metageneration-Match")}}
	if refusal := c.holds(asked, "if", o); refusal != nil {
		return refusal
	}
	h := c.w.Header()
	h.Set("X-Goog-Generation", strconv.FormatInt(o.Generation, 10))
	h.Set("X-Goog-Metageneration", strconv.FormatInt(o.Metageneration, 10))
	h.Set("X-Goog-Stored-Content-Length", strconv.FormatInt(o.Size, 10))
	h.Set("X-Goog-Stored-Content-Encoding", "identity")
	h.Set("X-Goog-Storage-Class", o.StorageClass)
	h.Set("Cache-Control", "private, max-age=0")
	h.Set("Content-Type", o.ContentType)
	h.Add("X-Goog-Hash", "crc32c=AAAAAA==")
	if o.MD5Hash != "" {
		h.Add("X-Goog-Hash", "md5="+o.MD5Hash)
	}
	for name, value := range map[string]string{"Cache-Control": o.CacheControl, "Content-Disposition": o.ContentDisposition, "Content-Encoding": o.ContentEncoding, "Content-Language": o.ContentLanguage} {
		if value != "" {
			h.Set(name, value)
		}
	}
	if o.ContentEncoding != "" {
		h.Set("X-Goog-Stored-Content-Encoding", o.ContentEncoding)
	}
	for name, value := range o.Metadata {
		h.Set("X-Goog-Meta-"+name, value)
	}
	part := c.r.Header.Get("Range")
	if part == "" {
		c.content = o.content
		return nil
	}
	first, end, _ := strings.Cut(strings.TrimPrefix(part, "bytes="), "-")
	from, _ := strconv.ParseInt(first, 10, 64)
	to := o.Size
	if end != "" {
		n, _ := strconv.ParseInt(end, 10, 64)
		to = min(to, n+1)
	}
	if from >= o.Size {
		return &refused{http.StatusRequestedRangeNotSatisfiable, "", "The requested range cannot be satisfied."}
	}
	h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, o.Size))
	c.w.WriteHeader(http.StatusPartialContent)
	c.content = o.content[from:to]
	return nil
}

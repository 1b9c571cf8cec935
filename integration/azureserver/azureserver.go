// Package azureserver is a container of Azure Blob Storage in memory, for tests.
//
// It follows the service's documentation where a program can rely on it: conditions,
// lists of blocks, listings with their markers and metadata, copies from a URL. It knows
// nothing of who uses it, and lies outside internal, because the tests of the provider use
// it as well as those of the program.
//
//	server := azureserver.New()   // an http.RoundTripper
//	server := azureserver.Start(t) // and one that listens, at server.Endpoint
//
// Beside it is an emulator, which is another's.
package azureserver

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"maps"
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

// Server is a container.
type Server struct {
	Hierarchical bool   // the namespace is
	Untagged     bool   // who asks may neither read tags nor set them
	Bearer       string // a token that is a login, too
	Public       bool   // nobody needs a login
	Endpoint     string // with the account; set by Start

	mu     sync.Mutex // guards all below
	blobs  map[string]*Blob
	blocks map[string]map[string][]byte // that wait, by blob and id
	next   int
	queue  []func(r *http.Request) *http.Response // answers instead of ours, nil ones let through
}

// What there is. The key is base64 of nothing in particular.
const (
	Account    = "acme"
	AccountKey = "c2VjcmV0IG9mIG5vYm9keQ=="
	Container  = "files"
)

// The types of a blob.
const (
	BlockBlob  = "BlockBlob"
	AppendBlob = "AppendBlob"
	PageBlob   = "PageBlob"
)

// Folder says in a blob's metadata that it is a directory.
const Folder = "hdi_isfolder"

// Blob is one that the container has.
type Blob struct {
	Kind        string
	Snapshots   bool
	Permissions string     // of a hierarchical namespace, as "rwxr-x---"
	Tags        url.Values // of its index

	content   []byte
	committed map[string][]byte
	etag      string
	header    http.Header // as an answer has them
	modified  time.Time
}

// New is an empty container that nobody reaches but by RoundTrip.
func New() *Server {
	return &Server{blobs: map[string]*Blob{}, blocks: map[string]map[string][]byte{}}
}

// Start serves an empty container until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := New()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	s.Endpoint = web.URL + "/" + Account
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, err := s.RoundTrip(r)
	if err != nil {
		panic(http.ErrAbortHandler) // whoever asks is gone
	}
	defer a.Body.Close()
	maps.Copy(w.Header(), a.Header)
	w.WriteHeader(a.StatusCode)
	_, _ = io.Copy(w, a.Body) // the same
}

// standard are the headers of a blob, by what a request calls them.
var standard = map[string]string{
	"X-Ms-Blob-Content-Type": "Content-Type", "X-Ms-Blob-Cache-Control": "Cache-Control", "X-Ms-Blob-Content-Disposition": "Content-Disposition",
	"X-Ms-Blob-Content-Encoding": "Content-Encoding", "X-Ms-Blob-Content-Language": "Content-Language",
}

const metaPrefix = "X-Ms-Meta-"

// Put makes a block blob, as another program would.
func (s *Server) Put(key, content string, metadata map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := http.Header{}
	for name, value := range metadata {
		h.Set(metaPrefix+name, value)
	}
	s.keep(key, []byte(content), h)
}

// PutPacked makes a block blob that is stored packed.
func (s *Server) PutPacked(key, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(key, []byte(content), http.Header{"X-Ms-Blob-Content-Encoding": {"gzip"}})
}

// Get is a blob's content and its metadata; "" and nil: it is not there.
func (s *Server) Get(key string) (content string, metadata map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.blobs[key]
	if b == nil {
		return "", nil
	}
	metadata = map[string]string{}
	for name, values := range b.header {
		if name, ok := strings.CutPrefix(name, metaPrefix); ok {
			metadata[strings.ToLower(name)] = values[0]
		}
	}
	return string(b.content), metadata
}

// ETags are those of all blobs.
func (s *Server) ETags() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for key, b := range s.blobs {
		all[key] = b.etag
	}
	return all
}

// Replace makes a block blob in the place of one that has an ETag, or of none for "". It
// reports false if there is another.
func (s *Server) Replace(key, etag, content string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.blobs[key]; b == nil && etag != "" || b != nil && b.etag != etag {
		return false
	}
	s.keep(key, []byte(content), nil)
	return true
}

// Remove deletes a blob.
func (s *Server) Remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.blobs, key)
}

// Change changes a blob, without a new version.
func (s *Server) Change(key string, change func(*Blob)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.blobs[key])
}

// Keys are those of all blobs.
func (s *Server) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.blobs))
}

// keep makes a block blob. Blocks that wait are dropped, and so are tags.
func (s *Server) keep(key string, content []byte, asked http.Header) *Blob {
	b := &Blob{content: content, Kind: BlockBlob, header: http.Header{}}
	b.Tags, _ = url.ParseQuery(header(asked, tagsHeader))
	s.describe(b, asked)
	s.head(b, asked)
	b.tier(header(asked, tierHeader))
	s.blobs[key] = b
	delete(s.blocks, key)
	return b
}

const (
	tierHeader = "X-Ms-Access-Tier"
	tagsHeader = "X-Ms-Tags"
)

// tier says where a blob lies; "" is the account's own.
func (b *Blob) tier(asked string) {
	b.header.Del(tierHeader + "-Inferred")
	if asked == "" {
		b.header.Set(tierHeader+"-Inferred", "true")
	}
	b.header.Set(tierHeader, cmp.Or(asked, "Hot"))
}

// describe sets the metadata, head the headers.
func (s *Server) describe(b *Blob, asked http.Header) {
	maps.DeleteFunc(b.header, func(name string, _ []string) bool { return strings.HasPrefix(name, metaPrefix) })
	for name, values := range asked {
		if name = http.CanonicalHeaderKey(name); strings.HasPrefix(name, metaPrefix) {
			b.header[name] = values
		}
	}
	s.touch(b)
}

func (s *Server) head(b *Blob, asked http.Header) {
	for from, to := range standard {
		b.header.Del(to)
		if v := header(asked, from); v != "" {
			b.header.Set(to, v)
		}
	}
	if b.header.Get("Content-Type") == "" {
		b.header.Set("Content-Type", "application/octet-stream")
	}
	s.touch(b)
}

func (s *Server) touch(b *Blob) {
	s.next++
	b.etag, b.modified = fmt.Sprintf("0x8D%014X", s.next), time.Now().Truncate(time.Second)
}

// header finds one whose name may be written in any way.
func header(h http.Header, name string) string {
	for is, values := range h {
		if strings.EqualFold(is, name) {
			return values[0]
		}
	}
	return ""
}

func answer(r *http.Request, status int, body []byte, h http.Header) *http.Response {
	if h == nil {
		h = http.Header{}
	}
	h.Set("X-Ms-Request-Id", "one")
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	a := &http.Response{StatusCode: status, Header: h, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}
	if r.Method == http.MethodHead {
		a.Body = http.NoBody
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	return a
}

func refuse(r *http.Request, status int, code string) *http.Response {
	return answer(r, status, []byte("<?xml version=\"1.0\"?><Error><Code>"+code+"</Code><Message>no.\nRequestId:one</Message></Error>"),
		http.Header{"Content-Type": {"application/xml"}, "X-Ms-Error-Code": {code}})
}

// changed is the answer to a change.
func changed(r *http.Request, status int, b *Blob) *http.Response {
	return answer(r, status, nil, http.Header{"Etag": {`"` + b.etag + `"`}, "Last-Modified": {b.modified.UTC().Format(http.TimeFormat)}})
}

// RoundTrip implements http.RoundTripper.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
		if int64(len(body)) != r.ContentLength {
			return nil, io.ErrUnexpectedEOF
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 && !strings.Contains(r.URL.String(), background) {
		planned := s.queue[0]
		s.queue = s.queue[1:]
		if planned != nil {
			if a := planned(r); a != nil {
				return a, nil
			}
		}
	}
	return s.serve(r, body), nil
}

// keyOf is the blob of a URL: the path is /account/container/blob, where a backslash is a slash.
func keyOf(u *url.URL) string {
	parts := strings.SplitN(strings.TrimPrefix(strings.ReplaceAll(u.Path, `\`, "/"), "/"), "/", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}

func (s *Server) serve(r *http.Request, body []byte) *http.Response {
	key := keyOf(r.URL)
	q := r.URL.Query()
	isCopy := header(r.Header, copySource) != ""
	switch comp := q.Get("comp"); {
	case !s.Public && q.Get("sig") == "" && !s.signed(r.Header.Get("Authorization")):
		return refuse(r, 401, "NoAuthenticationInformation")
	case s.Untagged && (comp == "tags" || header(r.Header, tagsHeader) != "" || strings.Contains(q.Get("include"), "tags")):
		return refuse(r, 403, "AuthorizationPermissionMismatch")
	case q.Get("restype") == "account":
		return answer(r, 200, nil, http.Header{"X-Ms-Is-Hns-Enabled": {strconv.FormatBool(s.Hierarchical)}})
	case !strings.HasPrefix(r.URL.Path, "/"+Account+"/"+Container):
		return refuse(r, 404, "ContainerNotFound")
	case comp == "list" && s.Hierarchical != strings.Contains(q.Get("include"), "permissions") && q.Get("include") != "metadata":
		return refuse(r, 400, "InvalidQueryParameterValue") // those are of one kind of account each
	case comp == "list":
		return s.list(r)
	case comp == "tags":
		return s.tags(r, key)
	case comp == "block" && isCopy:
		return s.blockOf(r, key)
	case comp == "block":
		return s.block(r, key, body)
	case r.Method == http.MethodDelete:
		return s.remove(r, key)
	case r.Method == http.MethodPut:
		return s.change(r, key, body)
	}
	return s.read(r, key)
}

// signed reports whether an authorization is one of the account.
func (s *Server) signed(authorization string) bool {
	return strings.HasPrefix(authorization, "SharedKey "+Account+":") || s.Bearer != "" && authorization == "Bearer "+s.Bearer
}

const copySource = "X-Ms-Copy-Source"

// tags are those of a blob's index.
func (s *Server) tags(r *http.Request, key string) *http.Response {
	b := s.blobs[key]
	if b == nil {
		return refuse(r, 404, "BlobNotFound")
	}
	body, err := xml.Marshal(b.tagged())
	if err != nil {
		panic(err)
	}
	return answer(r, 200, body, http.Header{"Content-Type": {"application/xml"}})
}

type listTags struct {
	XMLName xml.Name  `xml:"Tags"`
	Set     []listTag `xml:"TagSet>Tag"`
}

type listTag struct{ Key, Value string }

func (b *Blob) tagged() *listTags {
	var t listTags
	for _, name := range slices.Sorted(maps.Keys(b.Tags)) {
		t.Set = append(t.Set, listTag{name, b.Tags.Get(name)})
	}
	return &t
}

// blockOf is a block from a range of a blob.
func (s *Server) blockOf(r *http.Request, key string) *http.Response {
	source, a := s.source(r)
	if a != nil {
		return a
	}
	var first, last int
	_, err := fmt.Sscanf(header(r.Header, "X-Ms-Source-Range"), "bytes=%d-%d", &first, &last)
	if err != nil || first >= len(source.content) || last >= len(source.content) {
		return refuse(r, 416, "InvalidRange")
	}
	return s.block(r, key, source.content[first:last+1])
}

// change is what makes a blob, or describes it anew.
func (s *Server) change(r *http.Request, key string, body []byte) *http.Response {
	if a := s.check(r, key); a != nil {
		return a
	}
	switch comp := r.URL.Query().Get("comp"); {
	case comp == "blocklist":
		return s.commit(r, key, body)
	case comp != "":
		return s.describeAnew(r, comp, key)
	}
	if a := s.typed(r, key); a != nil {
		return a
	}
	if header(r.Header, copySource) != "" {
		source, a := s.source(r)
		if a != nil {
			return a
		}
		return changed(r, 201, s.keep(key, source.content, r.Header))
	}
	if want := header(r.Header, "Content-Md5"); want != "" && want != digest(body) {
		return refuse(r, 400, "Md5Mismatch")
	}
	a := changed(r, 201, s.keep(key, body, r.Header))
	a.Header.Set("Content-Md5", digest(body))
	return a
}

// describeAnew changes metadata or headers.
func (s *Server) describeAnew(r *http.Request, comp, key string) *http.Response {
	b := s.blobs[key]
	switch {
	case b == nil:
		return refuse(r, 404, "BlobNotFound")
	case comp == "metadata":
		s.describe(b, r.Header)
	default:
		s.head(b, r.Header)
	}
	return changed(r, 200, b)
}

// typed refuses a file in place of a directory, and one in place of a file.
func (s *Server) typed(r *http.Request, key string) *http.Response {
	b := s.blobs[key]
	if !s.Hierarchical || b == nil || (b.header.Get(metaPrefix+Folder) == "") == (header(r.Header, metaPrefix+Folder) == "") {
		return nil
	}
	return refuse(r, 409, "ResourceTypeMismatch")
}

// check is the conditions.
func (s *Server) check(r *http.Request, key string) *http.Response {
	b := s.blobs[key]
	isMatch, isNone := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	switch {
	case isNone == "*" && b != nil:
		return refuse(r, 409, "BlobAlreadyExists")
	case isMatch != "" && (b == nil || isMatch != `"`+b.etag+`"`):
		return refuse(r, 412, "ConditionNotMet")
	}
	return nil
}

func digest(b []byte) string {
	sum := md5.Sum(b)
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (s *Server) source(r *http.Request) (*Blob, *http.Response) {
	u, err := url.Parse(header(r.Header, copySource))
	if err != nil || u.Query().Get("sig") == "" && !s.signed(header(r.Header, "X-Ms-Copy-Source-Authorization")) {
		return nil, refuse(r, 403, "CannotVerifyCopySource")
	}
	b := s.blobs[keyOf(u)]
	if b == nil {
		return nil, refuse(r, 404, "CannotVerifyCopySource")
	}
	if want := header(r.Header, "X-Ms-Source-If-Match"); want != "" && want != `"`+b.etag+`"` {
		return nil, refuse(r, 412, "SourceConditionNotMet")
	}
	return b, nil
}

func (s *Server) read(r *http.Request, key string) *http.Response {
	b := s.blobs[key]
	if b == nil {
		return refuse(r, 404, "BlobNotFound")
	}
	if a := s.check(r, key); a != nil {
		return a
	}
	h := b.header.Clone()
	h.Set("Etag", `"`+b.etag+`"`)
	h.Set("Last-Modified", b.modified.UTC().Format(http.TimeFormat))
	h.Set("X-Ms-Blob-Type", b.Kind)
	if n := len(b.Tags); n > 0 {
		h.Set("X-Ms-Tag-Count", strconv.Itoa(n))
	}
	if b.Permissions != "" {
		h.Set("X-Ms-Permissions", b.Permissions)
	}
	if r.Method == http.MethodGet { // which tells no tier
		h.Del(tierHeader)
		h.Del(tierHeader + "-Inferred")
	}
	content, status := b.content, 200
	if asked, ok := strings.CutPrefix(header(r.Header, "X-Ms-Range")+header(r.Header, "Range"), "bytes="); ok {
		from, to, _ := strings.Cut(asked, "-")
		first, _ := strconv.Atoi(from)
		last, err := strconv.Atoi(to)
		if err != nil || last >= len(content) {
			last = len(content) - 1
		}
		if first > last {
			return refuse(r, 416, "InvalidRange")
		}
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, len(content)))
		content, status = content[first:last+1], 206
	}
	return answer(r, status, content, h)
}

func (s *Server) remove(r *http.Request, key string) *http.Response {
	b := s.blobs[key]
	if b == nil {
		return refuse(r, 404, "BlobNotFound")
	}
	if a := s.check(r, key); a != nil {
		return a
	}
	if b.Snapshots {
		return refuse(r, 409, "SnapshotsPresent")
	}
	delete(s.blobs, key)
	return answer(r, 202, nil, nil)
}

// crc is what blocks are summed up with.
var crc = crc64.MakeTable(0x9A6C9329AC4BC9B5)

func (s *Server) block(r *http.Request, key string, body []byte) *http.Response {
	id := r.URL.Query().Get("blockid")
	if b := s.blobs[key]; b != nil && b.Kind != BlockBlob {
		return refuse(r, 409, "InvalidBlobType")
	}
	for other := range s.blocks[key] {
		if len(other) != len(id) {
			return refuse(r, 400, "InvalidBlobOrBlock")
		}
	}
	if s.blocks[key] == nil {
		s.blocks[key] = map[string][]byte{}
	}
	s.blocks[key][id] = body
	sum := binary.LittleEndian.AppendUint64(nil, crc64.Checksum(body, crc))
	return answer(r, 201, nil, http.Header{"X-Ms-Content-Crc64": {base64.StdEncoding.EncodeToString(sum)}})
}

// commit is Put Block List, of which each id is that of a block that waits, else of one that
// the blob has.
func (s *Server) commit(r *http.Request, key string, body []byte) *http.Response {
	var list struct{ Latest []string }
	if err := xml.Unmarshal(body, &list); err != nil {
		return refuse(r, 400, "InvalidXmlDocument")
	}
	var content []byte
	committed := map[string][]byte{}
	for _, id := range list.Latest {
		block, ok := s.blocks[key][id]
		if b := s.blobs[key]; !ok && b != nil {
			block, ok = b.committed[id]
		}
		if !ok {
			return refuse(r, 400, "InvalidBlockList")
		}
		committed[id] = block
		content = append(content, block...)
	}
	b := s.keep(key, content, r.Header)
	b.committed = committed
	return changed(r, 201, b)
}

type listResult struct {
	XMLName    xml.Name     `xml:"EnumerationResults"`
	Blobs      []listBlob   `xml:"Blobs>Blob"`
	Prefixes   []listPrefix `xml:"Blobs>BlobPrefix"`
	NextMarker string
}

// listName is encoded where XML has no such characters.
type listName struct {
	Encoded string `xml:",attr,omitempty"`
	Text    string `xml:",chardata"`
}

type listPrefix struct{ Name listName }

type listBlob struct {
	Name       listName
	Properties struct {
		Modified           string `xml:"Last-Modified"`
		Etag               string
		ContentLength      int    `xml:"Content-Length"`
		ContentType        string `xml:"Content-Type"`
		CacheControl       string `xml:"Cache-Control,omitempty"`
		ContentEncoding    string `xml:"Content-Encoding,omitempty"`
		ContentLanguage    string `xml:"Content-Language,omitempty"`
		ContentDisposition string `xml:"Content-Disposition,omitempty"`
		BlobType           string
		AccessTier         string
		AccessTierInferred string `xml:",omitempty"`
		Permissions        string `xml:",omitempty"`
	}
	Metadata listMetadata
	Tags     *listTags
}

type listMetadata http.Header

// MarshalXML implements xml.Marshaler.
func (m listMetadata) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	err := e.EncodeToken(start)
	for name, values := range m {
		if name, ok := strings.CutPrefix(name, metaPrefix); ok && err == nil {
			err = e.EncodeElement(values[0], xml.StartElement{Name: xml.Name{Local: name}})
		}
	}
	return errors.Join(err, e.EncodeToken(start.End()))
}

// isXML reports whether XML has all characters of a name.
func isXML(name string) bool {
	return strings.IndexFunc(name, func(c rune) bool { return c < ' ' || c == 0xfffe || c == 0xffff }) < 0
}

func named(key string) listName {
	if isXML(key) {
		return listName{Text: key}
	}
	return listName{Encoded: "true", Text: url.QueryEscape(key)}
}

func (s *Server) list(r *http.Request) *http.Response {
	q := r.URL.Query()
	limit, err := strconv.Atoi(q.Get("maxresults"))
	if err != nil {
		limit = 5000
	}
	marker, err := hex.DecodeString(q.Get("marker"))
	if err != nil {
		return refuse(r, 400, "OutOfRangeInput")
	}
	out := listResult{}
	group := ""
	for _, key := range slices.Sorted(maps.Keys(s.blobs)) {
		rest, ok := strings.CutPrefix(key, q.Get("prefix"))
		if !ok || key < string(marker) || key < q.Get("startFrom") || group != "" && strings.HasPrefix(key, group) {
			continue
		}
		if len(out.Blobs)+len(out.Prefixes) == limit {
			out.NextMarker = hex.EncodeToString([]byte(key))
			break
		}
		if i := strings.Index(rest, "/"); i >= 0 && q.Get("delimiter") == "/" {
			group = q.Get("prefix") + rest[:i+1]
			out.Prefixes = append(out.Prefixes, listPrefix{named(group)})
			continue
		}
		out.Blobs = append(out.Blobs, s.blobs[key].listed(key, q.Get("include")))
	}
	body, err := xml.Marshal(out)
	if err != nil {
		panic(err)
	}
	return answer(r, 200, body, http.Header{"Content-Type": {"application/xml"}})
}

func (b *Blob) listed(key, with string) listBlob {
	l := listBlob{Name: named(key)}
	p := &l.Properties
	p.Modified, p.Etag, p.ContentLength, p.BlobType = b.modified.UTC().Format(http.TimeFormat), b.etag, len(b.content), b.Kind
	p.ContentType, p.CacheControl, p.ContentEncoding = b.header.Get("Content-Type"), b.header.Get("Cache-Control"), b.header.Get("Content-Encoding")
	p.ContentLanguage, p.ContentDisposition = b.header.Get("Content-Language"), b.header.Get("Content-Disposition")
	p.AccessTier, p.AccessTierInferred = b.header.Get(tierHeader), b.header.Get(tierHeader+"-Inferred")
	if strings.Contains(with, "metadata") {
		l.Metadata = listMetadata(b.header)
	}
	if strings.Contains(with, "tags") && len(b.Tags) > 0 {
		l.Tags = b.tagged()
	}
	if strings.Contains(with, "permissions") {
		p.Permissions = b.Permissions
	}
	return l
}

// background is part of the URL of requests that come whenever they like.
const background = ".wsmount"

// Next has a request answered in another way, after those that were planned before; nil
// lets one through. Those in the background count for none.
func (s *Server) Next(planned func(*http.Request) *http.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, planned)
}

// Refuse has the next request refused.
func (s *Server) Refuse(status int, code string) {
	s.Next(func(r *http.Request) *http.Response { return refuse(r, status, code) })
}

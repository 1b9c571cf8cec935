package azure

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// fake is a container in memory, as the service's documentation has it: conditions,
// lists of blocks, listings with their markers, and copies from a URL.
type fake struct {
	flat bool // false: the namespace is hierarchical

	mu     sync.Mutex // guards all below
	blobs  map[string]*fakeBlob
	blocks map[string]map[string][]byte // that wait, by blob and id
	next   int
	queue  []func(r *http.Request) *http.Response // answers instead of ours, nil ones let through
	asked  []*http.Request
}

type fakeBlob struct {
	content   []byte
	committed map[string][]byte
	etag      string
	kind      string
	header    http.Header // as an answer has them
	modified  time.Time
	snapshots bool
}

func newFake() *fake {
	return &fake{flat: true, blobs: map[string]*fakeBlob{}, blocks: map[string]map[string][]byte{}}
}

// standard are the headers of a blob, by what a request calls them.
var standard = map[string]string{
	"X-Ms-Blob-Content-Type": "Content-Type", "X-Ms-Blob-Cache-Control": "Cache-Control", "X-Ms-Blob-Content-Disposition": "Content-Disposition",
	"X-Ms-Blob-Content-Encoding": "Content-Encoding", "X-Ms-Blob-Content-Language": "Content-Language",
}

const metaPrefix = "X-Ms-Meta-"

func (f *fake) put(key, content string, metadata map[string]string) *fakeBlob {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := http.Header{}
	for name, value := range metadata {
		h.Set(metaPrefix+name, value)
	}
	return f.keep(key, []byte(content), h)
}

func (f *fake) keys() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.blobs))
}

// keep makes a block blob. Blocks that wait are dropped.
func (f *fake) keep(key string, content []byte, asked http.Header) *fakeBlob {
	b := &fakeBlob{content: content, kind: plainType, header: http.Header{}}
	f.describe(b, asked)
	f.head(b, asked)
	f.blobs[key] = b
	delete(f.blocks, key)
	return b
}

// describe sets the metadata, head the headers.
func (f *fake) describe(b *fakeBlob, asked http.Header) {
	maps.DeleteFunc(b.header, func(name string, _ []string) bool { return strings.HasPrefix(name, metaPrefix) })
	for name, values := range asked {
		if name = http.CanonicalHeaderKey(name); strings.HasPrefix(name, metaPrefix) {
			b.header[name] = values
		}
	}
	f.touch(b)
}

func (f *fake) head(b *fakeBlob, asked http.Header) {
	for from, to := range standard {
		b.header.Del(to)
		if v := header(asked, from); v != "" {
			b.header.Set(to, v)
		}
	}
	if b.header.Get("Content-Type") == "" {
		b.header.Set("Content-Type", "application/octet-stream")
	}
	f.touch(b)
}

func (f *fake) touch(b *fakeBlob) {
	f.next++
	b.etag, b.modified = fmt.Sprintf("0x8D%014X", f.next), time.Now().Truncate(time.Second)
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
func changed(r *http.Request, status int, b *fakeBlob) *http.Response {
	return answer(r, status, nil, http.Header{"Etag": {`"` + b.etag + `"`}, "Last-Modified": {b.modified.UTC().Format(http.TimeFormat)}})
}

// RoundTrip implements http.RoundTripper.
func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
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
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r)
	if len(f.queue) > 0 {
		planned := f.queue[0]
		f.queue = f.queue[1:]
		if planned != nil {
			if a := planned(r); a != nil {
				return a, nil
			}
		}
	}
	return f.serve(r, body), nil
}

// keyOf is the blob of a URL: the path is /account/container/blob.
func keyOf(u *url.URL) string {
	parts := strings.SplitN(strings.TrimPrefix(u.Path, "/"), "/", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}

func (f *fake) serve(r *http.Request, body []byte) *http.Response {
	key := keyOf(r.URL)
	switch op := operation(r); op {
	case opAccount:
		return answer(r, 200, nil, http.Header{"X-Ms-Is-Hns-Enabled": {strconv.FormatBool(!f.flat)}})
	case opList:
		return f.list(r)
	case opGet, opHead:
		return f.read(r, key)
	case opBlock:
		return f.block(r, key, body)
	case opBlockURL:
		source, a := f.source(r)
		if a != nil {
			return a
		}
		var first, last int
		fmt.Sscanf(header(r.Header, "X-Ms-Source-Range"), "bytes=%d-%d", &first, &last)
		if first >= len(source.content) || last >= len(source.content) {
			return refuse(r, 416, "InvalidRange")
		}
		return f.block(r, key, source.content[first:last+1])
	case opDelete:
		return f.remove(r, key)
	default:
		return f.change(r, op, key, body)
	}
}

// change is what makes a blob, or describes it anew.
func (f *fake) change(r *http.Request, op, key string, body []byte) *http.Response {
	if a := f.check(r, key); a != nil {
		return a
	}
	switch op {
	case opPut:
		if want := header(r.Header, "Content-Md5"); want != "" && want != digest(body) {
			return refuse(r, 400, "Md5Mismatch")
		}
		if a := f.typed(r, key); a != nil {
			return a
		}
		a := changed(r, 201, f.keep(key, body, r.Header))
		a.Header.Set("Content-Md5", digest(body))
		return a
	case opPutURL:
		source, a := f.source(r)
		if a != nil {
			return a
		}
		return changed(r, 201, f.keep(key, source.content, r.Header))
	case opCommit:
		return f.commit(r, key, body)
	}
	b := f.blobs[key]
	if b == nil {
		return refuse(r, 404, "BlobNotFound")
	}
	if op == opMetadata {
		f.describe(b, r.Header)
	} else {
		f.head(b, r.Header)
	}
	return changed(r, 200, b)
}

// typed refuses a file in place of a directory, and one in place of a file.
func (f *fake) typed(r *http.Request, key string) *http.Response {
	b := f.blobs[key]
	if f.flat || b == nil || (b.header.Get(metaPrefix+folder) == "") == (header(r.Header, metaPrefix+folder) == "") {
		return nil
	}
	return refuse(r, 409, "ResourceTypeMismatch")
}

// check is the conditions.
func (f *fake) check(r *http.Request, key string) *http.Response {
	b := f.blobs[key]
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

func (f *fake) source(r *http.Request) (*fakeBlob, *http.Response) {
	u, err := url.Parse(header(r.Header, "X-Ms-Copy-Source"))
	if err != nil || u.Query().Get("sig") == "" {
		return nil, refuse(r, 403, "CannotVerifyCopySource")
	}
	b := f.blobs[keyOf(u)]
	if b == nil {
		return nil, refuse(r, 404, "CannotVerifyCopySource")
	}
	if want := header(r.Header, "X-Ms-Source-If-Match"); want != "" && want != `"`+b.etag+`"` {
		return nil, refuse(r, 412, "SourceConditionNotMet")
	}
	return b, nil
}

func (f *fake) read(r *http.Request, key string) *http.Response {
	b := f.blobs[key]
	if b == nil {
		return refuse(r, 404, "BlobNotFound")
	}
	if a := f.check(r, key); a != nil {
		return a
	}
	h := b.header.Clone()
	h.Set("Etag", `"`+b.etag+`"`)
	h.Set("Last-Modified", b.modified.UTC().Format(http.TimeFormat))
	h.Set("X-Ms-Blob-Type", b.kind)
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

func (f *fake) remove(r *http.Request, key string) *http.Response {
	b := f.blobs[key]
	if b == nil {
		return refuse(r, 404, "BlobNotFound")
	}
	if a := f.check(r, key); a != nil {
		return a
	}
	if b.snapshots {
		return refuse(r, 409, "SnapshotsPresent")
	}
	delete(f.blobs, key)
	return answer(r, 202, nil, nil)
}

func (f *fake) block(r *http.Request, key string, body []byte) *http.Response {
	id := r.URL.Query().Get("blockid")
	if b := f.blobs[key]; b != nil && b.kind != plainType {
		return refuse(r, 409, "InvalidBlobType")
	}
	for other := range f.blocks[key] {
		if len(other) != len(id) {
			return refuse(r, 400, "InvalidBlobOrBlock")
		}
	}
	if f.blocks[key] == nil {
		f.blocks[key] = map[string][]byte{}
	}
	f.blocks[key][id] = body
	return answer(r, 201, nil, http.Header{"Content-Md5": {digest(body)}})
}

// commit is Put Block List, of which each id is that of a block that waits, else of one that
// the blob has.
func (f *fake) commit(r *http.Request, key string, body []byte) *http.Response {
	var list struct{ Latest []string }
	if err := xml.Unmarshal(body, &list); err != nil {
		return refuse(r, 400, "InvalidXmlDocument")
	}
	var content []byte
	committed := map[string][]byte{}
	for _, id := range list.Latest {
		block, ok := f.blocks[key][id]
		if b := f.blobs[key]; !ok && b != nil {
			block, ok = b.committed[id]
		}
		if !ok {
			return refuse(r, 400, "InvalidBlockList")
		}
		committed[id] = block
		content = append(content, block...)
	}
	b := f.keep(key, content, r.Header)
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
	}
	Metadata listMetadata
}

type listMetadata http.Header

// MarshalXML implements xml.Marshaler.
func (m listMetadata) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	e.EncodeToken(start)
	for name, values := range m {
		if name, ok := strings.CutPrefix(name, metaPrefix); ok {
			e.EncodeElement(values[0], xml.StartElement{Name: xml.Name{Local: name}})
		}
	}
	return e.EncodeToken(start.End())
}

func named(key string) listName {
	if providers.IsXML(key) {
		return listName{Text: key}
	}
	return listName{Encoded: "true", Text: url.QueryEscape(key)}
}

func (f *fake) list(r *http.Request) *http.Response {
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
	for _, key := range slices.Sorted(maps.Keys(f.blobs)) {
		rest, ok := strings.CutPrefix(key, q.Get("prefix"))
		if !ok || key < string(marker) || group != "" && strings.HasPrefix(key, group) {
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
		out.Blobs = append(out.Blobs, f.blobs[key].listed(key, strings.Contains(q.Get("include"), "metadata")))
	}
	body, err := xml.Marshal(out)
	if err != nil {
		panic(err)
	}
	return answer(r, 200, body, http.Header{"Content-Type": {"application/xml"}})
}

func (b *fakeBlob) listed(key string, withMetadata bool) listBlob {
	l := listBlob{Name: named(key)}
	p := &l.Properties
	p.Modified, p.Etag, p.ContentLength, p.BlobType = b.modified.UTC().Format(http.TimeFormat), b.etag, len(b.content), b.kind
	p.ContentType, p.CacheControl, p.ContentEncoding = b.header.Get("Content-Type"), b.header.Get("Cache-Control"), b.header.Get("Content-Encoding")
	p.ContentLanguage, p.ContentDisposition = b.header.Get("Content-Language"), b.header.Get("Content-Disposition")
	if withMetadata {
		l.Metadata = listMetadata(b.header)
	}
	return l
}

// refusal is a planned answer.
func refusal(status int, code string) func(*http.Request) *http.Response {
	return func(r *http.Request) *http.Response { return refuse(r, status, code) }
}

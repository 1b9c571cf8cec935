package s3

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
)

// fake is a bucket in memory with AWS's semantics where the real servers of
// the tests have others: keys are any strings, a file may be beside a
// directory, and all conditions are honoured, unless careless.
type fake struct {
	careless bool // honours no condition
	hides    bool // lists no directory beside a file, as MinIO does
	mixes    bool // lists keys backwards, which is one of the orders of directory buckets

	mu      sync.Mutex // guards all below
	objects map[string]*fakeObject
	past    *fakePast // nil: it knows nothing of versions
	uploads map[string]*fakeUpload
	next    int
	queue   []func(r *http.Request) *http.Response // answers instead of ours, nil ones let through
}

type fakeObject struct {
	content  []byte
	etag     string
	header   http.Header
	modified time.Time
}

type fakeUpload struct {
	key   string
	parts map[int]*fakeObject
	fakeObject
}

// keptHeaders are the standard ones that an object has.
var keptHeaders = []string{"Content-Type", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Expires", "X-Amz-Storage-Class", "X-Amz-Tagging"}

func newFake() *fake {
	return &fake{objects: map[string]*fakeObject{}, uploads: map[string]*fakeUpload{}}
}

func (f *fake) put(key, content string, header http.Header) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.store(key, []byte(content), header, "")
}

func (f *fake) keys() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.objects))
}

func (f *fake) store(key string, content []byte, header http.Header, etag string) *fakeObject {
	sum := md5.Sum(content)
	o := &fakeObject{content: content, etag: hex.EncodeToString(sum[:]) + etag, header: http.Header{}, modified: time.Now()}
	for name, values := range header {
		if strings.HasPrefix(strings.ToLower(name), "x-amz-meta-") || slices.Contains(keptHeaders, name) {
			o.header[name] = values
		}
	}
	f.objects[key] = o
	f.past.add(key, o)
	return o
}

func answer(r *http.Request, status int, body []byte, header http.Header) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	a := &http.Response{StatusCode: status, Header: header, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}
	if r.Method == http.MethodHead {
		a.Body = http.NoBody
	}
	if header.Get("Content-Length") == "" {
		header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	return a
}

func refuse(r *http.Request, status int, code string) *http.Response {
	return answer(r, status, []byte("<Error><Code>"+code+"</Code><Message>no: "+code+"</Message></Error>"), http.Header{"Content-Type": {"application/xml"}})
}

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

func (f *fake) serve(r *http.Request, body []byte) *http.Response {
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	q := r.URL.Query()
	switch {
	case key == "" && q.Has("uploads"):
		return f.listUploads(r)
	case f.past != nil && (q.Has("versioning") || q.Has("versions") || q.Has("versionId")):
		return f.servePast(r, q, key)
	case key == "":
		return f.list(r, q)
	case q.Has("uploads"):
		f.next++
		id := strconv.Itoa(f.next)
		f.uploads[id] = &fakeUpload{key: key, parts: map[int]*fakeObject{}, fakeObject: fakeObject{header: r.Header, modified: time.Now()}}
		return answer(r, 200, []byte("<InitiateMultipartUploadResult><UploadId>"+id+"</UploadId></InitiateMultipartUploadResult>"), nil)
	case q.Has("uploadId"):
		return f.upload(r, q, key, body)
	}
	switch r.Method {
	case http.MethodPut:
		return f.write(r, key, body)
	case http.MethodDelete:
		if a := f.check(r, key, 404); a != nil {
			return a
		}
		delete(f.objects, key)
		f.past.add(key, nil)
		return answer(r, 204, nil, nil)
	}
	return f.read(r, key)
}

// check is the conditions.
func (f *fake) check(r *http.Request, key string, missing int) *http.Response {
	o := f.objects[key]
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	switch {
	case f.careless:
	case match != "" && o == nil:
		return refuse(r, missing, map[int]string{404: "NoSuchKey", 412: "PreconditionFailed"}[missing])
	case match != "" && match != `"`+o.etag+`"`, none != "" && o != nil:
		return refuse(r, 412, "PreconditionFailed")
	}
	return nil
}

func (f *fake) write(r *http.Request, key string, body []byte) *http.Response {
	if a := f.check(r, key, 404); a != nil {
		return a
	}
	if sum := r.Header.Get("Content-Md5"); sum != "" {
		if got := md5.Sum(body); base64.StdEncoding.EncodeToString(got[:]) != sum {
			return refuse(r, 400, "BadDigest")
		}
	}
	if r.Header.Get("X-Amz-Copy-Source") == "" {
		o := f.store(key, body, r.Header, "")
		return answer(r, 200, nil, http.Header{"Etag": {`"` + o.etag + `"`}})
	}
	source, a := f.source(r)
	if a != nil {
		return a
	}
	h := r.Header.Clone()
	if tags := source.header["X-Amz-Tagging"]; h.Get("X-Amz-Tagging-Directive") != "REPLACE" && tags != nil {
		h["X-Amz-Tagging"] = tags
	}
	o := f.store(key, source.content, h, "")
	return answer(r, 200, []byte(`<CopyObjectResult><ETag>"`+o.etag+`"</ETag></CopyObjectResult>`), nil)
}

func (f *fake) source(r *http.Request) (*fakeObject, *http.Response) {
	plain, _ := url.PathUnescape(r.Header.Get("X-Amz-Copy-Source"))
	_, key, _ := strings.Cut(strings.TrimPrefix(plain, "/"), "/")
	o := f.objects[key]
	if o == nil {
		return nil, refuse(r, 404, "NoSuchKey")
	}
	if match := r.Header.Get("X-Amz-Copy-Source-If-Match"); match != "" && match != `"`+o.etag+`"` {
		return nil, refuse(r, 412, "PreconditionFailed")
	}
	return o, nil
}

func (f *fake) read(r *http.Request, key string) *http.Response {
	o := f.objects[key]
	if o == nil {
		return refuse(r, 404, "NoSuchKey")
	}
	if a := f.check(r, key, 404); a != nil {
		return a
	}
	if r.URL.Query().Has("tagging") {
		return giveTags(r, o)
	}
	return give(r, o)
}

func giveTags(r *http.Request, o *fakeObject) *http.Response {
	var out struct {
		XMLName xml.Name                      `xml:"Tagging"`
		Tags    []struct{ Key, Value string } `xml:"TagSet>Tag"`
	}
	tags, _ := url.ParseQuery(o.header.Get("X-Amz-Tagging"))
	for name, values := range tags {
		out.Tags = append(out.Tags, struct{ Key, Value string }{name, values[0]})
	}
	b, _ := xml.Marshal(out)
	return answer(r, 200, b, http.Header{"Content-Type": {"application/xml"}})
}

// give answers with an object.
func give(r *http.Request, o *fakeObject) *http.Response {
	h := o.header.Clone()
	if tags := h.Get("X-Amz-Tagging"); tags != "" {
		h.Set("X-Amz-Tagging-Count", strconv.Itoa(strings.Count(tags, "&")+1))
		h.Del("X-Amz-Tagging")
	}
	h.Set("Etag", `"`+o.etag+`"`)
	h.Set("Last-Modified", o.modified.UTC().Format(http.TimeFormat))
	content, status := o.content, 200
	if asked, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
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

func (f *fake) upload(r *http.Request, q url.Values, key string, body []byte) *http.Response {
	u := f.uploads[q.Get("uploadId")]
	if u == nil {
		return refuse(r, 404, "NoSuchUpload")
	}
	n, _ := strconv.Atoi(q.Get("partNumber"))
	switch {
	case r.Method == http.MethodDelete:
		delete(f.uploads, q.Get("uploadId"))
		return answer(r, 204, nil, nil)
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		source, a := f.source(r)
		if a != nil {
			return a
		}
		var first, last int
		fmt.Sscanf(r.Header.Get("X-Amz-Copy-Source-Range"), "bytes=%d-%d", &first, &last)
		u.parts[n] = &fakeObject{content: source.content[first : last+1]}
		return answer(r, 200, []byte(`<CopyPartResult><ETag>"part"</ETag></CopyPartResult>`), nil)
	case r.Method == http.MethodPut:
		sum := md5.Sum(body)
		u.parts[n] = &fakeObject{content: body}
		return answer(r, 200, nil, http.Header{"Etag": {`"` + hex.EncodeToString(sum[:]) + `"`}})
	}
	if a := f.check(r, key, 404); a != nil {
		return a
	}
	var content []byte
	for _, n := range slices.Sorted(maps.Keys(u.parts)) {
		content = append(content, u.parts[n].content...)
	}
	o := f.store(key, content, u.header, "-"+strconv.Itoa(len(u.parts)))
	delete(f.uploads, q.Get("uploadId"))
	return answer(r, 200, []byte(`<CompleteMultipartUploadResult><ETag>"`+o.etag+`"</ETag></CompleteMultipartUploadResult>`), nil)
}

func (f *fake) listUploads(r *http.Request) *http.Response {
	var b strings.Builder
	b.WriteString("<ListMultipartUploadsResult>")
	for id, u := range f.uploads {
		fmt.Fprintf(&b, "<Upload><Key>%s</Key><UploadId>%s</UploadId><Initiated>%s</Initiated></Upload>", u.key, id, u.modified.UTC().Format(time.RFC3339))
	}
	b.WriteString("</ListMultipartUploadsResult>")
	return answer(r, 200, []byte(b.String()), nil)
}

type listResult struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	EncodingType          string
	IsTruncated           bool
	NextContinuationToken string       `xml:",omitempty"`
	Contents              []listObject `xml:"Contents"`
	CommonPrefixes        []listPrefix `xml:"CommonPrefixes"`
}

type listObject struct {
	Key, ETag, LastModified string
	Size                    int
}

type listPrefix struct{ Prefix string }

func (f *fake) list(r *http.Request, q url.Values) *http.Response {
	limit, err := strconv.Atoi(q.Get("max-keys"))
	if err != nil {
		limit = 1000
	}
	token, err := hex.DecodeString(q.Get("continuation-token"))
	if err != nil {
		return refuse(r, 400, "InvalidArgument")
	}
	after := max(q.Get("start-after"), string(token))
	out := listResult{EncodingType: q.Get("encoding-type")}
	lastPrefix, last := "", ""
	keys := slices.Sorted(maps.Keys(f.objects))
	if f.mixes {
		slices.Reverse(keys)
	}
	for _, key := range keys {
		rest, ok := strings.CutPrefix(key, q.Get("prefix"))
		passed := key <= after
		if f.mixes { // and have no start-after
			passed = len(token) > 0 && key >= string(token)
		}
		if !ok || passed || lastPrefix != "" && strings.HasPrefix(key, lastPrefix) {
			continue
		}
		if q.Get("delimiter") != "" && strings.HasSuffix(after, "/") && strings.HasPrefix(key, after) && after != q.Get("prefix") {
			continue // the common prefix that the page before ended with
		}
		if len(out.Contents)+len(out.CommonPrefixes) == limit {
			out.IsTruncated, out.NextContinuationToken = true, hex.EncodeToString([]byte(last))
			break
		}
		if i := strings.Index(rest, "/"); i >= 0 && q.Get("delimiter") == "/" {
			if f.hides && f.objects[q.Get("prefix")+rest[:i]] != nil {
				continue
			}
			lastPrefix = q.Get("prefix") + rest[:i+1]
			last = lastPrefix
			out.CommonPrefixes = append(out.CommonPrefixes, listPrefix{url.QueryEscape(lastPrefix)})
			continue
		}
		o := f.objects[key]
		last = key
		out.Contents = append(out.Contents, listObject{url.QueryEscape(key), `"` + o.etag + `"`, o.modified.UTC().Format("2006-01-02T15:04:05.000Z"), len(o.content)})
	}
	body, err := xml.Marshal(out)
	if err != nil {
		panic(err)
	}
	return answer(r, 200, body, nil)
}

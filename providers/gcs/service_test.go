package gcs

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gcsserver"
	"github.com/wsmount/wsmount/providers"
)

var unconditional = providers.WriteOptions{If: providers.Unconditional()}

func mustWrite(t *testing.T, p *Provider, name, content string, opts providers.WriteOptions) providers.Info {
	t.Helper()
	opts.If = providers.Unconditional()
	return assert.Of(p.Write(t.Context(), loc(name), providers.String(content), opts)).OK(t)
}

// spent is what a call costs, as the service names its requests.
func spent(p *Provider, call func()) map[string]int64 {
	before := p.Requests()
	call()
	got := map[string]int64{}
	for name, count := range p.Requests() {
		if n := count.Requests - before[name].Requests; n > 0 {
			got[name] = n
		}
	}
	return got
}

// A link is one for gcsfuse, of any version, and a time is one for rclone and Google's tools.
func TestWordsForOthers(t *testing.T) {
	f := gcsserver.New()
	p := openFake(t, f, nil)
	at := providers.Attr{Valid: providers.AttrModTime | providers.AttrMode, Mode: 0o600, ModTime: time.Unix(1e9, 0)}
	link := mustWrite(t, p, "l", "d/f", providers.WriteOptions{Kind: providers.KindSymlink})
	mustWrite(t, p, "f", "content", providers.WriteOptions{Attr: at})
	for range 2 { // as it was written, and after a change
		for key, want := range map[string]map[string]string{
			"pre/l": {"goog-reserved-file-is-symlink": "true", "gcsfuse_symlink_target": "d/f"},
			"pre/f": {"goog-reserved-file-mtime": "1000000000", "mtime": "2001-09-09T01:46:40Z", "goog-reserved-posix-mode": "600"},
		} {
			_, got := f.Get(key)
			for name, value := range want {
				assert.Equal(t, got[name], value, key, name)
			}
		}
		content, info, err := providers.Fetch(t.Context(), p, loc("l"), providers.ReadOptions{})
		assert.True(t, err == nil && string(content) == "d/f" && info.Kind == providers.KindSymlink && info.Digest == link.Digest, "read:", content, info, err)
		assert.OK(t, assert.ErrOf(p.SetAttr(t.Context(), loc("l"), providers.SetAttrOptions{If: providers.IfVersion(info.Version), Attr: at})))
	}
}

// What each verb costs. An index would add to it, of which nothing is needed.
func TestRequests(t *testing.T) {
	f := gcsserver.New()
	p := openFake(t, f, nil)
	file := mustWrite(t, p, "dir/a", "content", providers.WriteOptions{})
	assert.OK(t, assert.ErrOf(p.Mkdir(t.Context(), loc("dir/sub"), providers.MkdirOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}})))
	drop := func(_ any, err error) error { return err }
	for _, c := range []struct {
		name string
		call func() error
		want map[string]int64
	}{
		{"stat", func() error { return drop(p.Stat(t.Context(), loc("dir/a"))) }, map[string]int64{"objects.get": 1}},
		{"list", func() error { return drop(p.List(t.Context(), loc("dir"), providers.ListOptions{})) }, map[string]int64{"objects.list": 1}},
		{"recursive list", func() error { return drop(p.List(t.Context(), loc(""), providers.ListOptions{Recursive: true})) }, map[string]int64{"objects.list": 1}},
		{"read", func() error {
			_, _, err := providers.Fetch(t.Context(), p, loc("dir/a"), providers.ReadOptions{Version: file.Version})
			return err
		}, map[string]int64{download: 1}},
		{"create", func() error {
			return drop(p.Write(t.Context(), loc("dir/new"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()}))
		}, map[string]int64{"objects.insert": 1}},
		{"change of mode", func() error {
			return drop(p.SetAttr(t.Context(), loc("dir/new"), providers.SetAttrOptions{If: providers.Unconditional(), Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}}))
		}, map[string]int64{"objects.get": 1, "objects.patch": 1}},
		{"copy", func() error {
			return drop(p.Copy(t.Context(), loc("dir/a"), loc("dir/copy"), providers.CopyOptions{If: providers.IfAbsent()}))
		}, map[string]int64{"objects.get": 1, "objects.rewrite": 1}},
		{"delete", func() error {
			return p.Delete(t.Context(), loc("dir/a"), providers.DeleteOptions{If: providers.IfVersion(file.Version)})
		}, map[string]int64{"objects.delete": 1}},
	} {
		var err error
		got := spent(p, func() { err = c.call() })
		assert.True(t, err == nil && maps.Equal(got, c.want), c.name, got, c.want, err)
	}
	page := assert.Of(p.List(t.Context(), loc("dir"), providers.ListOptions{})).OK(t)
	for _, info := range page.Entries {
		assert.False(t, info.Locator == loc("dir/sub") && info.Attr.Mode != 0o700, "a listing says of a directory", info)
	}
}

// What is larger than a chunk goes chunk by chunk: one that does not arrive is sent again, alone.
// Conditions hold at its end, and no chunk goes where the service did not say.
func TestResumableUpload(t *testing.T) {
	f := gcsserver.New()
	p := openFake(t, f, nil)
	p.Store.chunk = 256 << 10
	content := strings.Repeat("0123456789abcdef", 40<<10)
	var asked int
	f.Before = func(w http.ResponseWriter, r *http.Request, op string) bool {
		if op != "insert" {
			return false
		}
		asked++
		if asked == 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return asked == 3
	}
	var made providers.Info
	got := spent(p, func() {
		made = mustWrite(t, p, "a", content, providers.WriteOptions{Metadata: map[string]string{"colour": "red"}})
	})
	assert.Equal(t, got["objects.insert"], 1+3+1, "a session, three chunks, and one again")
	back, info, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{Version: made.Version})
	assert.True(t, err == nil && string(back) == content && info.Metadata["colour"] == "red", len(back), info, err)
	_, err = p.Write(t.Context(), loc("a"), providers.String(content), providers.WriteOptions{If: providers.IfAbsent()})
	assert.Is(t, err, providers.ErrExist, "over a file")

	f.Set(func() {
		f.Before = func(w http.ResponseWriter, r *http.Request, op string) bool {
			w.Header().Set("Location", "http://elsewhere.invalid/?upload_id=1")
			return op == "insert"
		}
	})
	_, err = p.Write(t.Context(), loc("b"), providers.String(content), providers.WriteOptions{If: providers.IfAbsent()})
	assert.True(t, errors.Is(err, providers.ErrUnavailable) && strings.Contains(err.Error(), "Location"), err)
}

// Of more than 32 parts, larger ones are made first, and nothing of either stays, nor after a
// refusal.
func TestManyParts(t *testing.T) {
	f := gcsserver.New()
	p := openFake(t, f, nil)
	for _, n := range []int{1, 32, 33, 32*32 + 1} {
		u := assert.Of(p.StartParts(t.Context(), loc("large"), unconditional)).OK(t)
		var want bytes.Buffer
		for i := range n {
			text := fmt.Sprintf("<%d>", i)
			want.WriteString(text)
			assert.OK(t, u.Part(t.Context(), i+1, providers.String(text)))
		}
		assert.OK(t, assert.ErrOf(u.Complete(t.Context())), n, "parts")
		content, _, err := providers.Fetch(t.Context(), p, loc("large"), providers.ReadOptions{})
		assert.True(t, err == nil && bytes.Equal(content, want.Bytes()), n, "parts", len(content), err)
		assert.Slice(t, f.Keys(), []string{"pre/large"}, n, "parts left")
	}
	u, err := p.StartParts(t.Context(), loc("large"), providers.WriteOptions{If: providers.IfAbsent()})
	for n := range 40 {
		err = errors.Join(err, u.Part(t.Context(), n+1, providers.String("x")))
	}
	_, refused := u.Complete(t.Context())
	err = errors.Join(err, u.Abort(t.Context()))
	assert.True(t, err == nil && errors.Is(refused, providers.ErrExist), "an upload over a file:", refused, err)
	assert.Slice(t, f.Keys(), []string{"pre/large"}, "a refused upload left")
}

// A part that another put in the place of ours makes nothing.
func TestPartsAreOfTheirGeneration(t *testing.T) {
	f := gcsserver.New()
	p := openFake(t, f, nil)
	u := assert.Of(p.StartParts(t.Context(), loc("large"), unconditional)).OK(t)
	assert.OK(t, u.Part(t.Context(), 1, providers.String("ours")))
	f.Put(f.Keys()[0], "another's", nil)
	assert.Is(t, assert.ErrOf(u.Complete(t.Context())), providers.ErrConflict, "complete")
}

// One whose attributes another has changed is another version, of the same content.
func TestVersionsHaveTheirAttributes(t *testing.T) {
	p := openFake(t, gcsserver.New(), nil)
	was := providers.IfVersion(mustWrite(t, p, "a", "content", providers.WriteOptions{}).Version)
	_, err := p.SetAttr(t.Context(), loc("a"), providers.SetAttrOptions{If: was, Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}})
	assert.OK(t, err)
	assert.Is(t, p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: was}), providers.ErrConflict, "delete")
	assert.Is(t, assert.ErrOf(p.Write(t.Context(), loc("a"), providers.String("new"), providers.WriteOptions{If: was})), providers.ErrConflict, "write")
}

// What was looked at is changed or copied in that version alone, however late another writes
// there.
func TestAnotherWritesMeanwhile(t *testing.T) {
	mode := providers.SetAttrOptions{If: providers.Unconditional(), Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}}
	for _, c := range []struct {
		before string // a request of this name
		change func(*Provider) error
	}{
		{"objects.patch", func(p *Provider) error { return assert.ErrOf(p.SetAttr(t.Context(), loc("a"), mode)) }},
		{"objects.rewrite", func(p *Provider) error {
			return assert.ErrOf(p.Copy(t.Context(), loc("a"), loc("b"), providers.CopyOptions{If: providers.Unconditional()}))
		}},
	} {
		t.Run(c.before, func(t *testing.T) {
			f := gcsserver.New()
			var another atomic.Bool
			p, err := openFakeErr(t, f, providers.Settings{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				if nameOf(r) == c.before && another.CompareAndSwap(true, false) {
					f.Put("pre/a", "another's", nil)
				}
				return http.DefaultTransport.RoundTrip(r)
			})})
			assert.OK(t, err)
			f.Put("pre/a", "ours", nil)
			another.Store(true) // the requests of opening it are past
			assert.Is(t, c.change(p), providers.ErrConflict)
			content, metadata := f.Get("pre/a")
			assert.Equal(t, content, "another's")
			assert.Equal(t, len(metadata), 0, metadata)
			assert.Slice(t, f.Keys(), []string{"pre/a"})
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What an object had and was not given again is gone, the header that the service does not have
// too.
func TestPatchReplaces(t *testing.T) {
	f := gcsserver.New()
	p := openFake(t, f, nil)
	mustWrite(t, p, "a", "content", providers.WriteOptions{Metadata: map[string]string{
		"colour": "red", "size": "small", providers.HeaderMetadata + "expires": "Thu, 01 Jan 2026 00:00:00 GMT", providers.HeaderMetadata + "cache-control": "no-store",
	}})
	want := map[string]string{"colour": "blue", providers.HeaderMetadata + "content-language": "de"}
	set := assert.Of(p.SetAttr(t.Context(), loc("a"), providers.SetAttrOptions{If: providers.Unconditional(), Metadata: want})).OK(t)
	content, read, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{Version: set.Version})
	assert.True(t, err == nil && string(content) == "content", "read", content, err)
	stat, err := p.Stat(t.Context(), loc("a"))
	if err != nil || !maps.Equal(stat.Metadata, want) || !maps.Equal(read.Metadata, want) || !maps.Equal(set.Metadata, want) {
		t.Errorf("set %q, read %q, stat %q, %v; want %q", set.Metadata, read.Metadata, stat.Metadata, err, want)
	}
}

// What an object is served with is told by each verb.
func TestHeaders(t *testing.T) {
	p := openFake(t, gcsserver.New(), nil)
	want := map[string]string{"colour": "red"}
	for name, value := range map[string]string{
		"content-type": "text/x-own", "cache-control": "no-store", "content-disposition": "attachment", "content-encoding": "gzip",
		"content-language": "de", "expires": "Thu, 01 Jan 2026 00:00:00 GMT", "storage-class": "NEARLINE",
	} {
		want[providers.HeaderMetadata+name] = value
	}
	mustWrite(t, p, "a", "packed", providers.WriteOptions{Metadata: want})
	assert.OK(t, assert.ErrOf(p.Copy(t.Context(), loc("a"), loc("b"), providers.CopyOptions{If: providers.IfAbsent()})))
	for _, name := range []string{"a", "b"} {
		stat, err := p.Stat(t.Context(), loc(name))
		content, read, readErr := providers.Fetch(t.Context(), p, loc(name), providers.ReadOptions{})
		if err = errors.Join(err, readErr); err != nil || string(content) != "packed" || !maps.Equal(stat.Metadata, want) || !maps.Equal(read.Metadata, want) {
			t.Errorf("%s: stat %q, read %q of %q, %v", name, stat.Metadata, read.Metadata, content, err)
		}
	}
}

// A version is found by its generation while the bucket keeps it.
func TestPast(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		f := gcsserver.New()
		f.Versioned = keeps
		p := openFake(t, f, nil)
		old := mustWrite(t, p, "a", "old", providers.WriteOptions{})
		mustWrite(t, p, "a", "new", providers.WriteOptions{})
		content, _, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{Version: old.Version, Past: true})
		switch {
		case keeps && (err != nil || string(content) != "old"):
			t.Errorf("read %q, %v", content, err)
		case !keeps && !errors.Is(err, providers.ErrNotExist):
			t.Errorf("of a bucket that keeps nothing: %v", err)
		}
	}
}

// At Open it is a mistake, and later it may come back.
func TestMissingBucket(t *testing.T) {
	f := gcsserver.New()
	p := openFake(t, f, nil)
	mustWrite(t, p, "a", "x", providers.WriteOptions{})
	f.Set(func() { f.Missing = true })
	_, statErr := p.Stat(t.Context(), loc("a"))
	_, _, readErr := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{})
	_, listErr := p.List(t.Context(), loc(""), providers.ListOptions{})
	for verb, err := range map[string]error{"stat": statErr, "read": readErr, "list": listErr} {
		assert.True(t, errors.Is(err, providers.ErrUnavailable) && !errors.Is(err, providers.ErrNotExist), verb, err)
	}
	assert.Is(t, assert.ErrOf(openFakeErr(t, f, providers.Settings{})), providers.ErrNotExist, "open")
}

// What is not the service's is no success, and tells of no deletion.
func TestForeignAnswers(t *testing.T) {
	page := func(status int, content string) func(w http.ResponseWriter, r *http.Request, op string) bool {
		return func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			w.Header().Set("Content-Type", content)
			w.WriteHeader(status)
			fmt.Fprint(w, "<html>please log in</html>")
			return true
		}
	}
	for _, answer := range []func(http.ResponseWriter, *http.Request, string) bool{
		page(200, "text/html"), page(200, "application/json"), page(404, "text/html"), page(302, "text/html"), page(503, "text/html"),
	} {
		f := gcsserver.New()
		p := openFake(t, f, nil)
		mustWrite(t, p, "a", "x", providers.WriteOptions{})
		f.Set(func() { f.Before = answer })
		_, statErr := p.Stat(t.Context(), loc("a"))
		_, _, readErr := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{})
		_, listErr := p.List(t.Context(), loc(""), providers.ListOptions{})
		_, writeErr := p.Write(t.Context(), loc("a"), providers.String("y"), unconditional)
		deleteErr := p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.Unconditional()})
		for verb, err := range map[string]error{"stat": statErr, "read": readErr, "list": listErr, "write": writeErr, "delete": deleteErr} {
			assert.Is(t, err, providers.ErrUnavailable, verb)
		}
	}
}

// Content that was packed or unpacked on the way is not passed on.
func TestChangedContent(t *testing.T) {
	f := gcsserver.New()
	p := openFake(t, f, nil)
	mustWrite(t, p, "a", "content", providers.WriteOptions{})
	f.Set(func() {
		f.Before = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			w.Header().Set("Content-Encoding", "gzip")
			return false
		}
	})
	_, _, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{})
	assert.Is(t, err, providers.ErrCorrupt, "read", err)
}

// Each reason means something, and a status when there is none.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		status int
		text   string
		want   error
	}{
		{404, `{"error":{"code":404,"message":"No such object: b/k","errors":[{"reason":"notFound"}]}}`, providers.ErrNotExist},
		{404, `{"error":{"code":404,"message":"The specified bucket does not exist.","errors":[{"reason":"notFound"}]}}`, providers.ErrUnavailable},
		{404, `{"error":{"code":404,"message":"Not Found","errors":[{"reason":"notFound"}]}}`, providers.ErrUnavailable},
		{404, `{"error":{"code":404,"message":"Object k (generation: 0) not found.","errors":[{"reason":"notFound"}]}}`, providers.ErrNotExist},
		{404, `<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>`, providers.ErrNotExist},
		{404, `<Error><Code>NoSuchBucket</Code></Error>`, providers.ErrUnavailable},
		{412, `{"error":{"errors":[{"reason":"conditionNotMet"}]}}`, providers.ErrConflict},
		{400, `{"error":{"message":"Provided MD5 hash \"x\" doesn't match calculated MD5 hash \"y\".","errors":[{"reason":"invalid"}]}}`, providers.ErrCorrupt},
		{400, `{"error":{"message":"Invalid argument","errors":[{"reason":"invalid"}]}}`, providers.ErrInvalid},
		{401, `{"error":{"errors":[{"reason":"authError"}]}}`, providers.ErrUnauthenticated},
		{401, `{"error":{"message":"Anonymous caller does not have storage.objects.list access","errors":[{"reason":"required"}]}}`, providers.ErrUnauthenticated},
		{403, `{"error":{"errors":[{"reason":"forbidden"}]}}`, providers.ErrPermission},
		{403, `{"error":{"errors":[{"reason":"rateLimitExceeded"}]}}`, providers.ErrUnavailable},
		{403, `{"error":{"errors":[{"reason":"retentionPolicyNotMet"}]}}`, providers.ErrPermission},
		{429, ``, providers.ErrUnavailable},
		{500, `not JSON`, providers.ErrUnavailable},
		{503, `{"error":{"errors":[{"reason":"backendError"}]}}`, providers.ErrUnavailable},
		{307, ``, providers.ErrUnavailable},
	} {
		f := gcsserver.New()
		p := openFake(t, f, nil)
		f.Set(func() {
			f.Before = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.text)
				return true
			}
		})
		assert.Is(t, assert.ErrOf(p.Store.Head(t.Context(), "k")), c.want, c.status, c.text)
	}
}

// One that is opened for reading asks once, and changes nothing.
func TestReadOnly(t *testing.T) {
	f := gcsserver.New()
	p := assert.Of(openFakeErr(t, f, providers.Settings{ReadOnly: true})).OK(t)
	assert.Is(t, assert.ErrOf(p.Write(t.Context(), loc("a"), providers.String("x"), unconditional)), providers.ErrReadOnly, "write")
	for _, op := range f.Seen() {
		assert.True(t, op == "list" || op == "get", "asked for", op)
	}
}

// Whatever bytes keys have, they are listed, read and deleted as they are.
func TestKeysOnTheWay(t *testing.T) {
	keys := []string{"plus+ space&=#?", "%~.", "é/漢", "ctl\x01", "s//t", "x%2F", "semi;colon", "q?a=b", "per%cent"}
	f := gcsserver.New()
	p := openFake(t, f, nil)
	for _, key := range keys {
		f.Put("pre/"+key, "of "+key, nil)
	}
	var got []string
	for info, err := range providers.All(t.Context(), p, loc(""), providers.ListOptions{Recursive: true}) {
		assert.OK(t, err)
		if info.Kind == providers.KindDir {
			continue
		}
		content, _, err := providers.Fetch(t.Context(), p, info.Locator, providers.ReadOptions{})
		if err == nil {
			err = p.Delete(t.Context(), info.Locator, providers.DeleteOptions{If: providers.Unconditional()})
		}
		assert.True(t, err == nil, info.Locator, err)
		got = append(got, strings.TrimPrefix(string(content), "of "))
	}
	slices.Sort(got)
	slices.Sort(keys)
	assert.True(t, slices.Equal(got, keys) && len(f.Keys()) == 0, got, keys, "left", f.Keys())
}

// A page may end between a directory and its marker. The directory is told once, with what the
// marker says.
func TestMarkerOnTheNextPage(t *testing.T) {
	f := gcsserver.New()
	p := openFake(t, f, nil)
	private := providers.MkdirOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}}
	assert.OK(t, assert.ErrOf(p.Mkdir(t.Context(), loc("d"), private)))
	marker := assert.Of(f.Resource("pre/d/")).OK(t)
	f.Set(func() {
		f.Before = func(w http.ResponseWriter, r *http.Request, op string) bool {
			if op != "list" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Query().Get("pageToken") == "" {
				fmt.Fprint(w, `{"kind":"storage#objects","prefixes":["pre/d/"],"nextPageToken":"next"}`)
			} else {
				fmt.Fprintf(w, `{"kind":"storage#objects","items":[%s]}`, marker)
			}
			return true
		}
	})
	var got []string
	for info, err := range providers.All(t.Context(), p, loc(""), providers.ListOptions{}) {
		assert.OK(t, err)
		got = append(got, fmt.Sprintf("%s %o", info.Locator, info.Attr.Mode))
	}
	assert.Slice(t, got, []string{"d 700"})
}

// What ignores a condition is not opened, but for reading. Nothing of the probe stays. Google's
// own endpoints are not tried.
func TestProbe(t *testing.T) {
	for _, op := range []string{"insert", "patch", "rewrite", "compose", "delete", ""} {
		f := gcsserver.New()
		f.Careless = op
		_, err := openFakeErr(t, f, providers.Settings{})
		if op == "" {
			assert.OK(t, err)
		} else {
			assert.Is(t, err, providers.ErrUnsupported, op)
			assert.Contains(t, fmt.Sprint(err), "objects."+op)
		}
		assert.Equal(t, len(f.Keys()), 0, op, "keys left")
		assert.OK(t, assert.ErrOf(openFakeErr(t, f, providers.Settings{ReadOnly: true})), op)
	}
	for endpoint, want := range map[string]bool{
		public: true, "https://storage.europe-west3.rep.googleapis.com": true, "https://storage-x.p.googleapis.com": true,
		"http://storage.googleapis.com": false, "https://evilgoogleapis.com": false, "https://googleapis.com.evil.example": false,
	} {
		assert.Equal(t, isGoogles(endpoint), want, endpoint)
	}
}

// Doctor hears where the bucket is, and what it keeps, if it may know.
func TestExamine(t *testing.T) {
	f := gcsserver.New()
	p := openFake(t, f, nil)
	for want, answer := range map[string]string{
		"eu":       `{"kind":"storage#bucket","location":"EU","versioning":{"enabled":true},"softDeletePolicy":{"retentionDurationSeconds":"604800"}}`,
		"not told": `{"error":{"errors":[{"reason":"forbidden"}]}}`,
	} {
		f.Set(func() {
			f.Before = func(w http.ResponseWriter, r *http.Request, _ string) bool {
				if r.URL.Path != "/storage/v1/b/"+gcsserver.Bucket {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				if strings.Contains(answer, "error") {
					w.WriteHeader(http.StatusForbidden)
				}
				fmt.Fprint(w, answer)
				return true
			}
		})
		found := false
		for _, one := range p.Examine(t.Context()) {
			found = found || strings.HasPrefix(one.Says, want)
			assert.True(t, one.Grade != providers.Bad && (one.Grade == providers.Good || one.Do != ""), one)
		}
		assert.True(t, found, "nothing says", want)
	}
	keys := f.Keys()
	assert.True(t, len(keys) == 0, "left", keys)
}

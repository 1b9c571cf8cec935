package s3

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/s3server"
	"github.com/wsmount/wsmount/providers"
)

// fakePast are the versions that a fake keeps.
type fakePast struct {
	status string // of its versioning; "": there never was any
	page   int    // versions in a page
	had    []fakeVersion
}

// fakeVersion is what a key had from then on; without an object it is a delete marker.
type fakeVersion struct {
	key string
	o   *fakeObject
}

func (p *fakePast) add(key string, o *fakeObject) {
	if p != nil && p.status != "" {
		p.had = append(p.had, fakeVersion{key, o})
	}
}

func (f *fake) servePast(r *http.Request, q url.Values, key string) *http.Response {
	switch {
	case q.Has("versioning"):
		return answer(r, 200, []byte("<VersioningConfiguration>"+strings.Repeat("<Status>"+f.past.status+"</Status>", min(1, len(f.past.status)))+"</VersioningConfiguration>"), nil)
	case q.Has("versions"):
		return f.listPast(r, q)
	}
	i, err := strconv.Atoi(q.Get("versionId"))
	if err != nil || i >= len(f.past.had) || f.past.had[i].key != key || f.past.had[i].o == nil {
		return refuse(r, 404, "NoSuchVersion")
	}
	return give(r, f.past.had[i].o)
}

// listPast lists as S3 does: by key, and the newest of a key first.
func (f *fake) listPast(r *http.Request, q url.Values) *http.Response {
	var b strings.Builder
	b.WriteString("<ListVersionsResult><EncodingType>url</EncodingType>")
	told, begun := 0, q.Get("version-id-marker") == ""
	for _, key := range []string{q.Get("prefix"), q.Get("prefix") + "b"} {
		for i := len(f.past.had) - 1; i >= 0; i-- {
			had := f.past.had[i]
			if had.key != key {
				continue
			}
			if !begun {
				begun = strconv.Itoa(i) == q.Get("version-id-marker")
				continue
			}
			if told++; told > f.past.page {
				continue
			}
			common := fmt.Sprintf("<Key>%s</Key><VersionId>%d</VersionId>", url.QueryEscape(key), i)
			if had.o == nil {
				b.WriteString("<DeleteMarker>" + common + "</DeleteMarker>")
			} else {
				fmt.Fprintf(&b, "<Version>%s<ETag>&quot;%s&quot;</ETag><Size>%d</Size><LastModified>%s</LastModified></Version>", common, had.o.etag, len(had.o.content), had.o.modified.UTC().Format(time.RFC3339))
			}
			if told == f.past.page {
				fmt.Fprintf(&b, "<NextKeyMarker>%s</NextKeyMarker><NextVersionIdMarker>%d</NextVersionIdMarker>", url.QueryEscape(key), i)
			}
		}
	}
	fmt.Fprintf(&b, "<IsTruncated>%v</IsTruncated></ListVersionsResult>", told > f.past.page)
	return answer(r, 200, []byte(b.String()), nil)
}

// write puts content at a place, as often as there is some, and gives the last version.
func write(t *testing.T, p *Provider, name string, contents ...string) (v providers.Version) {
	t.Helper()
	for _, content := range contents {
		info := assert.Of(p.Write(t.Context(), loc(name), providers.String(content), providers.WriteOptions{If: providers.Unconditional()})).OK(t)
		v = info.Version
	}
	return v
}

func remove(t *testing.T, p *Provider, name string) {
	t.Helper()
	assert.OK(t, p.Delete(t.Context(), loc(name), providers.DeleteOptions{If: providers.Unconditional()}))
}

func readPast(t *testing.T, p *Provider, name string, v providers.Version) (string, error) {
	t.Helper()
	content, _, err := providers.Fetch(t.Context(), p, loc(name), providers.ReadOptions{Version: v, Past: true})
	return string(content), err
}

// askedForPast is how often a service was asked for versions.
func askedForPast(p *Provider) string {
	r := p.Requests()
	return fmt.Sprintf("%d %d", r["GetBucketVersioning"].Requests, r["ListObjectVersions"].Requests)
}

// An earlier version is read as long as the bucket has it, whatever came after it: other
// versions, a deletion, a name that is longer.
func TestReadPast(t *testing.T) {
	for _, status := range []string{"Enabled", "Suspended"} {
		f := newFake()
		f.past = &fakePast{status: status, page: 2}
		p := openFake(t, f, nil)
		first := write(t, p, "x y%/a", "first")
		remove(t, p, "x y%/a")
		second := write(t, p, "x y%/a", "2", "3", "4", "second")
		last := write(t, p, "x y%/a", "5", "6", "last")
		write(t, p, "x y%/ab", "another", "and another")
		for range 2 {
			for want, v := range map[string]providers.Version{"first": first, "second": second, "last": last} {
				assert.Of(readPast(t, p, "x y%/a", v)).Equal(t, want, status)
			}
			remove(t, p, "x y%/a")
		}
		assert.Equal(t, assert.Of(p.Stat(t.Context(), loc("x y%/ab"))).OK(t).Size, int64(len("and another")), "what is there")
		_, err := readPast(t, p, "x y%/a", providers.Version{ETag: "never", Size: 1})
		assert.Is(t, err, providers.ErrNotExist, status, "a version that never was")
		got := askedForPast(p)
		assert.True(t, strings.HasPrefix(got, "1 "), status, "requests", got)
	}
}

// A bucket without versioning costs one request, until it may have got some.
func TestNoVersioning(t *testing.T) {
	f := newFake()
	f.past = &fakePast{page: 2}
	p := openFake(t, f, nil)
	now := time.Now()
	p.Store.now = func() time.Time { return now }
	lost := write(t, p, "a", "lost")
	write(t, p, "a", "new")
	for range 3 {
		assert.Is(t, assert.ErrOf(readPast(t, p, "a", lost)), providers.ErrNotExist)
	}
	assert.Equal(t, askedForPast(p), "1 0", "requests")
	f.past.status = "Enabled"
	had := write(t, p, "a", "had", "new")
	had.ETag = etagOf("had")
	now = now.Add(versionsPause)
	assert.Of(readPast(t, p, "a", had)).Equal(t, "had")
}

func etagOf(content string) string {
	f := newFake()
	f.put("", content, nil)
	return f.objects[""].etag
}

// That versions may not be listed or read, or are not known, is said as such, and asked
// once.
func TestPastIsRefused(t *testing.T) {
	refusing := func(param, code string, status int) func(*http.Request) *http.Response {
		return func(r *http.Request) *http.Response {
			if r.URL.Query().Has(param) {
				return refuse(r, status, code)
			}
			return nil
		}
	}
	versioned := func(f *fake) { f.past = &fakePast{status: "Enabled", page: 9} }
	for name, c := range map[string]struct {
		with   func(*fake)
		refuse func(*http.Request) *http.Response
		want   error
		says   string
		asked  string
	}{
		"may not list":         {versioned, refusing("versions", "AccessDenied", 403), providers.ErrPermission, "s3:ListBucketVersions", "1 1"},
		"may not read":         {versioned, refusing("versionId", "AccessDenied", 403), providers.ErrPermission, "s3:GetObjectVersion", "1 2"},
		"has no such call":     {versioned, refusing("versions", "NotImplemented", 501), providers.ErrUnsupported, "does not list versions", "1 1"},
		"takes it for another": {func(*fake) {}, nil, providers.ErrUnsupported, "does not list versions", "1 1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			c.with(f)
			p := openFake(t, f, nil)
			lost := write(t, p, "a", "lost")
			remove(t, p, "a")
			if c.refuse != nil {
				inner := p.Store.way.Inner
				p.Store.way.Inner = answering(func(r *http.Request) (*http.Response, error) {
					if a := c.refuse(r); a != nil {
						return a, nil
					}
					return inner.RoundTrip(r)
				})
			}
			for range 2 {
				_, err := readPast(t, p, "a", lost)
				assert.True(t, errors.Is(err, c.want) && strings.Contains(err.Error(), c.says), "got", err, "want", c.want, "with", c.says)
			}
			assert.Equal(t, askedForPast(p), c.asked, "requests")
		})
	}
	// Who may not ask for the configuration may list all the same.
	f := newFake()
	versioned(f)
	p := openFake(t, f, nil)
	lost := write(t, p, "a", "lost")
	remove(t, p, "a")
	f.queue = append(f.queue, nil, refusing("versioning", "AccessDenied", 403))
	assert.Of(readPast(t, p, "a", lost)).Equal(t, "lost")
}

// A real server with versioning gives what was there before.
func TestVersitygwWithVersions(t *testing.T) {
	w := &world{kind: s3server.Versitygw, server: s3server.StartVersioned(t)}
	w.first = w.open(t, nil, nil)
	p := w.fork(t)
	first := write(t, p, "dir/a", "first")
	second := write(t, p, "dir/a", "second")
	remove(t, p, "dir/a")
	write(t, p, "dir/ab", "another")
	for want, v := range map[string]providers.Version{"first": first, "second": second} {
		assert.Of(readPast(t, p, "dir/a", v)).Equal(t, want)
	}
	assert.Is(t, assert.ErrOf(readPast(t, p, "dir/a", providers.Version{ETag: "never", Size: 1})), providers.ErrNotExist, "a version that never was")
}

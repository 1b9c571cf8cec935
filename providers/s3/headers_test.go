package s3

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/providers"
)

// webPage are headers of an object as other programs set them.
func webPage() http.Header {
	return http.Header{"Content-Type": {"text/html; charset=latin1"}, "Cache-Control": {"max-age=60"}, "Content-Encoding": {"gzip"},
		"Content-Disposition": {`attachment; filename="x"`}, "Content-Language": {"de"}, "Expires": {"Mon, 02 Jan 2006 15:04:05 GMT"}}
}

// headersAt are the standard headers of an object of the bucket.
func headersAt(f *fake, key string) http.Header {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.objects[key] == nil {
		return nil
	}
	h := f.objects[key].header.Clone()
	maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.HasPrefix(strings.ToLower(name), "x-amz-") })
	return h
}

func sameHeaders(a, b http.Header) bool {
	return maps.EqualFunc(a, b, func(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") })
}

// rewrites are all ways to write an object anew with what is told of it.
var rewrites = map[string]func(t *testing.T, p *Provider, info providers.Info) (providers.Info, error){
	"write": func(t *testing.T, p *Provider, info providers.Info) (providers.Info, error) {
		return p.Write(t.Context(), loc("new"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent(), Metadata: info.Metadata})
	},
	"large write": func(t *testing.T, p *Provider, info providers.Info) (providers.Info, error) {
		body := providers.Body{Reader: strings.NewReader(strings.Repeat("x", bufferSize+1)), Size: providers.SizeUnknown}
		return p.Write(t.Context(), loc("new"), body, providers.WriteOptions{If: providers.IfAbsent(), Metadata: info.Metadata})
	},
	"parts": func(t *testing.T, p *Provider, info providers.Info) (providers.Info, error) {
		u, err := p.StartParts(t.Context(), loc("new"), providers.WriteOptions{If: providers.IfAbsent(), Metadata: info.Metadata})
		if err == nil {
			err = u.Part(t.Context(), 1, providers.String("x"))
		}
		if err != nil {
			return providers.Info{}, err
		}
		return u.Complete(t.Context())
	},
	"copy": func(t *testing.T, p *Provider, info providers.Info) (providers.Info, error) {
		return p.Copy(t.Context(), info.Locator, loc("new"), providers.CopyOptions{If: providers.IfAbsent()})
	},
	"attributes": func(t *testing.T, p *Provider, info providers.Info) (providers.Info, error) {
		_, err := p.Copy(t.Context(), info.Locator, loc("new"), providers.CopyOptions{If: providers.IfAbsent()})
		if err != nil {
			return providers.Info{}, err
		}
		attr := providers.Attr{Valid: providers.AttrMode, Mode: 0o600}
		return p.SetAttr(t.Context(), loc("new"), providers.SetAttrOptions{If: providers.Unconditional(), Attr: attr})
	},
}

// TestHeadersAreCarried: whichever way an object is written, it has the headers that
// were told of it, and they are told of the new one.
func TestHeadersAreCarried(t *testing.T) {
	for name, rewrite := range rewrites {
		for content := range map[string]bool{"": true, "old": true} {
			t.Run(name+"/"+content, func(t *testing.T) {
				f := newFake()
				f.put("pre/page", content, webPage())
				p := openFake(t, f, nil)
				info, err := p.Stat(t.Context(), loc("page"))
				if err != nil {
					t.Fatal(err)
				}
				made, err := rewrite(t, p, info)
				if err != nil {
					t.Fatal(err)
				}
				if got := headersAt(f, "pre/new"); !sameHeaders(got, webPage()) {
					t.Errorf("got %v, want %v", got, webPage())
				}
				stat, err := p.Stat(t.Context(), loc("new"))
				if err != nil || !maps.Equal(stat.Metadata, info.Metadata) || !maps.Equal(made.Metadata, info.Metadata) {
					t.Errorf("told %q, and with the answer %q, want %q (%v)", stat.Metadata, made.Metadata, info.Metadata, err)
				}
			})
		}
	}
}

// TestHeadersOfNewObjects: a type comes from the name, and a value that no request can
// have is left out.
func TestHeadersOfNewObjects(t *testing.T) {
	const typed = "header:content-type"
	for _, c := range []struct {
		name     string
		kind     providers.Kind
		metadata map[string]string
		want     http.Header
		told     map[string]string
	}{
		{"a.html", 0, nil, http.Header{"Content-Type": {"text/html; charset=utf-8"}}, map[string]string{typed: "text/html; charset=utf-8"}},
		{"A.JPG", 0, nil, http.Header{"Content-Type": {"image/jpeg"}}, map[string]string{typed: "image/jpeg"}},
		{"Makefile", 0, nil, http.Header{"Content-Type": {"application/octet-stream"}}, nil},
		{"link.html", providers.KindSymlink, nil, http.Header{"Content-Type": {"application/octet-stream"}}, nil},
		{"a.txt", 0, map[string]string{typed: "application/octet-stream"}, http.Header{"Content-Type": {"application/octet-stream"}},
			map[string]string{typed: "application/octet-stream"}},
		{"b", 0, map[string]string{typed: "a/b", "header:expires": "0", "header:cache-control": "a\nb",
			"header:content-disposition": strings.Repeat("x", headerMax+1), "header:content-language": " de"},
			http.Header{"Content-Type": {"a/b"}}, map[string]string{typed: "a/b"}},
	} {
		f := newFake()
		p := openFake(t, f, nil)
		_, err := p.Write(t.Context(), loc(c.name), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent(), Kind: c.kind, Metadata: c.metadata})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := headersAt(f, "pre/"+c.name); !sameHeaders(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		if info, err := p.Stat(t.Context(), loc(c.name)); err != nil || !maps.Equal(info.Metadata, c.told) {
			t.Errorf("%s: told %q, want %q (%v)", c.name, info.Metadata, c.told, err)
		}
	}
}

// TestHeadersInListings: a listing tells the usual type, and of others that there is
// more than it tells.
func TestHeadersInListings(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	mode := providers.Attr{Valid: providers.AttrMode, Mode: 0o600}
	mustWrite(t, p, "a.txt", "x", providers.WriteOptions{Attr: mode})
	mustWrite(t, p, "b.txt", "x", providers.WriteOptions{Attr: mode, Metadata: map[string]string{"header:content-type": "a/b"}})
	mustWrite(t, p, "c", "x", providers.WriteOptions{Attr: mode})
	for name, info := range listed(t, p, "", true) {
		stat, err := p.Stat(t.Context(), info.Locator)
		if err != nil {
			t.Fatal(err)
		}
		if told := maps.Equal(info.Metadata, stat.Metadata); told == (info.Untold != 0) || name != "b.txt" && !told {
			t.Errorf("%s: listed %q with %d untold, has %q", name, info.Metadata, info.Untold, stat.Metadata)
		}
	}
}

// TestHeadersOfTheAnswer: that an answer is not to be cached is not told of the object.
func TestHeadersOfTheAnswer(t *testing.T) {
	for date, own := range map[string]bool{"Mon, 02 Jan 2006 15:04:05 GMT": false, "Mon, 02 Jan 2006 15:04:06 GMT": false,
		"Mon, 02 Jan 2006 15:05:05 GMT": true, "": true} {
		f := newFake()
		f.put("pre/a", "x", http.Header{"Expires": {"Mon, 02 Jan 2006 15:04:05 GMT"}, "Cache-Control": {"private, max-age=0"}})
		p := openFake(t, f, nil)
		f.queue = append(f.queue, func(r *http.Request) *http.Response {
			a := f.read(r, "pre/a")
			a.Header.Set("Date", date)
			return a
		})
		info, err := p.Stat(t.Context(), loc("a"))
		if err != nil || (len(info.Metadata) > 0) != own {
			t.Errorf("an answer of %q: told %q (%v)", date, info.Metadata, err)
		}
	}
}

// TestHeadersOfTheTransfer: what a service keeps of how the content came is not told.
func TestHeadersOfTheTransfer(t *testing.T) {
	for had, want := range map[string]string{"aws-chunked": "", "aws-chunked,gzip": "gzip", "gzip, br": "gzip, br"} {
		if got := storedEncoding(had); got != want {
			t.Errorf("%q: got %q, want %q", had, got, want)
		}
	}
}

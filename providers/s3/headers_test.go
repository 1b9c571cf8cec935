package s3

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// webPage are headers of an object as other programs set them.
func webPage() http.Header {
	return http.Header{"Content-Type": {"text/html; charset=latin1"}, "Cache-Control": {"max-age=60"}, "Content-Encoding": {"gzip"},
		"Content-Disposition": {`attachment; filename="x"`}, "Content-Language": {"de"}, "Expires": {"Mon, 02 Jan 2006 15:04:05 GMT"},
		"X-Amz-Storage-Class": {"STANDARD_IA"}, "X-Amz-Tagging": {"a%20b=1&team=x%2By"}}
}

// headersAt are the headers of an object of the bucket that are no metadata.
func headersAt(f *fake, key string) http.Header {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.objects[key] == nil {
		return nil
	}
	h := f.objects[key].header.Clone()
	maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.HasPrefix(strings.ToLower(name), "x-amz-meta-") })
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
		body := providers.Body{Reader: strings.NewReader(strings.Repeat("x", bucket.BufferSize+1)), Size: providers.SizeUnknown}
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

// Whichever way an object is written, it has the headers that were told of it, and they are told
// of the new one.
func TestHeadersAreCarried(t *testing.T) {
	for name, rewrite := range rewrites {
		for content := range map[string]bool{"": true, "old": true} {
			t.Run(name+"/"+content, func(t *testing.T) {
				f := newFake()
				f.put("pre/page", content, webPage())
				p := openFake(t, f, nil)
				info := assert.Of(p.Stat(t.Context(), loc("page"))).OK(t)
				made := assert.Of(rewrite(t, p, info)).OK(t)
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

// That an answer is not to be cached is not told of the object.
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
		assert.Equal(t, (len(assert.Of(p.Stat(t.Context(), loc("a"))).OK(t).Metadata) > 0), own, "an answer of", date, "told")
	}
}

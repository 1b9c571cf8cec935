package bucket

import (
	"maps"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// A type comes from the name, and a value that no request can have is left out.
func TestHeadersOfNewObjects(t *testing.T) {
	const typed = "header:content-type"
	for _, c := range []struct {
		name     string
		kind     providers.Kind
		metadata map[string]string
		want     string // the type
		told     map[string]string
	}{
		{"a.html", 0, nil, "text/html; charset=utf-8", map[string]string{typed: "text/html; charset=utf-8"}},
		{"A.JPG", 0, nil, "image/jpeg", map[string]string{typed: "image/jpeg"}},
		{"Makefile", 0, nil, "", nil},
		{"link.html", providers.KindSymlink, nil, "", nil},
		{"a.txt", 0, map[string]string{typed: "application/octet-stream"}, "application/octet-stream",
			map[string]string{typed: "application/octet-stream"}},
		{"b", 0, map[string]string{typed: "a/b", "header:expires": "0", "header:cache-control": "a\nb",
			"header:content-disposition": strings.Repeat("x", headerMax+1), "header:content-language": " de"},
			"a/b", map[string]string{typed: "a/b"}},
	} {
		f := newFake()
		p := openFake(t, f, nil)
		_, err := p.Write(t.Context(), loc(c.name), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent(), Kind: c.kind, Metadata: c.metadata})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		assert.Equal(t, f.objects["pre/"+c.name].Headers, (Headers{ContentType: c.want}), c.name, c.want)
		info := assert.Of(p.Stat(t.Context(), loc(c.name))).OK(t)
		assert.True(t, maps.Equal(info.Metadata, c.told), c.name, "told", info.Metadata, c.told)
	}
}

// A listing tells the usual type, and of others that there is more than it tells.
func TestHeadersInListings(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	mode := providers.Attr{Valid: providers.AttrMode, Mode: 0o600}
	mustWrite(t, p, "a.txt", "x", providers.WriteOptions{Attr: mode})
	mustWrite(t, p, "b.txt", "x", providers.WriteOptions{Attr: mode, Metadata: map[string]string{"header:content-type": "a/b"}})
	mustWrite(t, p, "c", "x", providers.WriteOptions{Attr: mode})
	for name, info := range listed(t, p, "", true) {
		stat := assert.Of(p.Stat(t.Context(), info.Locator)).OK(t)
		told := maps.Equal(info.Metadata, stat.Metadata)
		assert.True(t, told != (info.Untold != 0) && (name == "b.txt" || told), name, "listed", info.Metadata, "with", info.Untold, "untold, has", stat.Metadata)
	}
}

// What a service keeps of how the content came is not told.
func TestHeadersOfTheTransfer(t *testing.T) {
	for had, want := range map[string]string{"aws-chunked": "", "aws-chunked,gzip": "gzip", "gzip, br": "gzip, br"} {
		assert.Equal(t, storedEncoding(had), want, had)
	}
}

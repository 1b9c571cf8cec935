package s3

import (
	"net/http"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// New content goes to the class of the old, but for classes where it could not be read at once;
// and tags that are not others' to set stay behind.
func TestClassesToKeep(t *testing.T) {
	for _, c := range []struct{ class, tags, wantClass, wantTags string }{
		{"", "", "", ""},
		{"STANDARD", "a=1", "", "a=1"},
		{"GLACIER_IR", "b=&a=1", "GLACIER_IR", "a=1&b="},
		{"GLACIER", "aws:x=1&a=%C3%BC", "", "a=%C3%BC"},
		{"DEEP_ARCHIVE", "GuardDutyMalwareScanStatus=NO_THREATS_FOUND", "", ""},
		{"INTELLIGENT_TIERING", "", "INTELLIGENT_TIERING", ""},
	} {
		f := newFake()
		f.put("pre/a", "old", http.Header{"X-Amz-Storage-Class": {c.class}, "X-Amz-Tagging": {c.tags}})
		p := openFake(t, f, nil)
		info := assert.Of(p.Stat(t.Context(), loc("a"))).OK(t)
		_, err := p.Write(t.Context(), loc("a"), providers.String("new"), providers.WriteOptions{If: providers.IfVersion(info.Version), Metadata: info.Metadata})
		assert.OK(t, err)
		h := headersAt(f, "pre/a")
		assert.Equal(t, h.Get("X-Amz-Storage-Class"), c.wantClass, c, "class")
		assert.Equal(t, h.Get("X-Amz-Tagging"), c.wantTags, c, "tags")
	}
}

// Content is written without tags that may not be read, or set.
func TestTagsThatAreRefused(t *testing.T) {
	deny := func(isTags func(r *http.Request) bool) func(*http.Request) *http.Response {
		return func(r *http.Request) *http.Response {
			if isTags(r) {
				return refuse(r, 403, "AccessDenied")
			}
			return nil
		}
	}
	for what, isTags := range map[string]func(r *http.Request) bool{
		"read": func(r *http.Request) bool { return r.URL.Query().Has("tagging") },
		"set":  func(r *http.Request) bool { return r.Header.Get("X-Amz-Tagging") != "" },
	} {
		f := newFake()
		f.put("pre/a", "old", http.Header{"X-Amz-Tagging": {"a=1"}})
		p := openFake(t, f, nil)
		for range 8 {
			f.queue = append(f.queue, deny(isTags))
		}
		info := assert.Of(p.Stat(t.Context(), loc("a"))).OK(t, what)
		made, err := p.Write(t.Context(), loc("a"), providers.String("new"), providers.WriteOptions{If: providers.IfVersion(info.Version), Metadata: info.Metadata})
		assert.OK(t, err, what)
		assert.Equal(t, headersAt(f, "pre/a").Get("X-Amz-Tagging"), "", what, "tags")
		assert.Equal(t, made.Size, 3, what, "size")
	}
}

// Whoever reads an object in ranges asks for its tags once.
func TestTagsOfParts(t *testing.T) {
	f := newFake()
	f.put("pre/a", "content", http.Header{"X-Amz-Tagging": {"a=1"}})
	p := openFake(t, f, nil)
	for offset := range 4 {
		_, info, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{Offset: int64(offset), Length: 1})
		assert.OK(t, err)
		assert.Equal(t, info.Metadata[providers.HeaderMetadata+"tagging"], "a=1", "tags")
	}
	assert.Equal(t, p.Requests()["GetObjectTagging"].Requests, 1, "requests for tags")
}

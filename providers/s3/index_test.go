package s3

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// testIndex: what one provider made by each of its verbs, another lists with its
// attributes, at the price of a LIST.
func testIndex(t *testing.T, w *world) {
	prefix := map[string]string{"prefix": "test/" + rand.Text()}
	p := w.open(t, prefix, nil)
	attr := func(mode uint32) providers.Attr {
		return providers.Attr{Valid: providers.AttrMode | providers.AttrOwner | providers.AttrModTime, Mode: mode, UID: 7, GID: 8, ModTime: time.Unix(1_000_000_000, 5)}
	}
	_, err := p.Write(t.Context(), loc("run"), providers.String("#!"), providers.WriteOptions{If: providers.IfAbsent(), Attr: attr(0o755)})
	if err == nil {
		_, err = p.Write(t.Context(), loc("link"), providers.String("run"), providers.WriteOptions{If: providers.IfAbsent(), Kind: providers.KindSymlink})
	}
	if err == nil {
		_, err = p.Mkdir(t.Context(), loc("private"), providers.MkdirOptions{Attr: attr(0o700)})
	}
	if err == nil {
		_, err = p.Copy(t.Context(), loc("run"), loc("private/copy"), providers.CopyOptions{If: providers.IfAbsent()})
	}
	if err == nil {
		_, err = p.SetAttr(t.Context(), loc("private/copy"), providers.SetAttrOptions{If: providers.Unconditional(), Attr: attr(0o4711)})
	}
	var u providers.Upload
	if err == nil {
		u, err = p.StartParts(t.Context(), loc("parts"), providers.WriteOptions{If: providers.IfAbsent(), Attr: attr(0o600)})
	}
	if err == nil {
		err = u.Part(t.Context(), 1, providers.String("x"))
	}
	if err == nil {
		_, err = u.Complete(t.Context())
	}
	assert.OK(t, errors.Join(err, p.Close()))
	q := w.open(t, prefix, nil)
	page, err := q.List(t.Context(), loc(""), providers.ListOptions{Recursive: true})
	if err != nil || len(page.Entries) != 5 {
		t.Errorf("listed %+v, %v", page, err)
	}
	heads := q.Requests()["HeadObject"].Requests // those of Open look above the prefix
	assert.Equal(t, heads, int64(2), "HEADs")
	for _, info := range page.Entries {
		stat, err := q.Stat(t.Context(), info.Locator)
		if err != nil || stat.Kind != info.Kind || stat.Size != info.Size || !stat.Attr.Equal(info.Attr) {
			t.Errorf("listed %+v, is %+v, %v", info, stat, err)
		}
	}
}

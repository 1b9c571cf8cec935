package bucket

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// What s3fs writes, and what is nobody's.
func TestDecodeXattrs(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		want      map[string]string // nil: they are none
	}{
		{"one", "%7B%22user.x%22%3A%22eQ%3D%3D%22%7D", map[string]string{"user.x": "y"}},
		{"two, in capitals and not", "%7b%22user.a%22%3a%22%22%2C%22user.b%22%3A%22+/8%3D%22%7D", map[string]string{"user.a": "", "user.b": "\xfb\xff"}},
		{"none left", "%7B%7D", map[string]string{}},
		{"odd names as they are", `{"user.a,b:c"d\e":"eQ=="}`, map[string]string{`user.a,b:c"d\e`: "y"}},
		{"odd names as JSON has them", `{"user.\"a\\b":"eQ=="}`, map[string]string{`user."a\b`: "y"}},
		{"no JSON", "kept", nil},
		{"nothing", "", nil},
		{"half an escape", "%7B%7D%", nil},
		{"no value", `{"user.x"}`, nil},
		{"no name", `{"":"eQ=="}`, nil},
		{"no base64", `{"user.x":"!"}`, nil},
		{"no end", `{"user.x":"eQ==}`, nil},
		{"a comma more", `{"user.x":"eQ==",}`, nil},
		{"a comma less", `{"user.x":"eQ==""user.y":"eQ=="}`, nil},
		{"a number", `{"user.x":1}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := decodeXattrs(c.raw)
			assert.True(t, ok == (c.want != nil) && maps.EqualFunc(got, c.want, func(a []byte, b string) bool { return string(a) == b }), "got", got, ok, "want", c.want)
		})
	}
}

// They are written in s3fs's words, and read back whatever they are.
func TestEncodeXattrs(t *testing.T) {
	if got, want := encodeXattrs(map[string][]byte{"user.x": []byte("y"), "user.a/b c": {0xfb, 0xff}}),
		"%7B%22user.a/b%20c%22%3A%22%2B/8%3D%22%2C%22user.x%22%3A%22eQ%3D%3D%22%7D"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	all := map[string][]byte{"user.\xff\x01": {0}, `user.":"`: {1}, `user.a":"eQ==","user.b`: {2}, `user.\`: {3}, `user.\"`: {4}, "user.": nil}
	got, ok := decodeXattrs(encodeXattrs(all))
	assert.True(t, ok && maps.EqualFunc(got, all, bytes.Equal), "read back as", got)
}

// What is read is written so that it is read again.
func FuzzDecodeXattrs(f *testing.F) {
	f.Add("%7B%22user.x%22%3A%22eQ%3D%3D%22%7D")
	f.Add(`{"a\":":"eQ==","b":""}`)
	f.Fuzz(func(t *testing.T, raw string) {
		all, ok := decodeXattrs(raw)
		if !ok {
			return
		}
		again, ok := decodeXattrs(encodeXattrs(all))
		assert.True(t, ok && maps.EqualFunc(again, all, bytes.Equal), raw, "is read as", all, "and then as", again)
	})
}

// What fits can be written whatever the other attributes are, and one byte more cannot, wherever
// it is.
func TestFits(t *testing.T) {
	p := openFake(t, newFake(), nil)
	user := map[string]string{"colour": "red"}
	attr := func(n int) providers.Attr {
		return providers.Attr{Valid: attributes, Xattrs: map[string][]byte{"user.x": bytes.Repeat([]byte("v"), n)},
			Mode: 0o7777, UID: 1<<32 - 1, GID: 1<<32 - 1, ModTime: time.Unix(1<<32, 999_999_999)}
	}
	most := 0
	for p.Fits(attr(most+1), user) == nil {
		most++
	}
	assert.True(t, most >= 1200 && most <= takes2K.Metadata*3/4, most, "bytes fit")
	assert.Is(t, p.Fits(attr(most+1), user), providers.ErrTooLarge, "one byte more")
	mustWrite(t, p, "f", "x", providers.WriteOptions{Attr: attr(most), Metadata: user, Op: strings.Repeat("o", 40)})
}

// What others call as we do, and is nothing that we can read, keeps nobody from changing an
// object.
func TestUnreadableMetadataStay(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	f.put("pre/f", "x", map[string]string{"mode": "dark", "xattr": "kept"})
	set := providers.SetAttrOptions{If: providers.Unconditional(), Attr: providers.Attr{Valid: providers.AttrModTime, ModTime: time.Unix(7, 0)}}
	info, err := p.SetAttr(t.Context(), loc("f"), set)
	assert.True(t, err == nil && info.Metadata["mode"] == "dark" && info.Metadata["xattr"] == "kept", "got", info.Metadata, err)
	set.Attr = providers.Attr{Valid: providers.AttrXattrs, Xattrs: map[string][]byte{"user.x": nil}}
	info, err = p.SetAttr(t.Context(), loc("f"), set)
	assert.True(t, err == nil && len(info.Attr.Xattrs) == 1, "got", info.Attr.Xattrs, err)
}

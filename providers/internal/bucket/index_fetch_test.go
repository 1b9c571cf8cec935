package bucket

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// s3fs is what s3fs writes with a file.
func s3fs(mode uint32) map[string]string {
	return map[string]string{
		"mode": strconv.FormatUint(uint64(mode), 10), "uid": "1", "gid": "2",
		"mtime": "1000000000.5", "ctime": "1000000001", "atime": "1000000002",
	}
}

// What a page costs whose objects others wrote.
func TestAskedOnce(t *testing.T) {
	const list = "List=1"
	for _, c := range []struct {
		name   string
		n      int
		header map[string]string
		first  string
		fresh  string // of another provider, later
	}{
		{"few", 8, nil, "Head=8 " + list, list},
		{"many", 100, nil, "Head=3 " + list, "Head=3 " + list},
		{"few of s3fs", 8, s3fs(0o100755), "Head=8 " + list, list},
		{"many of s3fs", 100, s3fs(0o100755), "Head=100 " + list, list},
		{"many of rclone", 100, map[string]string{"mtime": "1"}, "Head=3 " + list, "Head=3 " + list},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake()
			for i := range c.n {
				f.put(fmt.Sprintf("pre/d/f%04d", i), fmt.Sprint("content", i), c.header)
			}
			p := openFake(t, f, nil)
			for _, want := range []string{c.first, list} {
				assert.Equal(t, spent(p, func() { listed(t, p, "d", false) }), want)
			}
			all := listed(t, p, "d", false)
			got := all["d/f0000"].Attr
			assert.False(t, c.header["mode"] != "" && (got.Mode != 0o755 || got.GID != 2 || got.ModTime.UnixNano() != 1_000_000_000_500_000_000), "got", got)
			p.Close()
			q := openFake(t, f, nil)
			assert.Equal(t, spent(q, func() { listed(t, q, "d", false) }), c.fresh, "another")
		})
	}
}

// Links of s3fs, and GeeseFS's, whose target is metadata, are small, and so they are found among
// large files.
func TestLinksOfOthers(t *testing.T) {
	f := newFake()
	for i := range 100 {
		f.put(fmt.Sprintf("pre/f%04d", i), strings.Repeat("x", 50), nil)
	}
	f.put("pre/s3fs", "target", s3fs(0o120777))
	f.put("pre/geese", "", map[string]string{"--symlink-target": "over%2Fthere"})
	f.put("pre/folder/", "", s3fs(0o040700))
	p := openFake(t, f, nil)
	all := listed(t, p, "", true)
	if a, b := all["s3fs"], all["geese"]; a.Kind != providers.KindSymlink || b.Kind != providers.KindSymlink || b.Size != int64(len("over/there")) {
		t.Errorf("got %+v, %+v", a, b)
	}
	got := all["folder"]
	assert.True(t, got.Kind == providers.KindDir && got.Attr.Mode == 0o700, got)
}

// A service that does not answer costs no error, and is asked again; one that shows nothing is
// not.
func TestAskedInVain(t *testing.T) {
	for _, c := range []struct {
		refusal error
		n       int
		again   string
	}{
		{&Fault{Kind: providers.ErrUnavailable}, 1, "Head=1 List=1"},
		{&Fault{Kind: providers.ErrUnavailable}, 20, "Head=20 List=1"},
		{&Fault{Kind: providers.ErrPermission, Doubt: NoReason}, 1, "List=1"},
	} {
		f := newFake()
		for i := range c.n {
			f.put("pre/"+string(rune('a'+i)), "x", s3fs(0o100755))
		}
		p := openFake(t, f, nil)
		var asked atomic.Int64
		p.store.(*client).before = func(op, _ string) error {
			if op != "Head" || asked.Add(1) > 3 {
				return nil
			}
			return c.refusal
		}
		assert.Equal(t, listed(t, p, "", false)["a"].Attr.Valid, 0, c.refusal)
		p.store.(*client).before = nil
		assert.Equal(t, spent(p, func() { listed(t, p, "", false) }), c.again, c.refusal, "spent")
	}
}

// Directories that keys imply do not cut a page.
func TestOnePage(t *testing.T) {
	f := newFake()
	for i := range 1000 {
		f.put(fmt.Sprintf("pre/d%02d/f%03d", i%20, i), "x", nil)
	}
	p := openFake(t, f, nil)
	page, err := p.List(t.Context(), loc(""), providers.ListOptions{Recursive: true})
	if err != nil || page.Next != "" || len(page.Entries) != 1020 {
		t.Errorf("%d entries, more %v, %v", len(page.Entries), page.Next != "", err)
	}
	for _, limit := range []int{50, 1000, 1005} { // single ones are for TestForeignKeys
		n := 0
		for info, err := range providers.All(t.Context(), p, loc(""), providers.ListOptions{Recursive: true, Limit: limit}) {
			if n++; err != nil {
				t.Fatal(info, err)
			}
		}
		assert.Equal(t, n, 1020, "entries in pages of", limit)
	}
}

// Where the next page begins is told before objects of this one are asked for.
func TestAskedBesideTheNextPage(t *testing.T) {
	f := newFake()
	for i := range 30 {
		f.put(fmt.Sprintf("pre/d/f%04d", i), "x", nil)
	}
	p := openFake(t, f, nil)
	heads := func() int64 { return requests(p)["Head"] }
	before, told, asked := heads(), "", int64(-1)
	page, err := p.List(t.Context(), loc(""), providers.ListOptions{Recursive: true, Limit: 20, Ahead: func(next string) {
		told, asked = next, heads()-before
	}})
	assert.True(t, err == nil && told != "" && told == page.Next, "told", told, "and then", page.Next, err)
	after := heads() - before
	assert.True(t, asked == 0 && after != 0, asked, "HEADs before, and", after, "in all")
}

package s3

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/providers"
)

// s3fs is what s3fs writes with a file.
func s3fs(mode uint32) http.Header {
	return http.Header{
		"X-Amz-Meta-Mode": {strconv.FormatUint(uint64(mode), 10)}, "X-Amz-Meta-Uid": {"1"}, "X-Amz-Meta-Gid": {"2"},
		"X-Amz-Meta-Mtime": {"1000000000.5"}, "X-Amz-Meta-Ctime": {"1000000001"}, "X-Amz-Meta-Atime": {"1000000002"},
	}
}

// TestAskedOnce: what a page costs whose objects others wrote.
func TestAskedOnce(t *testing.T) {
	const list = "ListObjectsV2=1"
	for _, c := range []struct {
		name   string
		n      int
		header http.Header
		first  string
		fresh  string // of another provider, later
	}{
		{"few", 8, nil, "HeadObject=8 " + list, list},
		{"many", 100, nil, "HeadObject=3 " + list, "HeadObject=3 " + list},
		{"few of s3fs", 8, s3fs(0o100755), "HeadObject=8 " + list, list},
		{"many of s3fs", 100, s3fs(0o100755), "HeadObject=100 " + list, list},
		{"many of rclone", 100, http.Header{"X-Amz-Meta-Mtime": {"1"}}, "HeadObject=3 " + list, "HeadObject=3 " + list},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake()
			for i := range c.n {
				f.put(fmt.Sprintf("pre/d/f%04d", i), fmt.Sprint("content", i), c.header)
			}
			p := openFake(t, f, nil)
			for _, want := range []string{c.first, list} {
				if got := spent(p, func() { listed(t, p, "d", false) }); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			all := listed(t, p, "d", false)
			if got := all["d/f0000"].Attr; c.header["X-Amz-Meta-Mode"] != nil && (got.Mode != 0o755 || got.GID != 2 || got.ModTime.UnixNano() != 1_000_000_000_500_000_000) {
				t.Errorf("got %+v", got)
			}
			p.Close()
			q := openFake(t, f, nil)
			if got := spent(q, func() { listed(t, q, "d", false) }); got != c.fresh {
				t.Errorf("another: got %s, want %s", got, c.fresh)
			}
		})
	}
}

// TestLinksOfOthers: links of s3fs, and GeeseFS's, whose target is metadata, are
// small, and so they are found among large files.
func TestLinksOfOthers(t *testing.T) {
	f := newFake()
	for i := range 100 {
		f.put(fmt.Sprintf("pre/f%04d", i), strings.Repeat("x", 50), nil)
	}
	f.put("pre/s3fs", "target", s3fs(0o120777))
	f.put("pre/geese", "", http.Header{"X-Amz-Meta---Symlink-Target": {"over%2Fthere"}})
	f.put("pre/folder/", "", s3fs(0o040700))
	p := openFake(t, f, nil)
	all := listed(t, p, "", true)
	if a, b := all["s3fs"], all["geese"]; a.Kind != providers.KindSymlink || b.Kind != providers.KindSymlink || b.Size != int64(len("over/there")) {
		t.Errorf("got %+v, %+v", a, b)
	}
	if got := all["folder"]; got.Kind != providers.KindDir || got.Attr.Mode != 0o700 {
		t.Errorf("got %+v", got)
	}
}

// TestAskedInVain: a service that does not answer costs no error, and is asked
// again; one that shows nothing is not.
func TestAskedInVain(t *testing.T) {
	for _, c := range []struct {
		status, n int
		again     string
	}{
		{503, 1, "HeadObject=1 ListObjectsV2=1"},
		{503, 20, "HeadObject=20 ListObjectsV2=1"},
		{403, 1, "ListObjectsV2=1"},
	} {
		f := newFake()
		for i := range c.n {
			f.put("pre/"+string(rune('a'+i)), "x", s3fs(0o100755))
		}
		refusal := func(r *http.Request) *http.Response { return refuse(r, c.status, "") }
		p := openFake(t, f, nil)
		f.queue = append(f.queue, nil, refusal, refusal, refusal) // a 403 may be a matter of credentials, once
		if got := listed(t, p, "", false)["a"].Attr; got.Valid != 0 {
			t.Errorf("%d: got %+v", c.status, got)
		}
		f.queue = nil
		if got := spent(p, func() { listed(t, p, "", false) }); got != c.again {
			t.Errorf("%d: spent %s, want %s", c.status, got, c.again)
		}
	}
}

// TestOnePage: directories that keys imply do not cut a page.
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
		if n != 1020 {
			t.Errorf("%d entries in pages of %d", n, limit)
		}
	}
}

// TestAskedBesideTheNextPage: where the next page begins is told before objects of this
// one are asked for.
func TestAskedBesideTheNextPage(t *testing.T) {
	f := newFake()
	for i := range 30 {
		f.put(fmt.Sprintf("pre/d/f%04d", i), "x", nil)
	}
	p := openFake(t, f, nil)
	heads := func() int64 { return p.Requests()["HeadObject"].Requests }
	before, told, asked := heads(), "", int64(-1)
	page, err := p.List(t.Context(), loc(""), providers.ListOptions{Recursive: true, Limit: 20, Ahead: func(next string) {
		told, asked = next, heads()-before
	}})
	if err != nil || told == "" || told != page.Next {
		t.Errorf("told %q, and then %q, %v", told, page.Next, err)
	}
	if after := heads() - before; asked != 0 || after == 0 {
		t.Errorf("%d HEADs before, and %d in all", asked, after)
	}
}

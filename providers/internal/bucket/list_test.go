package bucket

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// What others put into a bucket is all there, each under one name, and can be read and deleted by
// that name, also when pages are small.
func TestForeignKeys(t *testing.T) {
	keys := []string{
		"a", "a-b", "a/b", "a/c/d", // a file beside a directory, and between them another
		"x%2F", "x", "x/y", "x%2F/z", // one that is named like the way out
		"s//t", "s/", "u/../v", "w/./x", ".", "..", "n\x00l", "ctl\x01", // what POSIX cannot name
		strings.Repeat("l", 300), strings.Repeat("l", 300) + "/below", strings.Repeat("l", 260), // too long for a name
		"folder/", "folder/in", "only/", "with content/", "plus+ space&=#?", "%~.", "é/漢",
	}
	for _, prefix := range []string{"pre/", ""} {
		for _, limit := range []int{0, 1, 2, 3} {
			for _, recursive := range []bool{false, true} {
				for _, begins := range []string{"after", "tokens", "from"} {
					t.Run(fmt.Sprintf("prefix=%s,limit=%d,recursive=%v,%s", prefix, limit, recursive, begins), func(t *testing.T) {
						f := newFake()
						f.tokens, f.from = begins == "tokens", begins == "from"
						foreignKeys(t, f, keys, prefix, recursive, limit)
					})
				}
			}
		}
	}
}

func foreignKeys(t *testing.T, f *fake, keys []string, prefix string, recursive bool, limit int) {
	p := openFake(t, f, &Options{Prefix: prefix})
	var want []string
	for _, key := range keys {
		if strings.HasSuffix(key, "/") && key != "with content/" {
			f.put(prefix+key, "", nil)
			continue
		}
		f.put(prefix+key, "of "+key, nil)
		want = append(want, key)
	}
	f.put(prefix+".wsmount/hidden", "x", nil)
	var got []string
	for _, l := range allFiles(t, p, recursive, limit) {
		content, info, err := providers.Fetch(t.Context(), p, l, providers.ReadOptions{})
		if err != nil {
			t.Errorf("read %q: %v", l, err)
			continue
		}
		got = append(got, strings.TrimPrefix(string(content), "of "))
		assert.Is(t, p.Delete(t.Context(), l, providers.DeleteOptions{If: providers.IfVersion(info.Version)}), nil, "delete", l)
	}
	slices.Sort(got)
	slices.Sort(want)
	assert.True(t, slices.Equal(got, want), "got", got, "want", want)
	left := []string{prefix + ".wsmount/hidden", prefix + "folder/", prefix + "only/", prefix + "s/"}
	assert.Slice(t, f.keys(), left, "left")
}

// allFiles lists everything, and checks that no name comes twice and that a
// directory comes before what is in it.
func allFiles(t *testing.T, p *Provider, recursive bool, limit int) []providers.Locator {
	t.Helper()
	var files []providers.Locator
	seen := map[providers.Locator]bool{{}: true}
	var walk func(l providers.Locator)
	walk = func(l providers.Locator) {
		for info, err := range providers.All(t.Context(), p, l, providers.ListOptions{Recursive: recursive, Limit: limit}) {
			switch {
			case err != nil:
				t.Fatalf("list %q: %v", l, err)
			case seen[info.Locator]:
				t.Errorf("%q is listed twice", info.Locator)
			case !seen[info.Locator.Parent()]:
				t.Errorf("%q is listed before its directory", info.Locator)
			}
			seen[info.Locator] = true
			if info.Kind == providers.KindDir {
				stat, err := p.Stat(t.Context(), info.Locator)
				assert.True(t, err == nil && stat.Kind == providers.KindDir, "stat of directory", info.Locator, stat.Kind, err)
				if !recursive {
					walk(info.Locator)
				}
				continue
			}
			files = append(files, info.Locator)
		}
	}
	walk(providers.Locator{})
	return files
}

// The name of a directory beside a file means nothing else.
func TestBesideNames(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	f.put("pre/a", "file", nil)
	f.put("pre/a/b", "below", nil)
	put := func(name string) error {
		return assert.ErrOf(p.Write(t.Context(), providers.MustLocator(name), providers.String("new"), providers.WriteOptions{If: providers.IfAbsent()}))
	}
	if err := put("a%2F/c"); err != nil || !slices.Contains(f.keys(), "pre/a/c") {
		t.Errorf("write below the directory beside a file: %v, %q", err, f.keys())
	}
	for _, name := range []string{"none%2F", "none%2F/x", "a%2F"} {
		assert.Is(t, put(name), providers.ErrInvalid, "write of", name)
		if name == "a%2F" {
			continue
		}
		assert.Is(t, assert.ErrOf(p.Stat(t.Context(), providers.MustLocator(name))), providers.ErrNotExist, "stat of", name)
	}
}

// A listing that begins after a directory beside a file calls it as the whole one does.
func TestListingAfterBesideNames(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	for _, key := range []string{"a", "a/b", "a/b/c", "a/d/e", "a/d/f", "z"} {
		f.put("pre/"+key, "file", nil)
	}
	for after, want := range map[string]string{
		"a%2F":       "a%2F/b a%2F/b%2F/c a%2F/d/e a%2F/d/f z",
		"a%2F/b%2F":  "a%2F/b%2F/c a%2F/d/e a%2F/d/f z",
		"a%2F/d":     "a%2F/d/e a%2F/d/f z",
		"a%2F/d/e%z": "a%2F/d/f z",
	} {
		var got []string
		for info, err := range providers.All(t.Context(), p, providers.Locator{}, providers.ListOptions{Recursive: true, Limit: 2, After: providers.MustLocator(after)}) {
			assert.OK(t, err)
			if info.Kind != providers.KindDir {
				got = append(got, info.Locator.String())
			}
		}
		assert.Equal(t, strings.Join(got, " "), want, "after", after, got)
	}
}

// Of a service that lists keys in no order, or from where it likes, a recursive listing is
// refused rather than read in part. A page that is whole needs no order.
func TestNoOrder(t *testing.T) {
	for _, tokens := range []bool{false, true} {
		t.Run(fmt.Sprintf("tokens=%v", tokens), func(t *testing.T) { testNoOrder(t, tokens) })
	}
}

func testNoOrder(t *testing.T, tokens bool) {
	f := newFake()
	f.mixes, f.tokens = true, tokens
	p := openFake(t, f, nil)
	for i := range 30 {
		f.put(fmt.Sprintf("pre/d%d/f%02d", i%3, i), "x", nil)
	}
	assert.Equal(t, len(allFiles(t, p, true, 0)), 30, "files in one page")
	for _, want := range []string{"List=1", ""} {
		assert.Equal(t, spent(p, func() {
			_, err := p.List(t.Context(), loc(""), providers.ListOptions{Recursive: true, Limit: 10})
			assert.Is(t, err, providers.ErrUnsupported)
		}), want, "spent")
	}
	assert.Equal(t, len(allFiles(t, p, false, 4)), 30, "files, directory by directory")
	w := &walk{p: p, recursive: true, cursor: cursor{After: []byte("pre/m")}}
	err := w.checkOrder(listing{Listing: Listing{Items: []Item{{Object: Object{Key: "pre/a"}}}}, ordered: true})
	assert.True(t, errors.Is(err, providers.ErrUnsupported), "a page that begins before its place:", err)
}

// Where a listing cannot begin behind a key, that is said.
func TestListingAfterUnsupported(t *testing.T) {
	f := newFake()
	f.tokens = true
	p := openFake(t, f, nil)
	_, err := p.List(t.Context(), loc(""), providers.ListOptions{Recursive: true, After: loc("a")})
	if !errors.Is(err, providers.ErrUnsupported) || p.Capabilities().ListAfter {
		t.Errorf("got %v, and ListAfter %v", err, p.Capabilities().ListAfter)
	}
}

// Wsmount's own names are nobody's.
func TestReservedNames(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	f.put("pre/.wsmount/x", "x", nil)
	f.put("pre/.wsmount-not", "x", nil)
	l := providers.MustLocator(".wsmount/x")
	assert.Is(t, assert.ErrOf(p.Stat(t.Context(), l)), providers.ErrNotExist, "stat")
	_, err := p.Write(t.Context(), l, providers.String("y"), providers.WriteOptions{If: providers.Unconditional()})
	assert.Is(t, err, providers.ErrInvalid, "write", err)
	files := allFiles(t, p, false, 0)
	assert.True(t, len(files) == 1 && files[0].String() == ".wsmount-not", "listed", files)
}

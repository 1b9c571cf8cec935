package bucket

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
)

// patcher is the Store of a service that changes metadata without a copy.
type patcher struct{ *client }

func (p patcher) Patch(ctx context.Context, was Object, m Making) (Object, error) {
	return ask(ctx, p.client, "Patch", was.Key, func() (Object, error) {
		if err := p.f.check(was.Key, m.If); err != nil {
			return Object{}, err
		}
		o, err := p.f.find(was.Key, "")
		p.f.next++
		o.ETag, o.Metadata, o.Headers, o.Modified = "patched"+strconv.Itoa(p.f.next), m.Metadata, m.Headers, time.Now()
		return Object{ETag: o.ETag, MD5: o.MD5, Modified: o.Modified}, err
	})
}

// On services that differ in what they honour, tell and take.
func TestContract(t *testing.T) {
	for name, like := range map[string]func(f *fake){
		"plain":     func(*fake) {},
		"tells":     func(f *fake) { f.tells = true },
		"patches":   func(f *fake) { f.patches, f.tells = true, true },
		"tells all": func(f *fake) { f.tells, f.markers = true, true },
		"tokens":    func(f *fake) { f.tokens = true },
		"from":      func(f *fake) { f.from = true },
		"deaf":      func(f *fake) { f.from, f.deaf = true, true },
		"careless":  func(f *fake) { f.careless = true },
		"hides":     func(f *fake) { f.hides = true },
		"small":     func(f *fake) { f.most = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			providertest.RunVariant(t, func(t providertest.T) providers.Provider {
				f := newFake()
				like(f)
				return openFake(t, f, nil)
			})
		})
	}
}

// Where a listing has metadata nothing is asked for, and nothing is kept but of directories.
func TestListingsThatTell(t *testing.T) {
	f := newFake()
	f.tells = true
	p := openFake(t, f, nil)
	makeTree(t, p)
	for range 2 {
		all := map[string]providers.Info{}
		got := spent(p, func() { all = listed(t, p, "", true) })
		assert.True(t, got == "List=1" && len(all) == 9, len(all), "entries cost", got)
		for name, info := range all {
			stat, err := p.Stat(t.Context(), info.Locator)
			if err != nil || stat.Kind != info.Kind || stat.Size != info.Size || !stat.Attr.Equal(info.Attr) || !maps.Equal(stat.Metadata, info.Metadata) || info.Untold != 0 {
				t.Errorf("%s: listed %+v, is %+v, %v", name, info, stat, err)
			}
		}
	}
	if got := listed(t, p, "", false)["private"].Attr.Mode; got != 0o700 || len(p.index.known) != 1 {
		t.Errorf("mode of a directory: %o, with %d records", got, len(p.index.known))
	}
	f.markers = true
	q := openFake(t, f, nil)
	if got := listed(t, q, "", false)["private"].Attr.Mode; got != 0o700 || len(q.index.known) != 0 {
		t.Errorf("mode of a directory: %o, with %d records", got, len(q.index.known))
	}
	f.put("pre/link", "target", s3fs(0o120777)) // of another program
	assert.Equal(t, listed(t, p, "", false)["link"].Kind, providers.KindSymlink, "listed")
}

// Attributes of a file change in one request, on its condition.
func TestPatch(t *testing.T) {
	f := newFake()
	f.patches = true
	p := openFake(t, f, nil)
	mustWrite(t, p, "a.txt", "x", providers.WriteOptions{Metadata: map[string]string{"colour": "red"}})
	stat := assert.Of(p.Stat(t.Context(), loc("a.txt"))).OK(t)
	set := providers.SetAttrOptions{If: providers.IfVersion(stat.Version), Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}}
	if got := spent(p, func() {
		info, err := p.SetAttr(t.Context(), loc("a.txt"), set)
		assert.True(t, err == nil && info.Attr.Mode == 0o600 && info.Metadata["colour"] == "red" && info.Size == 1 && !info.Version.Matches(stat.Version), "got", info, err)
	}); got != "Head=1 Patch=1" {
		t.Errorf("spent %s", got)
	}
	assert.Is(t, assert.ErrOf(p.SetAttr(t.Context(), loc("a.txt"), set)), providers.ErrConflict, "of another version")
}

// What is too large for one copy goes in as many parts as it takes, and one that fails leaves
// nothing.
func TestCopyInParts(t *testing.T) {
	f := newFake()
	f.most, f.partMost = 4, 3
	p := openFake(t, f, nil)
	f.put("pre/a", "0123456789", nil)
	for _, want := range []string{"Begin=1 Complete=1 CopyPart=4 Head=1", "Abort=1 Begin=1 Complete=1 CopyPart=4 Head=1"} {
		if got := spent(p, func() {
			_, err := p.Copy(t.Context(), loc("a"), loc("b"), providers.CopyOptions{If: providers.IfAbsent()})
			again := strings.HasPrefix(want, "Abort")
			assert.True(t, again == errors.Is(err, providers.ErrExist) && (again || err == nil), "copy:", err)
		}); got != want {
			t.Errorf("spent %s, want %s", got, want)
		}
	}
	got := string(f.objects["pre/b"].content)
	assert.True(t, got == "0123456789" && len(f.uploads) == 0, "copied", got, "and", len(f.uploads), "uploads are left")
}

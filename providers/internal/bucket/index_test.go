package bucket

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// makeTree makes entries by each verb that can.
func makeTree(t *testing.T, p *Provider) {
	t.Helper()
	full := providers.Attr{Valid: attributes, Mode: 0o755, UID: 7, GID: 8, ModTime: time.Unix(1_000_000_000, 5)}
	mustWrite(t, p, "dir/run", "#!", providers.WriteOptions{Attr: full})
	mustWrite(t, p, "dir/link", "run", providers.WriteOptions{Kind: providers.KindSymlink})
	mustWrite(t, p, "dir/plain", "plain", providers.WriteOptions{})
	full.ModTime = time.Date(1600, 1, 1, 0, 0, 0, 5, time.UTC)
	mustWrite(t, p, "dir/red", "red", providers.WriteOptions{Attr: full, Metadata: map[string]string{"colour": "red"}})
	full.Xattrs, full.ModTime = map[string][]byte{"user.x": []byte("y")}, time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC)
	mustWrite(t, p, "dir/x", "xattrs", providers.WriteOptions{Attr: full})
	_, err := p.Mkdir(t.Context(), loc("private"), providers.MkdirOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}})
	if err == nil {
		_, err = p.Copy(t.Context(), loc("dir/run"), loc("private/copy"), providers.CopyOptions{If: providers.IfAbsent()})
	}
	if err == nil {
		_, err = p.SetAttr(t.Context(), loc("private/copy"), providers.SetAttrOptions{If: providers.Unconditional(), Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o4711}})
	}
	var u providers.Upload
	if err == nil {
		u, err = p.StartParts(t.Context(), loc("parts"), providers.WriteOptions{If: providers.IfAbsent(), Attr: full})
	}
	if err == nil {
		err = u.Part(t.Context(), 1, providers.String("x"))
	}
	if err == nil {
		_, err = u.Complete(t.Context())
	}
	assert.OK(t, err)
}

// checkTree compares a listing with what Stat says, and wants requests of it.
func checkTree(t *testing.T, p *Provider, want string) {
	t.Helper()
	var all map[string]providers.Info
	assert.Equal(t, spent(p, func() { all = listed(t, p, "", true) }), want, "the listing cost")
	assert.Equal(t, len(all), 9, "listed:", all)
	for name, info := range all {
		stat := assert.Of(p.Stat(t.Context(), info.Locator)).OK(t)
		assert.Equal(t, stat.Metadata != nil || len(stat.Attr.Xattrs) > 0, info.Untold != 0, name, "listed with", info.Untold, "untold of", stat)
		stat.Attr = stat.Attr.Keep(recordAttributes)
		assert.True(t, stat.Kind == info.Kind && stat.Size == info.Size && info.Attr.Equal(stat.Attr), name, "listed", info, "is", stat)
	}
	if all["dir/link"].Kind != providers.KindSymlink || all["private/copy"].Attr.Mode != 0o4711 || all["parts"].Attr.UID != 7 || all["private"].Attr.Mode != 0o700 {
		t.Errorf("listed: %+v", all)
	}
}

// What one provider wrote, another sees in its first listing, though tags of attributes' changes
// are the content's.
func TestIndexOnFake(t *testing.T) { synctest.Test(t, testIndexOnFake) }

func testIndexOnFake(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	makeTree(t, p)
	checkTree(t, p, "List=1")
	p.Close()
	time.Sleep(time.Second) // of the bubble: what is deleted is so after it was made
	q := openFake(t, f, nil)
	checkTree(t, q, "List=1")
	assert.Equal(t, listed(t, q, "", false)["private"].Attr.Mode, 0o700, "mode of a directory")
	assert.OK(t, errors.Join(q.Delete(t.Context(), loc("dir/run"), providers.DeleteOptions{If: providers.Unconditional()}), q.Close()))
	r := openFake(t, f, nil)
	<-r.index.loaded
	_, there := r.index.known[recordID("dir/run")]
	assert.False(t, there, "what was deleted is known")
}

// What others changed since is asked for, also if its content is the same.
func TestIndexOfOtherVersions(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	for _, name := range []string{"attr", "content"} {
		mustWrite(t, p, name, "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}})
	}
	p.Close()
	f.put("pre/attr", "x", s3fs(0o100755))
	f.objects["pre/attr"].Modified = time.Now().Add(time.Minute)
	f.put("pre/content", "y", s3fs(0o100711))
	q := openFake(t, f, nil)
	var all map[string]providers.Info
	assert.Equal(t, spent(q, func() { all = listed(t, q, "", false) }), "Head=2 List=1", "spent")
	a, b := all["attr"].Attr, all["content"].Attr
	assert.True(t, a.Mode == 0o755 && b.Mode == 0o711, a, b)
}

// Who opened for reading sees them, and writes none.
func TestIndexOfReaders(t *testing.T) {
	f := newFake()
	f.put("pre/a", "x", s3fs(0o100755))
	p := openFake(t, f, nil)
	mustWrite(t, p, "b", "target", providers.WriteOptions{Kind: providers.KindSymlink})
	p.Close()
	keys := f.keys()
	q := openFake(t, f, &Options{Prefix: "pre/", ReadOnly: true})
	all := listed(t, q, "", false)
	assert.True(t, all["a"].Attr.Mode == 0o755 && all["b"].Kind == providers.KindSymlink, "listed", all)
	q.Close()
	assert.Slice(t, f.keys(), keys, "keys ..., before")
}

// Segments are looked at again when a listing shows what nobody knows, and not often.
func TestIndexOfOthersLater(t *testing.T) {
	f := newFake()
	p, q := openFake(t, f, nil), openFake(t, f, nil)
	listed(t, q, "", false)
	for i := range 20 {
		mustWrite(t, p, fmt.Sprint("f", i), "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}})
	}
	p.index.run()
	later := time.Now().Add(indexFresh)
	q.now = func() time.Time { return later }
	var all map[string]providers.Info
	if got := spent(q, func() { all = listed(t, q, "", false) }); got != "Get=1 List=2" || all["f1"].Attr.Mode != 0o700 {
		t.Errorf("spent %s for %+v", got, all["f1"])
	}
	f.put("pre/new", "y", nil)
	assert.Equal(t, spent(q, func() { listed(t, q, "", false) }), "Head=1 List=1", "soon after: spent")
}

// A write waits for no segment, and a thousand of them do not wait for time.
func TestIndexAreWrittenAside(t *testing.T) { synctest.Test(t, testIndexAreWrittenAside) }

func testIndexAreWrittenAside(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	opts := providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}}
	before := requests(p)["Put"]
	mustWrite(t, p, "a", "x", opts)
	assert.Equal(t, requests(p)["Put"]-before, 1, "requests")
	assert.Equal(t, len(segmentsOf(f)), 0, "segments at once")
	for i := range indexBatch {
		mustWrite(t, p, fmt.Sprint("f", i), "x", opts)
	}
	synctest.Wait()
	assert.False(t, len(segmentsOf(f)) == 0, "no segment")
}

// In memory, and in a segment.
func TestIndexAreBounded(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	p.index.most = 100
	for i := range 200 {
		f.put(fmt.Sprint("pre/f", i), "x", s3fs(0o100755))
	}
	for range 2 {
		listed(t, p, "", false)
		n, dirty := len(p.index.known), len(p.index.dirty)
		assert.True(t, n == 100 && dirty <= 10, n, "records", dirty, "of them new")
	}
	all, err := decodeSegment(encodeSegment(make([]keyedRecord, 101)), 100)
	assert.Is(t, err, providers.ErrTooLarge, len(all), "records", err)
}

// What a listing has no room for takes no attributes with it, and it says when that has changed.
func TestIndexBesideMetadata(t *testing.T) {
	f := newFake()
	rclone := map[string]string{"mode": "100755", "mtime": "1000000000.5", "btime": "2006-01-02T15:04:05Z"}
	f.put("pre/rclone", "x", rclone)
	f.put("pre/dir/", "", map[string]string{"mode": "16832", "xattr": "%7B%22user.x%22%3A%22eQ%3D%3D%22%7D"})
	p := openFake(t, f, nil)
	all := listed(t, p, "", false)
	file, dir := all["rclone"], all["dir"]
	assert.True(t, file.Attr.Mode == 0o755 && file.Attr.ModTime.Unix() == 1e9 && file.Untold != 0, "file", file)
	assert.Equal(t, string(assert.Of(p.Stat(t.Context(), loc("dir"))).OK(t).Attr.Xattrs["user.x"]), "y", "stat")
	dir = listed(t, p, "", false)["dir"]
	assert.True(t, dir.Attr.Mode == 0o700 && dir.Untold != 0, "directory:", dir)
	assert.OK(t, assert.ErrOf(p.SetAttr(t.Context(), loc("dir"), providers.SetAttrOptions{If: providers.IfDir(),
		Attr: providers.Attr{Valid: providers.AttrXattrs, Xattrs: map[string][]byte{"user.x": []byte("z")}}})))
	now := listed(t, p, "", false)["dir"]
	assert.True(t, now.Untold != dir.Untold && now.Attr.Mode == 0o700, "directory after a change", now)
}

package azure

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/azureserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
	"github.com/wsmount/wsmount/providers/providertest"
)

func loc(s string) providers.Locator { return providers.MustLocator(s) }

// Directories are the service's own there.
func TestHierarchicalNamespace(t *testing.T) {
	f := azureserver.New()
	f.Hierarchical = true
	p := openFake(t, f, nil)
	mode := providers.Attr{Valid: providers.AttrMode, Mode: 0o750}
	assert.OK(t, assert.ErrOf(p.Mkdir(t.Context(), loc("a/b"), providers.MkdirOptions{Attr: mode})))
	assert.Slice(t, f.Keys(), []string{"pre/a", "pre/a/b"}, "blobs")
	for _, dir := range []string{"a", "a/b"} {
		assert.Equal(t, assert.Of(p.Stat(t.Context(), loc(dir))).OK(t).Kind, providers.KindDir, dir)
	}
	assert.Equal(t, assert.Of(p.Stat(t.Context(), loc("a/b"))).OK(t).Attr.Mode, 0o750, "mode")
	err := p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.IfDir()})
	assert.Is(t, err, providers.ErrNotEmpty, "a directory with an entry is deleted")
	for _, dir := range []string{"a/b", "a"} {
		assert.Is(t, p.Delete(t.Context(), loc(dir), providers.DeleteOptions{If: providers.IfDir()}), nil, "delete", dir)
	}
	got := f.Keys()
	assert.True(t, len(got) == 0, "left", got)
}

// Rclone has markers with metadata, blobfuse2 has blobs of the directory's name. Either is
// changed where it is, and goes.
func TestDirectoriesOfOthers(t *testing.T) {
	isFolder := map[string]string{azureserver.Folder: "true"}
	for name, blobs := range map[string][]string{"rclone": {"pre/d/"}, "blobfuse2": {"pre/d"}, "both": {"pre/d", "pre/d/"}} {
		t.Run(name, func(t *testing.T) {
			f := azureserver.New()
			for _, blob := range blobs {
				f.Put(blob, "", isFolder)
			}
			p := openFake(t, f, nil)
			page, err := p.List(t.Context(), loc(""), providers.ListOptions{})
			assert.Must(t, err == nil && len(page.Entries) == 1 && page.Entries[0].Locator == loc("d") && page.Entries[0].Kind == providers.KindDir, "list:", page.Entries, err)
			attr := providers.Attr{Valid: providers.AttrMode, Mode: 0o700}
			assert.OK(t, assert.ErrOf(p.SetAttr(t.Context(), loc("d"), providers.SetAttrOptions{If: providers.IfDir(), Attr: attr})), "chmod")
			assert.OK(t, assert.ErrOf(p.Mkdir(t.Context(), loc("d"), providers.MkdirOptions{})), "mkdir of what is there")
			info, err := p.Stat(t.Context(), loc("d"))
			if err != nil || info.Kind != providers.KindDir || info.Attr.Mode != 0o700 || !slices.Equal(f.Keys(), blobs) {
				t.Errorf("stat: %+v, %v; blobs %q", info, err, f.Keys())
			}
			assert.OK(t, p.Delete(t.Context(), loc("d"), providers.DeleteOptions{If: providers.IfDir()}), "rmdir")
			got := f.Keys()
			assert.True(t, len(got) == 0, "left", got)
		})
	}
}

// Directories and links are such for blobfuse2 and rclone, too.
func TestWordsForOthers(t *testing.T) {
	f := azureserver.New()
	p := openFake(t, f, nil)
	assert.OK(t, assert.ErrOf(p.Mkdir(t.Context(), loc("d"), providers.MkdirOptions{})))
	_, err := p.Write(t.Context(), loc("l"), providers.String("d"), providers.WriteOptions{If: providers.IfAbsent(), Kind: providers.KindSymlink})
	assert.OK(t, err)
	for key, want := range map[string]string{"pre/d/": azureserver.Folder, "pre/l": bucket.BlobLink} {
		_, metadata := f.Get(key)
		assert.Equal(t, metadata[want], "true", key)
	}
}

// TestDirectoriesOfHadoop are blobs of another program beside ours.
func TestDirectoriesOfHadoop(t *testing.T) {
	f := azureserver.New()
	f.Put("pre/empty", "", map[string]string{azureserver.Folder: "true"})
	f.Put("pre/full", "", map[string]string{azureserver.Folder: "true"})
	f.Put("pre/full/x", "content", nil)
	p := openFake(t, f, nil)
	got := map[string]providers.Kind{}
	for info, err := range providers.All(t.Context(), p, loc(""), providers.ListOptions{}) {
		assert.OK(t, err)
		got[info.Locator.String()] = info.Kind
	}
	want := map[string]providers.Kind{"empty": providers.KindDir, "full": providers.KindDir}
	assert.True(t, maps.Equal(got, want), got, want)
	for name := range got {
		assert.Equal(t, assert.Of(p.Stat(t.Context(), loc(name))).OK(t).Kind, providers.KindDir, name)
	}
	assert.Is(t, p.Delete(t.Context(), loc("empty"), providers.DeleteOptions{If: providers.IfDir()}), nil)
	if got := f.Keys(); slices.Contains(got, "pre/empty") {
		t.Errorf("left %q", got)
	}
}

// Appended blobs and page blobs are read, described and deleted, and not written over.
func TestOtherTypes(t *testing.T) {
	f := azureserver.New()
	p := openFake(t, f, nil)
	for _, kind := range []string{azureserver.AppendBlob, azureserver.PageBlob} {
		f.Put("pre/log", "line\n", nil)
		f.Change("pre/log", func(b *azureserver.Blob) { b.Kind = kind })
		content, info, err := providers.Fetch(t.Context(), p, loc("log"), providers.ReadOptions{})
		assert.Must(t, err == nil && string(content) == "line\n", kind, content, err)
		_, err = p.Write(t.Context(), loc("log"), providers.String("new"), providers.WriteOptions{If: providers.IfVersion(info.Version)})
		assert.True(t, errors.Is(err, providers.ErrUnsupported) && strings.Contains(err.Error(), kind), kind, "a write is", err)
		info, err = p.SetAttr(t.Context(), loc("log"), providers.SetAttrOptions{If: providers.IfVersion(info.Version), Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}})
		assert.True(t, err == nil && info.Attr.Mode == 0o600, kind, "chmod", info, err)
		assert.Is(t, p.Delete(t.Context(), loc("log"), providers.DeleteOptions{If: providers.IfVersion(info.Version)}), nil, kind)
	}
}

// Between two the daemon can die, and the first says not whose it is.
func TestAttributesTakeOneChange(t *testing.T) {
	f := azureserver.New()
	p := openFake(t, f, nil)
	info := assert.Of(p.Write(t.Context(), loc("a"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()})).OK(t)
	_, err := p.SetAttr(t.Context(), loc("a"), providers.SetAttrOptions{If: providers.IfVersion(info.Version), Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}})
	assert.OK(t, err)
	assert.Equal(t, p.Requests()[opHeaders].Requests, int64(0))
	assert.Equal(t, p.Requests()[opMetadata].Requests, int64(1))
}

// What was looked at is changed or copied in that version alone, however late another writes
// there.
func TestAnotherWritesMeanwhile(t *testing.T) {
	attributes := providers.SetAttrOptions{If: providers.Unconditional(), Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}}
	all := attributes
	all.Metadata = map[string]string{providers.HeaderMetadata + "cache-control": "no-store"}
	set := func(o providers.SetAttrOptions) func(*Provider) error {
		return func(p *Provider) error { return assert.ErrOf(p.SetAttr(t.Context(), loc("a"), o)) }
	}
	for _, c := range []struct {
		name, before string // a request of this name
		change       func(*Provider) error
	}{
		{"before attributes", opMetadata, set(attributes)},
		{"before headers", opHeaders, set(all)},
		{"between headers and attributes", opMetadata, set(all)},
		{"before a copy", opPutURL, func(p *Provider) error {
			return assert.ErrOf(p.Copy(t.Context(), loc("a"), loc("b"), providers.CopyOptions{If: providers.Unconditional()}))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := azureserver.New()
			var once sync.Once
			p := openFake(t, roundTrip(func(r *http.Request) (*http.Response, error) {
				if operation(r) == c.before {
					once.Do(func() { f.Put("pre/a", "another's", nil) })
				}
				return f.RoundTrip(r)
			}), nil)
			f.Put("pre/a", "ours", nil)
			assert.Is(t, c.change(p), providers.ErrConflict)
			content, metadata := f.Get("pre/a")
			assert.Equal(t, content, "another's")
			assert.Equal(t, len(metadata), 0, metadata)
			assert.Slice(t, f.Keys(), []string{"pre/a"})
		})
	}
}

// A blob is not deleted with what was kept of it.
func TestSnapshotsStay(t *testing.T) {
	f := azureserver.New()
	p := openFake(t, f, nil)
	f.Put("pre/a", "x", nil)
	f.Change("pre/a", func(b *azureserver.Blob) { b.Snapshots = true })
	err := p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.Unconditional()})
	assert.True(t, errors.Is(err, providers.ErrUnsupported) && strings.Contains(err.Error(), "snapshots"), err)
}

// Each name comes back, those of others stay, and all are identifiers.
func TestNamesOfMetadata(t *testing.T) {
	for name, want := range map[string]string{
		"mode": "mode", "wsmount-op": "wsmount_2dop", "my_key": "my_key", "a.b": "a_2eb", "1st": "_31st", "_2d": "_5f2d",
		"_31": "_5f31", "a_31": "a_31", "__": "__", "_-": "__2d", "_5f": "_5f5f", "-": "_2d", "x_": "x_",
	} {
		got := encodeName(name)
		if got != want || decodeName(got) != name {
			t.Errorf("%q: got %q, want %q; back %q", name, got, want, decodeName(got))
		}
		assert.True(t, got[0] != '-' && !isDigit(got[0]) && !strings.ContainsAny(got, "-."), got, "is no identifier")
	}
}

// Through a write, a change and a copy.
func TestHeadersAreKept(t *testing.T) {
	p := openFake(t, azureserver.New(), nil)
	metadata := map[string]string{
		providers.HeaderMetadata + "content-type": "text/x-one", providers.HeaderMetadata + "cache-control": "no-cache",
		providers.HeaderMetadata + "expires": "Thu, 01 Dec 2033 16:00:00 GMT", providers.HeaderMetadata + "storage-class": "Cool", "some-name.of_mine": "value",
		providers.HeaderMetadata + "tagging": "a=1&b=x%20y",
	}
	made, err := p.Write(t.Context(), loc("a"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent(), Metadata: metadata})
	assert.OK(t, err)
	metadata[providers.HeaderMetadata+"cache-control"] = "max-age=1"
	assert.OK(t, assert.ErrOf(p.SetAttr(t.Context(), loc("a"), providers.SetAttrOptions{If: providers.IfVersion(made.Version), Metadata: metadata})))
	assert.OK(t, assert.ErrOf(p.Copy(t.Context(), loc("a"), loc("b"), providers.CopyOptions{If: providers.IfAbsent()})))
	u := assert.Of(p.StartParts(t.Context(), loc("c"), providers.WriteOptions{If: providers.IfAbsent(), Metadata: metadata})).OK(t)
	assert.OK(t, u.Part(t.Context(), 1, providers.String("x")))
	assert.OK(t, assert.ErrOf(u.Complete(t.Context())))
	for _, name := range []string{"a", "b", "c"} {
		info, err := p.Stat(t.Context(), loc(name))
		assert.True(t, err == nil && maps.Equal(info.Metadata, metadata), name, info.Metadata, metadata, err)
	}
}

// A listing begins at a directory, also of a service that does not know how, or does not heed it.
func TestListingBeginsAtADirectory(t *testing.T) {
	for name, c := range map[string]struct {
		heeds func(f *azureserver.Server, r *http.Request)
		asks  int
	}{
		"begins there": {func(*azureserver.Server, *http.Request) {}, 1},
		"refuses": {func(f *azureserver.Server, _ *http.Request) { // which might be for the tags
			f.Refuse(http.StatusBadRequest, "InvalidQueryParameterValue")
		}, 2},
		"does not heed": {func(_ *azureserver.Server, r *http.Request) {
			q := r.URL.Query()
			q.Del("startFrom")
			r.URL.RawQuery = q.Encode()
		}, 1},
	} {
		f, asked := azureserver.New(), 0
		p := openFake(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Has("startFrom") {
				asked++
				c.heeds(f, r)
			}
			return f.RoundTrip(r)
		}), nil)
		for _, key := range []string{"pre/a/1", "pre/b/1", "pre/b/2", "pre/c/1"} {
			f.Put(key, "x", nil)
		}
		page := assert.Of(p.List(t.Context(), loc(""), providers.ListOptions{Recursive: true, After: loc("b")})).OK(t, name)
		var names []string
		for _, e := range page.Entries {
			names = append(names, e.Locator.String())
		}
		assert.Slice(t, names, []string{"b/1", "b/2", "c", "c/1"}, name)
		assert.Equal(t, asked, c.asks, name, "asks for it")
	}
}

// What is stored packed comes as it is stored, over a transport that would unpack it, too.
func TestPackedContent(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	io.WriteString(w, "text")
	assert.OK(t, w.Close())
	server := httptest.NewServer(azureserver.New())
	t.Cleanup(server.Close)
	p := openFake(t, &http.Transport{}, map[string]string{"endpoint": server.URL + "/acme"})
	assert.OK(t, assert.ErrOf(p.Write(t.Context(), loc("a"), providers.Bytes(packed.Bytes()),
		providers.WriteOptions{If: providers.IfAbsent(), Metadata: map[string]string{providers.HeaderMetadata + "content-encoding": "gzip"}})))
	for _, length := range []int64{0, 4} {
		data, _, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{Length: length})
		assert.OK(t, err)
		want := packed.Bytes()
		if length > 0 {
			want = want[:length]
		}
		assert.Equal(t, string(data), string(want))
	}
}

// Index tags that another program set stay with what is described anew, written and copied. Where
// they may not be read, content goes without.
func TestTagsOfOthers(t *testing.T) {
	const tagging = providers.HeaderMetadata + "tagging"
	for untagged, want := range map[bool]string{false: "project=one%20two", true: ""} {
		f := azureserver.New()
		f.Put("pre/a", "old", nil)
		f.Change("pre/a", func(b *azureserver.Blob) { b.Tags = url.Values{"project": {"one two"}} })
		f.Untagged = untagged
		p := openFake(t, f, nil)
		page := assert.Of(p.List(t.Context(), loc(""), providers.ListOptions{})).OK(t)
		assert.Equal(t, page.Entries[0].Metadata[tagging], want, "a listing tells")
		_, info, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{})
		assert.OK(t, err)
		assert.Equal(t, info.Metadata[tagging], want, "a read tells")
		info = assert.Of(p.SetAttr(t.Context(), loc("a"), providers.SetAttrOptions{If: providers.IfVersion(info.Version), Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}})).OK(t)
		f.Change("pre/a", func(b *azureserver.Blob) { assert.Equal(t, b.Tags.Get("project"), "one two", "after chmod") })
		assert.OK(t, assert.ErrOf(p.Write(t.Context(), loc("a"), providers.String("new"), providers.WriteOptions{If: providers.IfVersion(info.Version), Metadata: info.Metadata})))
		assert.OK(t, assert.ErrOf(p.Copy(t.Context(), loc("a"), loc("b"), providers.CopyOptions{If: providers.IfAbsent()})))
		for _, key := range []string{"pre/a", "pre/b"} {
			f.Change(key, func(b *azureserver.Blob) { assert.Equal(t, b.Tags.Has("project"), want != "", key) })
		}
		told := slices.ContainsFunc(p.Examine(t.Context()), func(f providers.Finding) bool { return f.Name == "tags" && f.Grade == providers.Less })
		assert.Equal(t, told, untagged, "doctor says that tags get lost")
		asked := p.Requests()[opTags].Requests
		assert.False(t, untagged && asked > 0, asked, "requests for tags after a listing without was all that is allowed")
	}
}

// Of what a hierarchical namespace keeps of a blob the mode counts, until another is set.
func TestModesOfHierarchicalNamespace(t *testing.T) {
	f := azureserver.New()
	f.Hierarchical = true
	for key, mode := range map[string]string{"pre/d": "rwxr-x--T+", "pre/f": "rw-r-----"} {
		f.Put(key, "", map[string]string{azureserver.Folder: fmt.Sprint(key == "pre/d")})
		f.Change(key, func(b *azureserver.Blob) { b.Permissions = mode })
	}
	p := openFake(t, f, nil)
	for name, want := range map[string]uint32{"d": 0o1750, "f": 0o640} {
		assert.Equal(t, assert.Of(p.Stat(t.Context(), loc(name))).OK(t).Attr.Mode, want, name)
	}
	for info, err := range providers.All(t.Context(), p, loc(""), providers.ListOptions{}) {
		assert.OK(t, err)
		assert.True(t, info.Kind == providers.KindDir || info.Attr.Mode == 0o640, "a listing says", info)
	}
	_, info, err := providers.Fetch(t.Context(), p, loc("f"), providers.ReadOptions{})
	assert.OK(t, err)
	assert.Equal(t, info.Attr.Mode, 0o640, "a read says")
	changed := providers.SetAttrOptions{If: providers.IfVersion(info.Version), Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}}
	assert.OK(t, assert.ErrOf(p.SetAttr(t.Context(), loc("f"), changed)))
	assert.Equal(t, assert.Of(p.Stat(t.Context(), loc("f"))).OK(t).Attr.Mode, 0o600, "after chmod")
}

// New content goes to the tier that somebody chose for the old, but for one where it could not be
// read.
func TestTiersToKeep(t *testing.T) {
	const class = providers.HeaderMetadata + "storage-class"
	for _, c := range []struct {
		tier     string
		inferred bool
		want     string
	}{{"Hot", true, ""}, {"Hot", false, "Hot"}, {"Cool", false, "Cool"}, {"Cold", false, "Cold"}, {"Archive", false, ""}, {"Premium", true, ""}} {
		assert.Equal(t, tierToKeep(c.tier, c.inferred), c.want, c)
	}
	f := azureserver.New()
	p := openFake(t, f, nil)
	made, err := p.Write(t.Context(), loc("a"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent(), Metadata: map[string]string{class: "Cool"}})
	assert.OK(t, err)
	page := assert.Of(p.List(t.Context(), loc(""), providers.ListOptions{})).OK(t)
	assert.Equal(t, len(page.Entries), 1, "entries")
	assert.Equal(t, page.Entries[0].Metadata[class], "Cool", "a listing tells")
	assert.Equal(t, made.Metadata[class], "Cool", "the answer tells")
}

// With a signature in place of a key nothing else changes.
func TestContractWithSignature(t *testing.T) {
	providertest.RunVariant(t, func(t providertest.T) providers.Provider {
		return assert.Of(openFakeErr(t, azureserver.New(), nil, secrets{"sas_token": "?sv=2025-01-01&sig=c2ln"})).OK(t, "open")
	})
}

// A version that was asked for and is not there any more is gone, also where the service says of
// the condition that it does not hold.
func TestGoneWhileRead(t *testing.T) {
	f := azureserver.New()
	p := openFake(t, f, nil)
	f.Put("pre/a", "x", nil)
	info := assert.Of(p.Stat(t.Context(), loc("a"))).OK(t)
	assert.OK(t, p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.Unconditional()}))
	f.Refuse(412, "ConditionNotMet")
	assert.Is(t, assert.ErrOf(p.Read(t.Context(), loc("a"), providers.ReadOptions{Version: info.Version})), providers.ErrNotExist)
}

// Where there is no Put Blob From URL a copy is a block, on the same conditions.
func TestCopyOfAnOldService(t *testing.T) {
	f := azureserver.New()
	p := openFake(t, f, nil)
	f.Put("pre/a", "content", map[string]string{"mode": "33152"})
	for _, want := range []error{nil, providers.ErrExist} {
		f.Next(nil) // the source is looked at
		f.Refuse(501, "APINotImplemented")
		_, err := p.Copy(t.Context(), loc("a"), loc("b"), providers.CopyOptions{If: providers.IfAbsent()})
		assert.Is(t, err, want)
	}
	content, info, err := providers.Fetch(t.Context(), p, loc("b"), providers.ReadOptions{})
	assert.True(t, err == nil && string(content) == "content" && info.Attr.Mode == 0o600, content, info, err)
}

// A block that arrived as another is no part.
func TestCorruptBlock(t *testing.T) {
	f := azureserver.New()
	p := openFake(t, f, nil)
	u := assert.Of(p.StartParts(t.Context(), loc("a"), providers.WriteOptions{If: providers.IfAbsent()})).OK(t)
	f.Next(func(r *http.Request) *http.Response {
		return &http.Response{StatusCode: http.StatusCreated, Request: r, Body: http.NoBody,
			Header: http.Header{"X-Ms-Request-Id": {"one"}, "X-Ms-Content-Crc64": {"AAAAAAAAAAA="}}}
	})
	assert.Is(t, u.Part(t.Context(), 1, providers.String("part")), providers.ErrCorrupt)
	assert.Is(t, u.Part(t.Context(), 1, providers.String("part")), nil)
}

// A name that the service would take for another is refused.
func TestNames(t *testing.T) {
	f := azureserver.New()
	p := openFake(t, f, nil)
	for _, name := range []string{`a\b`, "a.", "d./a"} {
		_, err := p.Write(t.Context(), loc(name), providers.String("x"), providers.WriteOptions{If: providers.Unconditional()})
		assert.Is(t, err, providers.ErrInvalid, name)
	}
	assert.Equal(t, len(f.Keys()), 0, "blobs")
}

// What an answer means, and that no signature gets into what is said of it.
func TestErrors(t *testing.T) {
	p, err := openFakeErr(t, roundTrip(func(r *http.Request) (*http.Response, error) { return nil, errors.New("no route to host") }), nil,
		secrets{"sas_token": "sv=2025-01-01&sig=c2lnbmF0dXJl"})
	assert.True(t, p == nil && errors.Is(err, providers.ErrUnavailable) && !strings.Contains(err.Error(), "sig="), "open:", err)
	f := azureserver.New()
	p = openFake(t, f, nil)
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{403, "AuthenticationFailed", providers.ErrUnauthenticated}, {403, "AuthorizationFailure", providers.ErrPermission},
		{404, "ContainerNotFound", providers.ErrUnavailable}, {404, "", providers.ErrUnavailable}, {503, "ServerBusy", providers.ErrUnavailable},
		{409, "BlobArchived", providers.ErrPermission}, {412, "LeaseIdMissing", providers.ErrUnavailable}, {400, "Md5Mismatch", providers.ErrCorrupt},
		{400, "MetadataTooLarge", providers.ErrTooLarge}, {409, "InvalidBlobType", providers.ErrUnsupported},
	} {
		f.Refuse(c.status, c.code)
		_, err := p.Write(t.Context(), loc("a"), providers.String("x"), providers.WriteOptions{If: providers.Unconditional()})
		assert.Is(t, err, c.want, c.status, c.code)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A page in the place of an answer counts as none.
func TestForeignAnswers(t *testing.T) {
	f := azureserver.New()
	p := openFake(t, f, nil)
	page := func(r *http.Request) *http.Response {
		const text = "<html>log in</html>"
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}, "Etag": {`"x"`}}, Request: r,
			ContentLength: int64(len(text)), Body: io.NopCloser(strings.NewReader(text))}
	}
	f.Next(page)
	_, err := p.Write(t.Context(), loc("a"), providers.String("x"), providers.WriteOptions{If: providers.Unconditional()})
	assert.Is(t, err, providers.ErrUnavailable, "a write that a page answered")
	f.Next(page)
	assert.Is(t, assert.ErrOf(p.List(t.Context(), loc(""), providers.ListOptions{})), providers.ErrUnavailable, "a listing that a page answered")
}

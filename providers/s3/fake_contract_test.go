package s3

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/seamtest"
)

// Provider is what a driver opens.
type Provider = bucket.Opened[*store]

// openFake opens a bucket in memory.
func openFake(t providertest.T, f *fake, config map[string]string) *Provider {
	t.Helper()
	return assert.Of(openFakeErr(t, f, config)).OK(t, "open")
}

func openFakeErr(t providertest.T, f http.RoundTripper, config map[string]string) (*Provider, error) {
	s := providers.Settings{
		Config:      map[string]string{"kind": "s3", "bucket": "b", "endpoint": "http://fake.invalid", "prefix": "pre"},
		Credentials: secrets{"access_key_id": "a", "secret_access_key": "b"}.reveal,
		Transport:   f,
	}
	for key, value := range config {
		s.Config[key] = value
	}
	p, err := Drivers()[1].Open(t.Context(), s)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { p.Close() })
	return p.(*Provider), nil
}

// Where a service honours everything, and allows what those with a file system below do not.
func TestContractWithAWSSemantics(t *testing.T) {
	p := openFake(t, newFake(), nil)
	want := Probe{Done: true, MD5: true, Honours: bucket.Honours{Create: true, Replace: true, Complete: true, Copy: true, Delete: true, Encodes: true}}
	got := p.Store.probe
	assert.Must(t, got == want, "probe", got, want)
	providertest.Run(t, func(t providertest.T) providers.Provider {
		q := openFake(t, newFake(), nil)
		return q
	})
}

// Where a listing has a file alone and not the directory beside it, no file is made that would
// hide one.
func TestHiddenDirectories(t *testing.T) {
	f := newFake()
	f.hides = true
	p := openFake(t, f, nil)
	assert.Must(t, p.Store.probe.Hides, "probe", p.Store.probe)
	f.put("pre/dir/a", "x", nil)
	for _, c := range []struct {
		when providers.Condition
		want error
	}{{providers.IfAbsent(), providers.ErrExist}, {providers.Unconditional(), providers.ErrIsDir}} {
		_, err := p.Write(t.Context(), loc("dir"), providers.String("x"), providers.WriteOptions{If: c.when})
		if !errors.Is(err, c.want) || slices.Contains(f.keys(), "pre/dir") {
			t.Errorf("a file in place of a directory: got %v, want %v; keys %q", err, c.want, f.keys())
		}
	}
	providertest.RunVariant(t, func(t providertest.T) providers.Provider {
		f := newFake()
		f.hides = true
		return openFake(t, f, nil)
	})
}

// Neither keys nor uploads.
func TestProbeLeavesNothing(t *testing.T) {
	for _, careless := range []bool{true, false} {
		f := newFake()
		f.careless = careless
		openFake(t, f, map[string]string{"allow_unsafe_writes": "true"})
		keys := f.keys()
		assert.True(t, len(keys) == 0 && len(f.uploads) == 0, "careless", careless, keys, "and", len(f.uploads), "uploads are left")
	}
}

// What crashed probes left goes after an hour, and nothing else does.
func TestProbeSweeps(t *testing.T) {
	f := newFake()
	old := []string{"pre/.wsmount/probe-old", "pre/.wsmount/probe-old-2", "pre/.wsmount/hint", "pre/file"}
	for _, key := range append(old, "pre/.wsmount/probe-new") {
		f.put(key, "x", nil)
	}
	for _, key := range old {
		f.objects[key].modified = time.Now().Add(-bucket.ScratchOld - time.Minute)
	}
	openFake(t, f, nil)
	want := []string{"pre/.wsmount/hint", "pre/.wsmount/probe-new", "pre/file"}
	assert.Slice(t, f.keys(), want, "left")
}

func TestCarelessService(t *testing.T) {
	f := newFake()
	f.careless = true
	_, err := openFakeErr(t, f, nil)
	assert.True(t, errors.Is(err, providers.ErrUnsupported) && strings.Contains(err.Error(), "PUT with If-None-Match"), "open:", err)
	p := openFake(t, f, map[string]string{"allow_unsafe_writes": "true"})
	assert.Equal(t, p.Capabilities().Conditions.Create, providers.GuardChecked, "creation")
	for _, mode := range []uint32{0o700, 0o750} { // the second time it is there and stays as it is
		info, err := p.Mkdir(t.Context(), providers.MustLocator("dir"), providers.MkdirOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: mode}})
		assert.True(t, err == nil && info.Attr.Mode == 0o700, "mkdir", info, err)
	}
	l := providers.MustLocator("a")
	for _, want := range []error{nil, providers.ErrExist} {
		_, err := p.Write(t.Context(), l, providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()})
		assert.Is(t, err, want, "creation")
	}
}

// TestReadOnlyOpenChangesNothing also asks nothing that costs.
func TestReadOnlyOpenChangesNothing(t *testing.T) {
	f := newFake()
	p, err := Drivers()[0].Open(t.Context(), providers.Settings{
		Config: map[string]string{"bucket": "b", "endpoint": "http://fake.invalid", "credentials": "none"}, Transport: f, ReadOnly: true,
	})
	assert.OK(t, err)
	c := p.Capabilities()
	assert.True(t, !c.Writable && c.Abilities == 0, "capabilities", c)
	_, err = p.Write(t.Context(), providers.MustLocator("a"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()})
	assert.Is(t, err, providers.ErrReadOnly, "write")
	got := p.(providers.Meter).Requests()
	assert.True(t, len(got) == 1 && got["ListObjectsV2"].Requests == 1, "requests", got)
}

// Whatever bytes keys have, they are listed, read and deleted as they are.
func TestKeysOnTheWay(t *testing.T) {
	keys := []string{"plus+ space&=#?", "%~.", "é/漢", "ctl\x01", "n\x00l", "s//t", "x%2F", "u/../v", "."}
	f := newFake()
	p := openFake(t, f, nil)
	for _, key := range keys {
		f.put("pre/"+key, "of "+key, nil)
	}
	var got []string
	for info, err := range providers.All(t.Context(), p, loc(""), providers.ListOptions{Recursive: true}) {
		assert.OK(t, err)
		if info.Kind == providers.KindDir {
			continue
		}
		content, _, err := providers.Fetch(t.Context(), p, info.Locator, providers.ReadOptions{})
		if err == nil {
			err = p.Delete(t.Context(), info.Locator, providers.DeleteOptions{If: providers.Unconditional()})
		}
		assert.Is(t, err, nil, info.Locator)
		got = append(got, strings.TrimPrefix(string(content), "of "))
	}
	slices.Sort(got)
	slices.Sort(keys)
	assert.True(t, slices.Equal(got, keys) && len(f.keys()) == 0, got, keys, "left", f.keys())
}

// AWS's 409 is asked again, and is a conflict in the end.
func TestMeetingWriters(t *testing.T) {
	busy := func(r *http.Request) *http.Response { return refuse(r, 409, "ConditionalRequestConflict") }
	for n, want := range map[int]error{2: nil, 4: providers.ErrExist} {
		f := newFake()
		p := openFake(t, f, nil)
		for range n {
			f.queue = append(f.queue, busy)
		}
		_, err := p.Write(t.Context(), providers.MustLocator("a"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()})
		assert.True(t, errors.Is(err, want) && len(f.queue) == 0, "after", n, "refusals:", err, len(f.queue), "not asked for")
	}
}

// A bucket is a place for memory.
func TestSeam(t *testing.T) {
	seamtest.Run(t, func(t providertest.T) seam.Backend {
		f := newFake()
		return seamtest.Shared(func() seam.Conditional { return seam.New(openFake(t, f, nil)) })
	})
}

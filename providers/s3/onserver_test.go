package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/s3server"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

var (
	absent        = providers.WriteOptions{If: providers.IfAbsent()}
	unconditional = providers.WriteOptions{If: providers.Unconditional()}
)

func loc(s string) providers.Locator { return providers.MustLocator(s) }

// What is known of the servers, so that a new version that differs is noticed; and nothing stays
// of it.
func testProbe(t *testing.T, w *world) {
	want := Probe{Done: true, MD5: true, Honours: bucket.Honours{Create: true, Replace: true, Complete: true}}
	if w.kind == s3server.MinIO {
		want.Encodes, want.Hides = true, true
	}
	assert.Equal(t, w.first.Store.probe, want)
	answer, err := w.first.Store.List(t.Context(), bucket.Query{Prefix: w.first.Store.config.Prefix})
	assert.True(t, err == nil && len(answer.Items) == 0, "left", answer.Items, err)
}

// What each verb costs.
func testRequests(t *testing.T, w *world) {
	p := w.open(t, nil, nil)
	file := assert.Of(p.Write(t.Context(), loc("dir/a"), providers.String("content"), absent)).OK(t)
	drop := func(_ any, err error) error { return err }
	create := map[string]int64{"PutObject": 1}
	if p.Store.probe.Hides { // what would hide a directory asks first
		create["ListObjectsV2"] = 1
	}
	for _, c := range []struct {
		name string
		call func() error
		want map[string]int64
	}{
		{"stat of a file", func() error { return drop(p.Stat(t.Context(), loc("dir/a"))) }, map[string]int64{"HeadObject": 1}},
		{"stat of a directory", func() error { return drop(p.Stat(t.Context(), loc("dir"))) }, map[string]int64{"HeadObject": 1, "ListObjectsV2": 1}},
		{"list", func() error { return drop(p.List(t.Context(), loc("dir"), providers.ListOptions{})) }, map[string]int64{"ListObjectsV2": 1}},
		{"recursive list", func() error { return drop(p.List(t.Context(), loc(""), providers.ListOptions{Recursive: true})) }, map[string]int64{"ListObjectsV2": 1}},
		{"read", func() error {
			return drop3(providers.Fetch(t.Context(), p, loc("dir/a"), providers.ReadOptions{Version: file.Version}))
		}, map[string]int64{"GetObject": 1}},
		{"create", func() error { return drop(p.Write(t.Context(), loc("dir/new"), providers.String("content"), absent)) }, create},
		{"replace", func() error {
			return drop(p.Write(t.Context(), loc("dir/a"), providers.String("content"), providers.WriteOptions{If: providers.IfVersion(file.Version)}))
		}, map[string]int64{"PutObject": 1}},
		{"delete", func() error {
			return p.Delete(t.Context(), loc("dir/a"), providers.DeleteOptions{If: providers.IfVersion(file.Version)})
		},
			map[string]int64{"HeadObject": 1, "DeleteObject": 1}},
	} {
		before := p.Requests()
		assert.Is(t, c.call(), nil, c.name)
		got := map[string]int64{}
		for op, count := range p.Requests() {
			if n := count.Requests - before[op].Requests; n > 0 {
				got[op] = n
			}
		}
		assert.True(t, maps.Equal(got, c.want), c.name, "got", got, "want", c.want)
	}
	sent := p.Requests()["PutObject"].Sent
	assert.True(t, sent >= 2*int64(len("content")), sent, "bytes sent")
	assert.Equal(t, p.Requests()["GetObject"].Received, int64(len("content")), "bytes received")
}

func drop3(_, _ any, err error) error { return err }

// Of five programs that create a file, one does, with parts as well.
func testWritersRace(t *testing.T, w *world) {
	for round, write := range []func(p *Provider, l providers.Locator, content string) error{
		func(p *Provider, l providers.Locator, content string) error {
			return assert.ErrOf(p.Write(t.Context(), l, providers.String(content), absent))
		},
		func(p *Provider, l providers.Locator, content string) error {
			u, err := p.StartParts(t.Context(), l, absent)
			if err != nil {
				return err
			}
			if err := u.Part(t.Context(), 1, providers.String(content)); err != nil {
				return err
			}
			_, err = u.Complete(t.Context())
			return errors.Join(err, u.Abort(t.Context()))
		},
	} {
		p := w.fork(t)
		l := loc(fmt.Sprintf("file%d", round))
		errs := make([]error, 5)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = write(p, l, fmt.Sprint(i)) })
		}
		wg.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner >= 0:
				t.Errorf("round %d: %d and %d won", round, winner, i)
			case err == nil:
				winner = i
			case !errors.Is(err, providers.ErrExist):
				t.Errorf("round %d: a loser hears %v", round, err)
			}
		}
		content, _, err := providers.Fetch(t.Context(), p, l, providers.ReadOptions{})
		assert.True(t, err == nil && string(content) == fmt.Sprint(winner), "round", round, winner, "won, content is", content, err)
	}
}

// losing is a transport that loses the answers to some requests.
type losing struct {
	inner http.RoundTripper

	mu   sync.Mutex // guards lose
	lose func(r *http.Request) bool
}

var errLost = errors.New("the answer got lost")

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := l.inner.RoundTrip(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.lose != nil && l.lose(r) {
		l.lose = nil
		a.Body.Close()
		return nil, errLost
	}
	return a, err
}

func (l *losing) next(lose func(r *http.Request) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose = lose
}

func (l *losing) unused(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	assert.True(t, l.lose == nil, "no answer got lost")
}

func isMethod(method string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == method }
}

// A change whose answer got lost succeeds when repeated with its operation id, is a conflict
// without, and is made once.
func testLostAnswers(t *testing.T, w *world) {
	l := &losing{inner: bucket.PlainTransport()}
	p := w.open(t, nil, l)
	var version providers.Version
	for _, c := range []struct {
		name   string
		method string
		call   func(op string) (providers.Info, error)
	}{
		{"create", http.MethodPut, func(op string) (providers.Info, error) {
			return p.Write(t.Context(), loc("a"), providers.String("1"), providers.WriteOptions{If: providers.IfAbsent(), Op: op})
		}},
		{"replace", http.MethodPut, func(op string) (providers.Info, error) {
			return p.Write(t.Context(), loc("a"), providers.String("22"), providers.WriteOptions{If: providers.IfVersion(version), Op: op})
		}},
		{"setattr", http.MethodPost, func(op string) (providers.Info, error) {
			attr := providers.Attr{Valid: providers.AttrMode, Mode: 0o600}
			return p.SetAttr(t.Context(), loc("a"), providers.SetAttrOptions{If: providers.IfVersion(version), Attr: attr, Op: op})
		}},
		{"copy", http.MethodPost, func(op string) (providers.Info, error) {
			return p.Copy(t.Context(), loc("a"), loc("b"), providers.CopyOptions{If: providers.IfAbsent(), Op: op})
		}},
	} {
		lose := isMethod(c.method)
		if c.method == http.MethodPost { // the completion, not the start
			lose = func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploadId") }
		}
		l.next(lose)
		if _, err := c.call("op-" + c.name); !errors.Is(err, providers.ErrUnavailable) || !errors.Is(err, errLost) {
			t.Fatalf("%s: %v", c.name, err)
		}
		l.unused(t)
		done, err := c.call("op-" + c.name)
		assert.Is(t, err, nil, "repeated", c.name)
		_, err = c.call("another")
		assert.False(t, !errors.Is(err, providers.ErrExist) && !errors.Is(err, providers.ErrConflict), c.name, "by another:", err)
		version = done.Version
	}
	a := assert.Of(p.Stat(t.Context(), loc("a"))).OK(t)
	l.next(isMethod(http.MethodDelete))
	opts := providers.DeleteOptions{If: providers.IfVersion(a.Version)}
	assert.Is(t, p.Delete(t.Context(), loc("a"), opts), providers.ErrUnavailable, "delete")
	l.unused(t)
	assert.Is(t, p.Delete(t.Context(), loc("a"), opts), providers.ErrNotExist, "repeated delete")
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

// Parts in any order and at the same time, one copied from what is there already, in one step.
func testParts(t *testing.T, w *world) {
	p := w.fork(t)
	content := pattern(2*partMin + 1000)
	source := assert.Of(p.Write(t.Context(), loc("source"), providers.Bytes(content), absent)).OK(t)
	u, err := p.StartParts(t.Context(), loc("target"), providers.WriteOptions{If: providers.IfAbsent(), Metadata: map[string]string{"colour": "red"}})
	assert.OK(t, err)
	errs := make([]error, 3)
	var wg sync.WaitGroup
	wg.Go(func() { errs[0] = u.Part(t.Context(), 3, providers.Bytes(content[2*partMin:])) })
	wg.Go(func() {
		stream := struct{ io.Reader }{bytes.NewReader(content[:partMin])}
		errs[1] = u.Part(t.Context(), 1, providers.Body{Reader: stream, Size: partMin})
	})
	wg.Go(func() {
		errs[2] = u.CopyPart(t.Context(), 2, loc("source"), providers.ReadOptions{Offset: partMin, Length: partMin, Version: source.Version})
	})
	wg.Wait()
	assert.OK(t, errors.Join(errs...))
	assert.Is(t, assert.ErrOf(p.Stat(t.Context(), loc("target"))), providers.ErrNotExist, "before completion")
	made := assert.Of(u.Complete(t.Context())).OK(t)
	got, info, err := providers.Fetch(t.Context(), p, loc("target"), providers.ReadOptions{})
	if err != nil || !bytes.Equal(got, content) || !info.Version.Matches(made.Version) || info.Metadata["colour"] != "red" || info.Digest != "" {
		t.Errorf("%d bytes, %+v (made %+v), %v", len(got), info, made, err)
	}
	assert.Is(t, u.Abort(t.Context()), nil, "abort after completion")
	stale := source.Version
	stale.ETag = "never"
	assert.True(t, u.CopyPart(t.Context(), 1, loc("source"), providers.ReadOptions{Version: stale}) != nil, "a part was copied from another version")
}

// A completion whose answer got lost succeeds when repeated, also without an operation id.
func testPartsLostComplete(t *testing.T, w *world) {
	l := &losing{inner: bucket.PlainTransport()}
	p := w.open(t, nil, l)
	for name, opts := range map[string]providers.WriteOptions{"a": absent, "b": {If: providers.IfAbsent(), Op: "op"}, "c": unconditional} {
		u := assert.Of(p.StartParts(t.Context(), loc(name), opts)).OK(t)
		assert.OK(t, u.Part(t.Context(), 1, providers.String(name)))
		l.next(isMethod(http.MethodPost))
		assert.Is(t, assert.ErrOf(u.Complete(t.Context())), providers.ErrUnavailable, name)
		l.unused(t)
		info := assert.Of(u.Complete(t.Context())).OK(t)
		assert.True(t, info.Size == 1 && info.Locator == loc(name), "repeated", name, info)
	}
}

// Uploads that nobody completed are found and freed, and only those that are ours and old.
func testPartsLeft(t *testing.T, w *world) {
	p, other := w.fork(t), w.fork(t)
	for _, q := range []*Provider{p, other} {
		u := assert.Of(q.StartParts(t.Context(), loc("dir/a"), absent)).OK(t)
		assert.OK(t, u.Part(t.Context(), 1, providers.String("x")))
	}
	for _, c := range []struct {
		before time.Time
		want   int
	}{{time.Now().Add(-time.Hour), 0}, {time.Now().Add(time.Hour), 1}, {time.Now().Add(time.Hour), 0}} {
		assert.Of(p.AbortParts(t.Context(), c.before)).Equal(t, c.want, "before", c.before, "aborted")
	}
	assert.Of(other.AbortParts(t.Context(), time.Now().Add(time.Hour))).Equal(t, 1, "the other's")
}

// Those of unknown size, or that cannot seek, and are more than is kept in memory, go out in
// parts; wrong ones leave nothing.
func testLargeBodies(t *testing.T, w *world) {
	p := w.fork(t)
	content := pattern(bucket.BufferSize + 3) // a second part, and the last may be small
	stream := func() io.Reader { return struct{ io.Reader }{bytes.NewReader(content)} }
	l := loc("large")
	info, err := p.Write(t.Context(), l, providers.Body{Reader: stream(), Size: int64(len(content))}, absent)
	assert.Must(t, err == nil && info.Size == int64(len(content)), "write", info, err)
	got, read, err := providers.Fetch(t.Context(), p, l, providers.ReadOptions{})
	assert.True(t, err == nil && bytes.Equal(got, content) && read.Version.Matches(info.Version), len(got), read, err)
	assert.Is(t, assert.ErrOf(p.Write(t.Context(), l, providers.Body{Reader: stream(), Size: providers.SizeUnknown}, absent)), providers.ErrExist, "second creation")
	for _, size := range []int64{int64(len(content)) - 1, int64(len(content)) + 1} {
		assert.Is(t, assert.ErrOf(p.Write(t.Context(), loc("wrong"), providers.Body{Reader: stream(), Size: size}, absent)), providers.ErrInvalid, "wrong size")
	}
	assert.Is(t, assert.ErrOf(p.Stat(t.Context(), loc("wrong"))), providers.ErrNotExist, "stat of what was refused")
	assert.Of(p.AbortParts(t.Context(), time.Now().Add(time.Hour))).Equal(t, 0, "uploads were left")
}

// Attributes, metadata and type come along, of empty files too, and names that a header must
// encode.
func testCopy(t *testing.T, w *world) {
	p := w.fork(t)
	for _, content := range []string{"content", ""} {
		from, to := loc("a b+c%20é/x"+content), loc("copy of "+content)
		attr := providers.Attr{Valid: p.Capabilities().Attributes &^ providers.AttrXattrs, Mode: 0o640, UID: 5, GID: 6, ModTime: time.Unix(1_000_000_000, 5)}
		source, err := p.Write(t.Context(), from, providers.String(content), providers.WriteOptions{If: providers.IfAbsent(), Attr: attr, Metadata: map[string]string{"colour": "grün"}})
		assert.OK(t, err)
		change := providers.Attr{Valid: providers.AttrMode, Mode: 0o600}
		assert.OK(t, assert.ErrOf(p.Copy(t.Context(), from, to, providers.CopyOptions{If: providers.IfAbsent(), Version: source.Version, Attr: change})))
		got, info, err := providers.Fetch(t.Context(), p, to, providers.ReadOptions{})
		if err != nil || string(got) != content || info.Metadata["colour"] != "grün" || info.Attr.Mode != 0o600 || info.Attr.UID != 5 || !info.ModTime().Equal(attr.ModTime) {
			t.Errorf("%q, %+v, %v", got, info, err)
		}
	}
}

// corrupting changes a byte of each body on its way, once it is on.
type corrupting struct {
	inner http.RoundTripper
	on    atomic.Bool
}

func (c *corrupting) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.on.Load() && r.Body != nil && r.ContentLength > 0 && r.Method == http.MethodPut {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		b[0] ^= 1
		r.Body = io.NopCloser(bytes.NewReader(b))
	}
	return c.inner.RoundTrip(r)
}

// What arrives other than it was sent is not kept.
func testCorrupt(t *testing.T, w *world) {
	transport := &corrupting{inner: bucket.PlainTransport()}
	p := w.open(t, nil, transport)
	transport.on.Store(true)
	assert.Is(t, assert.ErrOf(p.Write(t.Context(), loc("a"), providers.String("content"), absent)), providers.ErrCorrupt, "write")
	assert.Is(t, assert.ErrOf(p.Stat(t.Context(), loc("a"))), providers.ErrNotExist, "a corrupt body was kept")
	u, err := p.StartParts(t.Context(), loc("b"), absent)
	if err == nil {
		err = u.Part(t.Context(), 1, providers.String("content"))
	}
	assert.Is(t, err, providers.ErrCorrupt, "part")
}

// The real words of the servers for wrong credentials.
func testWrongLogin(t *testing.T, w *world) {
	for name, secret := range map[string]secrets{
		"secret": {"access_key_id": w.server.AccessKey, "secret_access_key": "wrong-but-long-enough"},
		"key":    {"access_key_id": "nobody", "secret_access_key": w.server.SecretKey},
	} {
		s := w.settings(nil, nil)
		s.Credentials = secret.reveal
		assert.Is(t, assert.ErrOf(Drivers()[1].Open(t.Context(), s)), providers.ErrUnauthenticated, "wrong", name)
	}
	s := w.settings(map[string]string{"bucket": "no-such-bucket"}, nil)
	_, err := Drivers()[1].Open(t.Context(), s)
	assert.True(t, errors.Is(err, providers.ErrNotExist) && strings.Contains(err.Error(), "no-such-bucket"), "wrong bucket:", err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Is(t, assert.ErrOf(Drivers()[1].Open(ctx, w.settings(nil, nil))), context.Canceled, "ended context")
}

// What was to be copied is shorter by now, which some services call a wrong range before they
// look at the condition.
func testCopyShrunk(t *testing.T, w *world) {
	p := w.fork(t)
	long := assert.Of(p.Write(t.Context(), loc("from"), providers.String("a long content"), absent)).OK(t)
	assert.OK(t, assert.ErrOf(p.Write(t.Context(), loc("from"), providers.String("short"), providers.WriteOptions{If: providers.IfVersion(long.Version)})))
	u := assert.Of(p.StartParts(t.Context(), loc("to"), absent)).OK(t)
	defer u.Abort(t.Context())
	assert.Is(t, u.CopyPart(t.Context(), 1, loc("from"), providers.ReadOptions{Version: long.Version}), providers.ErrConflict)
}

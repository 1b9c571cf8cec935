package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/wsmount/wsmount/providers"
)

// listed is all that a listing says, by name, in one page.
func listed(t *testing.T, p *Provider, at string, recursive bool) map[string]providers.Info {
	t.Helper()
	page, err := p.List(t.Context(), loc(at), providers.ListOptions{Recursive: recursive})
	if err != nil || page.Next != "" {
		t.Fatalf("list %q: more %v, %v", at, page.Next != "", err)
	}
	all := map[string]providers.Info{}
	for _, info := range page.Entries {
		all[info.Locator.String()] = info
	}
	return all
}

// spent is what requests a call costs that do not write, as "HeadObject=3 ListObjectsV2=1".
func spent(p *Provider, call func()) string {
	<-p.hints.loaded
	before := p.Requests()
	call()
	var words []string
	for op, count := range p.Requests() {
		if op == "PutObject" {
			continue // it may be a sidecar
		}
		if n := count.Requests - before[op].Requests; n > 0 {
			words = append(words, op+"="+strconv.FormatInt(n, 10))
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func mustWrite(t *testing.T, p *Provider, name, content string, opts providers.WriteOptions) {
	t.Helper()
	opts.If = providers.Unconditional()
	if _, err := p.Write(t.Context(), loc(name), providers.String(content), opts); err != nil {
		t.Fatal(err)
	}
}

// makeTree makes entries by each verb that can.
func makeTree(t *testing.T, p *Provider) {
	t.Helper()
	full := providers.Attr{Valid: attributes, Mode: 0o755, UID: 7, GID: 8, ModTime: time.Unix(1_000_000_000, 5)}
	mustWrite(t, p, "dir/run", "#!", providers.WriteOptions{Attr: full})
	mustWrite(t, p, "dir/link", "run", providers.WriteOptions{Kind: providers.KindSymlink})
	mustWrite(t, p, "dir/plain", "plain", providers.WriteOptions{})
	mustWrite(t, p, "dir/red", "red", providers.WriteOptions{Attr: full, Metadata: map[string]string{"colour": "red"}})
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
	if err != nil {
		t.Fatal(err)
	}
}

// checkTree compares a listing with what Stat says, and wants requests of it.
func checkTree(t *testing.T, p *Provider, want string) {
	t.Helper()
	var all map[string]providers.Info
	if got := spent(p, func() { all = listed(t, p, "", true) }); got != want {
		t.Errorf("the listing cost %s, want %s", got, want)
	}
	if len(all) != 8 {
		t.Errorf("listed: %v", all)
	}
	for name, info := range all {
		stat, err := p.Stat(t.Context(), info.Locator)
		if err != nil {
			t.Fatal(err)
		}
		if stat.Metadata != nil { // it stays as vague as listings are
			stat.Attr, stat.Metadata = providers.Attr{}, nil
		}
		if stat.Kind != info.Kind || stat.Size != info.Size || !sameAttr(stat.Attr, info.Attr) {
			t.Errorf("%s: listed %+v, is %+v", name, info, stat)
		}
	}
	if all["dir/link"].Kind != providers.KindSymlink || all["private/copy"].Attr.Mode != 0o4711 || all["parts"].Attr.UID != 7 || all["private"].Attr.Mode != 0o700 {
		t.Errorf("listed: %+v", all)
	}
}

func sameAttr(a, b providers.Attr) bool {
	same := a.ModTime.Equal(b.ModTime)
	a.ModTime, b.ModTime = time.Time{}, time.Time{}
	return same && a == b
}

// testHints: what one provider wrote, another sees in its first listing.
func testHints(t *testing.T, w *world) {
	prefix := map[string]string{"prefix": "test/" + rand.Text()}
	p := w.open(t, prefix, nil)
	makeTree(t, p)
	checkTree(t, p, "ListObjectsV2=1")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	q := w.open(t, prefix, nil)
	checkTree(t, q, "ListObjectsV2=1")
	if got := listed(t, q, "", false)["private"].Attr.Mode; got != 0o700 {
		t.Errorf("mode of a directory: %o", got)
	}
	if err := errors.Join(q.Delete(t.Context(), loc("dir/run"), providers.DeleteOptions{If: providers.Unconditional()}), q.Close()); err != nil {
		t.Fatal(err)
	}
	r := w.open(t, prefix, nil)
	<-r.hints.loaded
	if _, there := r.hints.known[hintID("dir/run")]; there {
		t.Error("what was deleted is known")
	}
}

// s3fs is what s3fs writes with a file.
func s3fs(mode uint32) http.Header {
	return http.Header{
		"X-Amz-Meta-Mode": {strconv.FormatUint(uint64(mode), 10)}, "X-Amz-Meta-Uid": {"1"}, "X-Amz-Meta-Gid": {"2"},
		"X-Amz-Meta-Mtime": {"1000000000.5"}, "X-Amz-Meta-Ctime": {"1000000001"}, "X-Amz-Meta-Atime": {"1000000002"},
	}
}

// TestHintsOnFake: the same where tags of attributes' changes are the content's.
func TestHintsOnFake(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	makeTree(t, p)
	p.Close()
	q := openFake(t, f, nil)
	checkTree(t, q, "ListObjectsV2=1")
}

// TestHintsOfOtherVersions: what others changed since is asked for, also if
// its content is the same.
func TestHintsOfOtherVersions(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	for _, name := range []string{"attr", "content"} {
		mustWrite(t, p, name, "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}})
	}
	p.Close()
	f.put("pre/attr", "x", s3fs(0o100755))
	f.objects["pre/attr"].modified = time.Now().Add(time.Minute)
	f.put("pre/content", "y", s3fs(0o100711))
	q := openFake(t, f, nil)
	var all map[string]providers.Info
	if got := spent(q, func() { all = listed(t, q, "", false) }); got != "HeadObject=2 ListObjectsV2=1" {
		t.Errorf("spent %s", got)
	}
	if a, b := all["attr"].Attr, all["content"].Attr; a.Mode != 0o755 || b.Mode != 0o711 {
		t.Errorf("got %+v, %+v", a, b)
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
		{"many", 1000, nil, "HeadObject=3 " + list, "HeadObject=3 " + list},
		{"few of s3fs", 8, s3fs(0o100755), "HeadObject=8 " + list, list},
		{"many of s3fs", 1000, s3fs(0o100755), "HeadObject=1000 " + list, list},
		{"many of rclone", 1000, http.Header{"X-Amz-Meta-Mtime": {"1"}}, "HeadObject=3 " + list, "HeadObject=3 " + list},
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

// TestHintsOfReaders: who opened for reading sees them, and writes none.
func TestHintsOfReaders(t *testing.T) {
	f := newFake()
	f.put("pre/a", "x", s3fs(0o100755))
	p := openFake(t, f, nil)
	mustWrite(t, p, "b", "target", providers.WriteOptions{Kind: providers.KindSymlink})
	p.Close()
	keys := f.keys()
	q, err := Drivers()[2].Open(t.Context(), providers.Settings{Transport: f, ReadOnly: true,
		Config: map[string]string{"bucket": "b", "endpoint": "http://fake.invalid", "prefix": "pre", "credentials": "none"}})
	if err != nil {
		t.Fatal(err)
	}
	all := listed(t, q.(*Provider), "", false)
	if all["a"].Attr.Mode != 0o755 || all["b"].Kind != providers.KindSymlink {
		t.Errorf("listed %+v", all)
	}
	q.Close()
	if got := f.keys(); !slices.Equal(got, keys) {
		t.Errorf("keys %q, before %q", got, keys)
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
	for _, limit := range []int{1, 7, 1000, 1005} {
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

// sidecarsOf are the keys of sidecars in a bucket.
func sidecarsOf(f *fake) []string {
	return slices.DeleteFunc(f.keys(), func(key string) bool { return !strings.HasPrefix(key, "pre/"+sidecars) })
}

// TestDamagedSidecars are told to the log and to nobody else, and stay.
func TestDamagedSidecars(t *testing.T) {
	good := encodeHints([]keyed{{1, hint{at: 5}}, {2, hint{at: 6, mtime: 8}}})
	flipped := bytes.Clone(good)
	flipped[len(flipped)-6] ^= 1
	for name, content := range map[string]string{
		"empty": "", "short": string(good[:len(good)-3]), "shorter": sidecarHead, "flipped": string(flipped), "trailing": string(good) + "x",
		"foreign": "hello\nworld\n", "newer": strings.Replace(string(good), "hints 1", "hints 2", 1),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.put("pre/a", "x", s3fs(0o100755))
			bad := "pre/" + sidecars + "0-bad"
			f.put(bad, content, nil)
			f.put("pre/"+sidecars+"1-good", string(good), nil)
			out := &lockedBuffer{}
			p, err := Drivers()[1].Open(t.Context(), providers.Settings{
				Config:      map[string]string{"bucket": "b", "endpoint": "http://fake.invalid", "prefix": "pre"},
				Credentials: secrets{"access_key_id": "a", "secret_access_key": "b"}.reveal, Transport: f, Logger: slog.New(slog.NewTextHandler(out, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			q := p.(*Provider)
			if got := listed(t, q, "", true); len(got) != 1 || got["a"].Attr.Mode != 0o755 {
				t.Errorf("listed %+v", got)
			}
			if !strings.Contains(out.String(), "hints of attributes are ignored") || !strings.Contains(out.String(), bad) {
				t.Errorf("log: %s", out)
			}
			if len(q.hints.known) != 3 {
				t.Errorf("%d hints are known", len(q.hints.known))
			}
			q.hints.io.Lock()
			err = q.hints.compact(t.Context())
			q.hints.io.Unlock()
			if keys := sidecarsOf(f); err != nil || len(keys) != 2 || keys[0] != bad {
				t.Errorf("left: %q, %v", keys, err)
			}
		})
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestHintsOfTwo: two mounts that write, and make one sidecar of many, at the
// same time lose no hint.
func TestHintsOfTwo(t *testing.T) {
	f := newFake()
	const rounds = 3 * sidecarMany
	var wg sync.WaitGroup
	for who := range 2 {
		p := openFake(t, f, nil)
		wg.Go(func() {
			for i := range rounds {
				mustWrite(t, p, fmt.Sprintf("f%d-%d", who, i), "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}})
				p.hints.run()
			}
		})
	}
	wg.Wait()
	if n := len(sidecarsOf(f)); n > 2*sidecarMany {
		t.Errorf("%d sidecars", n)
	}
	q := openFake(t, f, nil)
	var all map[string]providers.Info
	if got := spent(q, func() { all = listed(t, q, "", false) }); got != "ListObjectsV2=1" || len(all) != 2*rounds {
		t.Errorf("%d entries cost %s", len(all), got)
	}
	for name, info := range all {
		if info.Attr.Mode != 0o700 {
			t.Errorf("%s: %+v", name, info)
		}
	}
}

// TestCompaction: of many sidecars there is one, what was deleted is not in it,
// and who reads meanwhile looks again.
func TestCompaction(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	for i := range sidecarMany - 1 {
		mustWrite(t, p, fmt.Sprint("f", i), "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}})
		p.hints.run()
	}
	if n := len(sidecarsOf(f)); n != sidecarMany-1 {
		t.Errorf("%d sidecars", n)
	}
	q := openFake(t, newFake(), nil) // reads the names of sidecars that are gone
	<-q.hints.loaded
	q.client = p.client
	old, err := q.list(t.Context(), &s3.ListObjectsV2Input{Prefix: aws.String("pre/" + sidecars)})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), loc("f3"), providers.DeleteOptions{If: providers.Unconditional()}); err != nil {
		t.Fatal(err)
	}
	p.hints.run()
	keys := sidecarsOf(f)
	if len(keys) != 1 {
		t.Errorf("sidecars: %q", keys)
	}
	q.hints.loaded = make(chan struct{})
	q.hints.start(old.items, true)
	<-q.hints.loaded
	if n := len(q.hints.known); n != sidecarMany-2 {
		t.Errorf("%d hints after another removed them", n)
	}
	all, err := decodeHints(f.objects[keys[0]].content, hintsMost)
	if err != nil || len(all) != sidecarMany-2 {
		t.Errorf("%d hints, %v", len(all), err)
	}
}

// TestHintsOfOthersLater: sidecars are looked at again when a listing shows
// what nobody knows, and not often.
func TestHintsOfOthersLater(t *testing.T) {
	f := newFake()
	p, q := openFake(t, f, nil), openFake(t, f, nil)
	listed(t, q, "", false)
	for i := range 20 {
		mustWrite(t, p, fmt.Sprint("f", i), "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}})
	}
	p.hints.run()
	later := time.Now().Add(hintsFresh)
	q.now = func() time.Time { return later }
	var all map[string]providers.Info
	if got := spent(q, func() { all = listed(t, q, "", false) }); got != "GetObject=1 ListObjectsV2=2" || all["f1"].Attr.Mode != 0o700 {
		t.Errorf("spent %s for %+v", got, all["f1"])
	}
	f.put("pre/new", "y", nil)
	if got := spent(q, func() { listed(t, q, "", false) }); got != "HeadObject=1 ListObjectsV2=1" {
		t.Errorf("soon after: spent %s", got)
	}
}

// stuck is a transport that stops answering.
type stuck struct {
	inner http.RoundTripper
	how   func(r *http.Request) error // nil: it answers
}

func (s *stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.how != nil {
		return nil, s.how(r)
	}
	return s.inner.RoundTrip(r)
}

// TestCloseIsBounded: whatever the network does.
func TestCloseIsBounded(t *testing.T) {
	hang := func(r *http.Request) error { <-r.Context().Done(); return r.Context().Err() }
	for _, c := range []struct {
		name string
		how  func(r *http.Request) error
		most time.Duration
		fail bool // a writing failed before
	}{
		{"no network", func(*http.Request) error { return errors.New("no route to host") }, 2 * time.Second, false},
		{"no answer", hang, 2 * hintsClose, false},
		{"no answer, known before", hang, hintsClose - time.Second/4, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			s := &stuck{inner: f}
			p, err := openFakeErr(t, s, nil)
			if err != nil {
				t.Fatal(err)
			}
			mustWrite(t, p, "a", "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}})
			s.how = c.how
			if c.fail {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				h := p.hints
				h.cancel()
				h.ctx, h.cancel = ctx, cancel
				h.run()
				cancel()
			}
			start := time.Now()
			p.Close()
			if took := time.Since(start); took > c.most {
				t.Errorf("close took %v", took)
			}
			if len(p.hints.dirty) != 1 || len(sidecarsOf(f)) != 0 {
				t.Errorf("%d wait, keys %q", len(p.hints.dirty), f.keys())
			}
		})
	}
}

// TestHintsAreWrittenAside: a write waits for no sidecar, and a thousand of them
// do not wait for time.
func TestHintsAreWrittenAside(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	opts := providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}}
	before := p.Requests()["PutObject"].Requests
	mustWrite(t, p, "a", "x", opts)
	if n := p.Requests()["PutObject"].Requests - before; n != 1 {
		t.Errorf("%d requests", n)
	}
	if n := len(sidecarsOf(f)); n != 0 {
		t.Errorf("%d sidecars at once", n)
	}
	for i := range hintsBatch {
		mustWrite(t, p, fmt.Sprint("f", i), "x", opts)
	}
	for start := time.Now(); len(sidecarsOf(f)) == 0; time.Sleep(time.Millisecond) {
		if time.Since(start) > hintsDelay/2 {
			t.Fatal("no sidecar")
		}
	}
}

// TestHintsAreBounded: in memory, and in a sidecar.
func TestHintsAreBounded(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	p.hints.most = 100
	for i := range 200 {
		f.put(fmt.Sprint("pre/f", i), "x", s3fs(0o100755))
	}
	for range 2 {
		listed(t, p, "", false)
		if n, dirty := len(p.hints.known), len(p.hints.dirty); n != 100 || dirty > 10 {
			t.Errorf("%d hints, %d of them new", n, dirty)
		}
	}
	if all, err := decodeHints(encodeHints(make([]keyed, 101)), 100); !errors.Is(err, providers.ErrTooLarge) {
		t.Errorf("%d hints, %v", len(all), err)
	}
}

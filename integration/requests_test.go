package integration

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/gate"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/s3server"
	"github.com/wsmount/wsmount/integration/tier"
)

// A requestRow says what an operation may ask of a bucket: no more, so that its
// price does not grow. In make soak it asks for no less either, so that the table stays
// true: there each begins when what is known of the bucket is too old to be believed.
// In make test listings do not count, since how many there are is a matter of time:
// operations come so soon after each other that they may count as a walk, which lists
// more than each would. What a listing asks for as a sample counts: after the walk of
// the first row every object was asked for or is taken for a plain one. But a listing that
// the service answers between changes and the answers to them asks for all that is new there.
type requestRow struct {
	what string
	do   func(dir string) error
	// costs are what it may ask for; after " or ", what it may as well, where
	// that depends on what a sample of the directory brought.
	costs string
}

// mountCosts are those of a mount and the first ls -l of the root: HEADs of two
// directories above, and of three objects of the page that shows how large the tree is;
// listings of that page, of the root, and of two directories of wsmount's own. All else
// tries what the service can do. MinIO has a DELETE more than others.
const mountCosts = "COPY=1 DELETE=6 HEAD=5 LIST=4 PUT=6 UPLOAD=4"

// mostNew is how many objects a row makes at most.
const mostNew = 20

var requestRows = []requestRow{
	{"ls -lR of 1000 files in 20 directories", func(dir string) error { return lslR(dir) }, "HEAD=3 LIST=3"}, // three objects of the second page
	{"stat of a name that is not there", func(dir string) error { return isMissing(dir + "/d00/none") }, "LIST=2"},
	{"cat of a small file", func(dir string) error { return catOther(file(dir, 1, 0)) }, "GET=1 LIST=2"},
	{"cat of what is here", func(dir string) error { return catOther(file(dir, 1, 0)) }, "LIST=2"},
	{"a new small file", func(dir string) error { return put(file(dir, 2, 60), "new") }, "LIST=2 PUT=1"},
	{"other content for it", func(dir string) error { return put(file(dir, 2, 60), "other") }, "LIST=2 PUT=1 or HEAD=1 LIST=2 PUT=1"},
	{"a line more", func(dir string) error { return appends(file(dir, 2, 60), "more") }, "LIST=2 PUT=1"},
	{"other content for a file that was never read", func(dir string) error { return put(file(dir, 3, 0), "other") }, "HEAD=1 LIST=2 PUT=1 or LIST=2 PUT=1"},
	{"a line more in a file that was never read", func(dir string) error { return appends(file(dir, 4, 0), "more") }, "GET=1 HEAD=1 LIST=2 PUT=1 or GET=1 LIST=2 PUT=1"},
	{"rename of a file", func(dir string) error { return os.Rename(file(dir, 5, 0), file(dir, 5, 60)) }, "DELETE=1 HEAD=2 LIST=2 UPLOAD=3"},
	{"rename of a directory of 20 files", func(dir string) error {
		return os.Rename(dir+"/twenty", dir+"/moved")
	}, "DELETE=20 HEAD=42 LIST=2 PUT=1 UPLOAD=60"},
	{"rm", func(dir string) error { return os.Remove(file(dir, 6, 0)) }, "DELETE=1 HEAD=1 LIST=2"},
	{"mkdir", func(dir string) error { return os.Mkdir(dir+"/made", 0o755) }, "HEAD=1 LIST=1 PUT=1"},
	{"rmdir", func(dir string) error { return os.Remove(dir + "/empty") }, "DELETE=1 LIST=2"},
	{"chmod +x", func(dir string) error { return os.Chmod(file(dir, 7, 0), 0o755) }, "HEAD=1 LIST=2 UPLOAD=3"},
	{"a look at each of 20 files", func(dir string) error { return looks(dir + "/moved") }, "LIST=2"},
}

func file(dir string, d, f int) string { return fmt.Sprintf("%s/d%02d/f%02d", dir, d, f) }

func put(path, content string) error { return os.WriteFile(path, []byte(content), 0o644) }

// What a bucket is asked for is what it costs. In make soak nothing runs beside it: what
// takes longer than the TTL costs more.
func TestRequestsOfABucket(t *testing.T) {
	if !tier.Soak {
		t.Parallel()
	}
	s := s3server.Start(t, s3server.Default())
	meter := newRequestMeter(t, s.Endpoint)
	fillPlain(t, s)
	b := newBucketStage(t, s, meter.endpoint)
	m := b.w.Mount("@acme/bucket")
	if err := lsl(m.Dir); err != nil { // the mount has begun to list the root for it
		t.Fatal(err)
	}
	meter.settled(t, m, "mount, and the first ls -l of the root", mountCosts)
	for _, row := range requestRows {
		meter.check(t, m, row)
	}
	if tier.Soak {
		meter.withinTTL(t, m)
	}
	b.truthful(meter, m)

	m.Stop()
	if err := os.RemoveAll(b.w.Path("state", "acme")); err != nil { // a machine that was never here
		t.Fatal(err)
	}
	meter.reset()
	m.Start()
	assert.OK(t, lsl(m.Dir))
	// What was taken for plain is not remembered in the bucket.
	meter.settled(t, m, "mount, and the first ls -l of the root on another machine", mountCosts)
}

// A walk asks for the names page by page, a thousand at a time, and not for one directory
// after the other, when the tree is new and when what is known of it is too old. A walk
// that takes longer than names are believed, which is the machine's doing, asks again for
// the root, the page that it is in, and the two ahead of it.
func TestListingsOfAWalk(t *testing.T) {
	t.Parallel()
	s := s3server.Start(t, s3server.Default())
	meter := newRequestMeter(t, s.Endpoint)
	fillPlain(t, s)
	m := newBucketStage(t, s, meter.endpoint).w.Mount("@acme/bucket")
	for i, walk := range []string{"first walk", "walk when the TTL is over"} {
		if i > 0 {
			time.Sleep(believed) // nothing can be told to expire earlier
		}
		meter.wait(t, m)
		meter.reset()
		began, names := time.Now(), 0
		err := filepath.WalkDir(m.Dir, func(_ string, d fs.DirEntry, err error) error {
			if names++; err == nil {
				_, err = d.Info()
			}
			return err
		})
		assert.OK(t, err)
		meter.wait(t, m)
		took := time.Since(began)
		most := names/1000 + 3 + 4*(1+int(took/time.Second)) // what was known before the walk ends in it, too
		got := meter.of("LIST")
		assert.True(t, got >= 1 && got <= most, walk, "of", names, "names, which took", took, got, "listings, want 1 to", most)
	}
}

// truthful wants status to count what a service counts.
func (b *bucketStage) truthful(meter *requestMeter, m *harness.Mount) {
	b.t.Helper()
	harness.Eventually(b.t, "status counts as the service does", func() bool {
		sum := int64(0)
		for _, n := range m.Status().Parts[0].WorkingCopy.Requests {
			sum += n.Count
		}
		meter.mu.Lock()
		defer meter.mu.Unlock()
		return sum == meter.all
	})
}

// fillPlain puts objects there as any tool does.
func fillPlain(t *testing.T, s *s3server.Server) {
	t.Helper()
	assert.OK(t, s.Put(t.Context(), "team/ws/empty/", nil, nil))
	var wg sync.WaitGroup
	put := func(key string) {
		assert.Is(t, s.Put(t.Context(), "team/ws/"+key, []byte("content of "+key), nil), nil)
	}
	for d := range 20 {
		wg.Go(func() {
			for f := range 50 {
				put(fmt.Sprintf("d%02d/f%02d", d, f))
			}
			put(fmt.Sprintf("twenty/f%02d", d))
		})
	}
	wg.Wait()
}

func lsl(dir string) error  { return exec.Command("ls", "-l", dir).Run() }
func lslR(dir string) error { return exec.Command("ls", "-lR", dir).Run() }

func isMissing(path string) error {
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		return fmt.Errorf("got %w", err)
	}
	return nil
}

func catOther(path string) error {
	content, err := os.ReadFile(path)
	if err == nil && !bytes.HasPrefix(content, []byte("content of ")) {
		err = fmt.Errorf("got %q", content)
	}
	return err
}

func appends(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	return f.Close()
}

// looks is what `git status` does with a tree that has not changed.
func looks(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = syscall.Lstat(path, new(syscall.Stat_t))
		}
		return err
	})
}

// A requestMeter counts what arrives at a service, by its verbs. What wsmount
// remembers in the bucket goes there when it has time, and is left out.
type requestMeter struct {
	endpoint string

	mu     sync.Mutex
	seen   map[string]int
	lists  int                  // listings, those too that are left out
	listed map[string]time.Time // when each directory was
	all    int64                // also what is left out
}

// believed is more than the second for which names and versions are.
const believed = 1100 * time.Millisecond

func newRequestMeter(t *testing.T, endpoint string) *requestMeter {
	t.Helper()
	pass := assert.Of(gate.To(endpoint)).OK(t)
	m := &requestMeter{seen: map[string]int{}, listed: map[string]time.Time{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.count(r)
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	m.endpoint = server.URL
	return m
}

func (m *requestMeter) count(r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all++
	if strings.Contains(r.URL.Path, "/.wsmount/hints/") {
		return
	}
	if gate.Verb(r) == "LIST" {
		if m.lists++; m.isLater(r.URL.RawQuery) {
			return
		}
	}
	m.seen[gate.Verb(r)]++
}

// isLater reports whether a directory was listed before, and is again because the
// operation takes longer than that is believed, which is the machine's doing. mu
// is held.
func (m *requestMeter) isLater(query string) bool {
	before, again := m.listed[query]
	m.listed[query] = time.Now()
	return again && time.Since(before) > believed/4
}

func (m *requestMeter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.seen)
	clear(m.listed)
	m.lists = 0
}

// of is how often a verb was asked for.
func (m *requestMeter) of(verb string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[verb]
}

func (m *requestMeter) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for verb, n := range m.seen {
		out = append(out, fmt.Sprintf("%s=%d", verb, n))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// check does an operation.
func (m *requestMeter) check(t *testing.T, mount *harness.Mount, row requestRow) {
	t.Helper()
	if tier.Soak {
		time.Sleep(believed)
	}
	m.reset()
	assert.OK(t, row.do(mount.Dir), row.what)
	m.settled(t, mount, row.what, row.costs)
}

// settled compares what has been asked for since the last reset.
func (m *requestMeter) settled(t *testing.T, mount *harness.Mount, what, want string) {
	t.Helper()
	m.wait(t, mount)
	if got, fits := m.String(), strings.Split(want, " or "); tier.Soak && !slices.Contains(fits, got) || !slices.ContainsFunc(fits, m.atMost) {
		t.Errorf("%s: asked for %q, want %q", what, got, want)
	}
}

// atMost reports whether no more was asked for, listings and what they ask for aside.
func (m *requestMeter) atMost(want string) bool {
	most := map[string]int{}
	for _, words := range strings.Fields(want) {
		verb, n, _ := strings.Cut(words, "=")
		most[verb], _ = strconv.Atoi(n)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	most["HEAD"] += m.lists * mostNew // each may have met the changes of the row
	for verb, n := range m.seen {
		if verb != "LIST" && n > most[verb] {
			return false
		}
	}
	return true
}

// wait returns when all is done that was begun.
func (m *requestMeter) wait(t *testing.T, mount *harness.Mount) {
	t.Helper()
	last := ""
	harness.Eventually(t, "nothing is on its way", func() bool {
		before := last
		last = m.String()
		return mount.Status().Parts[0].Unsaved.Names == 0 && last == before
	})
}

// withinTTL looks at a tree twice: the second look costs nothing. Where both take half of
// the TTL or more, which is the machine's doing, the directory and the root may be asked
// for again in each of these times.
func (m *requestMeter) withinTTL(t *testing.T, mount *harness.Mount) {
	t.Helper()
	time.Sleep(believed)
	began := time.Now()
	assert.OK(t, looks(mount.Dir+"/moved"))
	m.reset()
	assert.OK(t, looks(mount.Dir+"/moved"))
	took := time.Since(began)
	most := 2 * int(took/(believed/2))
	assert.True(t, m.of("LIST") <= most && m.atMost(""), "two looks, which took", took, "the second asked for", m, "want at most", most, "listings")
}

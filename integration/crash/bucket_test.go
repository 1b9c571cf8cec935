package crash

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/azureserver"
	"github.com/wsmount/wsmount/integration/gcsserver"
	"github.com/wsmount/wsmount/integration/internal/crasher"
	"github.com/wsmount/wsmount/integration/internal/gate"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/s3server"
	"github.com/wsmount/wsmount/integration/tier"
)

// The same with the bucket of each service: also what others find there while
// nobody has mounted it are whole files. In make test closes wait at S3, and a queue is sent
// to the others; in make soak all of them have both.
func TestCrashBucket(t *testing.T) {
	t.Parallel()
	type service struct {
		name  string
		start func(t *testing.T) *bucketFar
	}
	services := []service{
		{"azure", func(t *testing.T) *bucketFar {
			return &bucketFar{Bucket: harness.OfAzure(azureserver.Start(t)), makes: []string{http.MethodPut, http.MethodDelete, "COPY"}}
		}},
		{"gcs", func(t *testing.T) *bucketFar {
			return &bucketFar{Bucket: harness.OfGCS(gcsserver.Start(t)), makes: []string{http.MethodPut, http.MethodDelete, "COPY", http.MethodPatch}}
		}},
	}
	for _, kind := range s3server.Kinds() {
		services = append(services, service{"s3 " + string(kind), func(t *testing.T) *bucketFar {
			s := s3server.Start(t, kind)
			return &bucketFar{Bucket: harness.S3(s), s3: s, makes: []string{http.MethodPut, http.MethodDelete, "COPY"}}
		}})
	}
	for _, service := range services {
		t.Run(service.name, func(t *testing.T) {
			t.Parallel()
			if strings.HasPrefix(service.name, "s3 ") || tier.Soak {
				t.Run("canonical", func(t *testing.T) {
					t.Parallel()
					b := service.start(t)
					newCrash(t, b.stageOf(t, "mode: canonical"), 3).runOver(b, "after PUT")
				})
			}
			if !strings.HasPrefix(service.name, "s3 ") || tier.Soak {
				t.Run("write-back", func(t *testing.T) {
					t.Parallel()
					b := service.start(t)
					c := newCrash(t, b.stageOf(t, "mode: canonical, commit: {on: write, batch_window_ms: 100}"), 4).queues()
					c.flags = []string{"--write-back"}
					c.runOver(b, "before PUT")
				})
			}
		})
	}
}

// runOver is run over a bucket. Each service gets all kills twice in make soak.
func (c *crash) runOver(b *bucketFar, name string) {
	c.t.Helper()
	c.each = true
	c.killed = func(what string) { b.dead(what, c.clients) }
	c.run(tier.Pick((*kills+1)/2, *kills), name)
	b.uploads()
}

// bucketPrefix is where in the bucket the workspace lies.
const bucketPrefix = "team/stage/"

// A bucketFar is a bucket behind a gate.
type bucketFar struct {
	harness.Bucket
	*gated
	ctx   context.Context
	s3    *s3server.Server // nil: it is of another service
	makes []string         // see far.calls
	looks int
}

// stageOf is newStage with the bucket.
func (b *bucketFar) stageOf(t *testing.T, sync string) *stage {
	t.Helper()
	g := gate.Open(t, b.Endpoint)
	s := &stage{t: t, w: harness.New(t, harness.Options{}), far: b}
	b.gated, b.ctx = newGated(s, g, bucketVerb), t.Context()
	s.w.Grant(b.Bucket, g.Endpoint)
	s.w.BucketWorkspace(b.Bucket, "stage", g.Endpoint, "team/stage", sync)
	return s
}

// late: MinIO lists a file that is being made or deleted as a directory, and what
// was listed is believed for a second.
func (b *bucketFar) late() time.Duration { return harness.Hangs }

func (b *bucketFar) put(files map[string][]byte) (err error) {
	for path, content := range files {
		err = errors.Join(err, b.Put(b.ctx, bucketPrefix+path, content, nil))
	}
	return err
}

// bucketVerb is what a request asks of a bucket. No file is of more than one part, so that
// an upload is the copy of an object at a service whose copies know no condition.
func bucketVerb(r *http.Request) string {
	if verb := gate.Verb(r); verb != "UPLOAD" {
		return verb
	}
	return "COPY"
}

func (b *bucketFar) calls() []string { return slices.Clone(b.makes) }
func (b *bucketFar) emptyDirs() bool { return true }

func (b *bucketFar) lines() (lines []string) {
	b.t.Helper()
	dirs := map[string]bool{}
	for _, key := range b.keys() {
		for i := range key {
			if key[i] == '/' && i > 0 {
				dirs[key[:i]] = true
			}
		}
		if key == "" || strings.HasSuffix(key, "/") {
			continue
		}
		if content, isLink := b.object(key); isLink {
			lines = append(lines, fmt.Sprintf("%q symlink %q", key, content))
		} else {
			lines = append(lines, fmt.Sprintf("%q file %d sha256:%.8x", key, len(content), sha256.Sum256(content)))
		}
	}
	for dir := range dirs {
		lines = append(lines, fmt.Sprintf("%q dir", dir))
	}
	return lines
}

func (b *bucketFar) keys() []string {
	b.t.Helper()
	return slices.Sorted(maps.Keys(assert.Of(b.ETags(b.ctx, bucketPrefix)).OK(b.t)))
}

// object is what there is under a key, and whether it is a symbolic link.
func (b *bucketFar) object(key string) (content []byte, isLink bool) {
	b.t.Helper()
	o := assert.Of(b.Look(b.ctx, bucketPrefix+key)).OK(b.t)
	mode, _ := strconv.ParseUint(o.Metadata["mode"], 10, 32)
	return o.Content, mode&0o170000 == 0o120000 || o.Metadata["goog-reserved-file-is-symlink"] == "true"
}

// dead looks at the bucket while nobody has mounted it. A mount needs it from its
// first moment on.
func (b *bucketFar) dead(what string, clients []*crasher.Client) {
	b.t.Helper()
	b.connect()
	b.whole(what, clients)
}

// whole wants each object to be a file as it was at some moment, and not half of
// one. In a long run it looks now and then: it replays all that ever happened.
func (b *bucketFar) whole(what string, clients []*crasher.Client) {
	b.t.Helper()
	if b.looks++; b.looks%10 != 1 {
		return
	}
	was := make([]map[[sha256.Size]byte]bool, len(clients))
	for i, c := range clients {
		ops, _, err := crasher.History(c.Log)
		assert.OK(b.t, err)
		was[i] = crasher.Contents(c.Files, ops)
	}
	for _, key := range b.keys() {
		var n int
		if _, err := fmt.Sscanf(key, "c%d/", &n); err != nil || n >= len(was) || strings.HasSuffix(key, "/") {
			continue
		}
		content, isLink := b.object(key)
		assert.False(b.t, !isLink && !was[n][sha256.Sum256(content)], what, "the bucket has", len(content), "bytes as", key, "which it never was")
	}
}

// uploads says what uploads in parts the kills left at S3, of which a mount frees those
// that are a day old.
func (b *bucketFar) uploads() {
	b.t.Helper()
	if b.s3 == nil {
		return
	}
	keys := assert.Of(b.s3.Uploads(b.ctx)).OK(b.t)
	count := map[string]int{}
	for _, key := range keys {
		count[key]++
	}
	b.t.Logf("%d uploads are left, of %d keys: %q", len(keys), len(count), slices.Sorted(maps.Keys(count)))
}

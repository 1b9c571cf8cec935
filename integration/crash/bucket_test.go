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
	"github.com/wsmount/wsmount/integration/internal/crasher"
	"github.com/wsmount/wsmount/integration/internal/gate"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/s3server"
)

// The same with a bucket of a real server: also what others find there while
// nobody has mounted it are whole files.
func TestCrashBucket(t *testing.T) {
	t.Parallel()
	t.Run("canonical", func(t *testing.T) {
		t.Parallel()
		s, b := newBucketStage(t, "mode: canonical")
		c := newCrash(t, s, 3)
		c.killed = func(what string) { b.dead(what, c.clients) }
		c.run((*kills + 1) / 2)
		b.uploads()
	})
	t.Run("write-back", func(t *testing.T) {
		t.Parallel()
		s, b := newBucketStage(t, "mode: canonical, commit: {on: write, batch_window_ms: 100}")
		c := newCrash(t, s, 4).queues()
		c.flags = []string{"--write-back"}
		c.killed = func(what string) { b.dead(what, c.clients) }
		c.run(*kills / 2)
		b.uploads()
	})
}

// bucketPrefix is where in the bucket the workspace lies.
const bucketPrefix = "team/stage/"

// A bucketFar is a bucket behind a gate.
type bucketFar struct {
	*gated
	ctx   context.Context
	s     *s3server.Server
	looks int
}

// newBucketStage is newStage with a bucket.
func newBucketStage(t *testing.T, sync string) (*stage, *bucketFar) {
	t.Helper()
	server := s3server.Start(t, s3server.Default())
	g := gate.Open(t, server.Endpoint)
	s := &stage{t: t, w: harness.New(t, harness.Options{})}
	b := &bucketFar{gated: newGated(s, g, gate.Verb), ctx: t.Context(), s: server}
	s.far = b
	s.w.Grant(server, g.Endpoint)
	s.w.BucketWorkspace("stage", g.Endpoint, "region: us-east-1, bucket: "+server.Bucket+", prefix: team/stage", sync)
	return s, b
}

// late: MinIO lists a file that is being made or deleted as a directory, and what
// was listed is believed for a second.
func (b *bucketFar) late() time.Duration { return harness.Hangs }

func (b *bucketFar) put(files map[string][]byte) (err error) {
	for path, content := range files {
		err = errors.Join(err, b.s.Put(b.ctx, bucketPrefix+path, content, nil))
	}
	return err
}

func (b *bucketFar) calls() []string { return []string{http.MethodPut, http.MethodDelete, "UPLOAD"} }
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
		o := b.object(key)
		if isLink(o) {
			lines = append(lines, fmt.Sprintf("%q symlink %q", key, o.Content))
		} else {
			lines = append(lines, fmt.Sprintf("%q file %d sha256:%.8x", key, len(o.Content), sha256.Sum256(o.Content)))
		}
	}
	for dir := range dirs {
		lines = append(lines, fmt.Sprintf("%q dir", dir))
	}
	return lines
}

func (b *bucketFar) keys() []string {
	b.t.Helper()
	keys, err := b.s.Keys(b.ctx, bucketPrefix)
	assert.OK(b.t, err)
	return keys
}

func (b *bucketFar) object(key string) s3server.Object {
	b.t.Helper()
	o, err := b.s.Look(b.ctx, bucketPrefix+key)
	assert.OK(b.t, err)
	return o
}

// isLink reports whether an object is a symbolic link, as s3fs says it.
func isLink(o s3server.Object) bool {
	mode, _ := strconv.ParseUint(o.Metadata["mode"], 10, 32)
	return mode&0o170000 == 0o120000
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
		if o := b.object(key); !isLink(o) && !was[n][sha256.Sum256(o.Content)] {
			b.t.Errorf("%s: the bucket has %d bytes as %s, which it never was", what, len(o.Content), key)
		}
	}
}

// uploads says what uploads in parts the kills left, of which a mount frees those
// that are a day old.
func (b *bucketFar) uploads() {
	b.t.Helper()
	keys, err := b.s.Uploads(b.ctx)
	assert.OK(b.t, err)
	count := map[string]int{}
	for _, key := range keys {
		count[key]++
	}
	b.t.Logf("%d uploads are left, of %d keys: %q", len(keys), len(count), slices.Sorted(maps.Keys(count)))
}

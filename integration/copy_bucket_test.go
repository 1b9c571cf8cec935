package integration

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/internal/gate"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/model"
	"github.com/wsmount/wsmount/integration/s3server"
)

// bucketPrefix is where in the bucket the workspace @acme/copy lies.
const bucketPrefix = "team/copy/"

// A bucketStore is a bucket. @acme/copy lies there, and so does @acme/beside, which is the
// same; each goes through a gate of its own.
type bucketStore struct {
	harness.Bucket
	ctx     context.Context
	t       testing.TB
	s3      *s3server.Server // nil: it is of another service
	gate    *gate.Gate
	digests map[string]string // of contents, by key and ETag

	mu      sync.Mutex
	verb    string // what is disturbed
	left    int    // so often still
	lose    bool   // it happens, but its answer is lost
	windows int    // see delete
}

// newBucketStore starts the server and registers both workspaces.
func newBucketStore(t testing.TB, w *harness.World, f copyFlavour) *bucketStore {
	t.Helper()
	b := &bucketStore{ctx: t.Context(), t: t, digests: map[string]string{}}
	if start := others[f.server]; start != nil {
		b.Bucket = start(t)
	} else {
		b.s3 = s3server.Start(t, s3server.Kind(f.server))
		b.Bucket = harness.S3(b.s3)
	}
	b.gate = gate.Open(t, b.Endpoint)
	gates := map[string]*gate.Gate{"copy": b.gate, "beside": b.gate.Beside(t)}
	w.Grant(b.Bucket, gates["copy"].Endpoint, gates["beside"].Endpoint)
	for slug, g := range gates {
		way := &bucketWay{bucketStore: b, gate: g, seen: map[string][]string{}, blind: map[string]bool{}}
		g.Set(way.guard)
		w.BucketWorkspace(b.Bucket, slug, g.Endpoint, "team/copy", f.sync)
	}
	t.Cleanup(func() {
		if b.windows > 0 {
			t.Logf("%d deletions could have hit what had just changed", b.windows)
		}
	})
	return b
}

func (b *bucketStore) tamper(path string, content []byte) error {
	if content == nil {
		return b.Delete(b.ctx, bucketPrefix+path)
	}
	return b.Put(b.ctx, bucketPrefix+path, content, nil)
}

// stored reads each object once in each of its versions.
func (b *bucketStore) stored() (map[string]string, error) {
	prefix := bucketPrefix + modelDir + "/"
	etags, err := b.ETags(b.ctx, prefix)
	if err != nil {
		return nil, err
	}
	seen := map[string]string{}
	for key, etag := range etags {
		path := mountedAs(key, etags)
		for i := range path {
			if path[i] == '/' && i > 0 {
				seen[path[:i]] = model.DirMark
			}
		}
		if strings.HasSuffix(key, "/") || key == "" {
			continue
		}
		if b.digests[key+etag] == "" {
			o, err := b.Look(b.ctx, prefix+key)
			if err != nil {
				return nil, err
			}
			etag = o.ETag
			b.digests[key+etag] = model.Digest(o.Content)
		}
		seen[path] = b.digests[key+etag]
	}
	return seen, nil
}

// mountedAs is where a mount shows a key: a directory beside a file of its name has another.
func mountedAs(key string, files map[string]string) string {
	var path strings.Builder
	for i := range len(key) {
		if key[i] == '/' && files[key[:i]] != "" {
			path.WriteString("%2F")
		}
		path.WriteByte(key[i])
	}
	return path.String()
}

func (b *bucketStore) disturb(n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	verbs := []string{http.MethodPut, http.MethodDelete, "LIST", http.MethodGet, http.MethodHead, "COPY", "UPLOAD", http.MethodPatch}
	b.verb = verbs[n%len(verbs)]
	n /= len(verbs)
	b.left, b.lose = 1+n%3, n%2 == 0
	return nil
}

func (b *bucketStore) calm() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = 0
	return nil
}

// A bucketWay is the way of one mount to the bucket.
type bucketWay struct {
	*bucketStore
	gate *gate.Gate

	seen  map[string][]string // by path, the ETags that HEADs told; guarded by mu
	blind map[string]bool     // a deletion was refused, and has to look again; guarded by mu
}

// guard disturbs requests.
func (b *bucketWay) guard(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	verb := gate.Verb(r)
	b.mu.Lock()
	hit := b.left > 0 && verb == b.verb
	if hit {
		b.left--
	}
	lose := b.lose
	b.mu.Unlock()
	switch {
	case hit && lose:
		gate.Lose(r, pass)
	case hit:
		w.WriteHeader(http.StatusServiceUnavailable)
	case verb == http.MethodDelete && b.s3 != nil && r.Header.Get("If-Match") == "":
		b.delete(w, r)
	default:
		pass.ServeHTTP(w, r)
		b.saw(verb, r.URL.Path, w.Header().Get("ETag"))
	}
}

// saw notes what a HEAD told; what the mount changes itself it knows.
func (b *bucketWay) saw(verb, path, etag string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case verb == http.MethodPut || verb == "COPY" || verb == "UPLOAD":
		delete(b.seen, path)
		delete(b.blind, path)
	case verb == http.MethodHead:
		b.seen[path] = append(b.seen[path], etag)
		delete(b.blind, path)
	}
}

// delete refuses to delete anything but what the mount has looked at before. Not
// every server has a condition for that, and what others put there between the
// look and the deletion is lost: `wsmount doctor` says so. How often that could
// have happened is counted.
func (b *bucketWay) delete(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.URL.Path, "/"+b.s3.Bucket+"/")
	b.gate.Alone(func() {
		o, err := b.Look(b.ctx, key)
		if err == nil && o.ETag != "" && b.sawOther(r.URL.Path, o.ETag) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		b.gate.Now(w, r)
	})
}

// sawOther reports whether the mount has seen something else at a path than what is
// there now, and then wants it to look again.
func (b *bucketWay) sawOther(path, etag string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.blind[path] {
		return true
	}
	if !slices.ContainsFunc(b.seen[path], func(was string) bool { return was != "" && was != etag }) {
		return false
	}
	b.windows++
	delete(b.seen, path)
	b.blind[path] = true
	return true
}

// A bucketWriter is another tool that changes what it has read: in turns where
// that is still there, or without asking the server for that.
type bucketWriter struct {
	*bucketStore
	puts int
}

func (b *bucketStore) other() model.Other { return &bucketWriter{bucketStore: b} }

func (o *bucketWriter) key(path string) string { return bucketPrefix + modelDir + "/" + path }

// blocked reports whether a path, or one above it, is of the other kind: a
// bucket could have both.
func (o *bucketWriter) blocked(path string) (bool, error) {
	below, err := o.ETags(o.ctx, o.key(path)+"/")
	if err != nil || len(below) > 0 {
		return true, err
	}
	for i := range path {
		if path[i] != '/' {
			continue
		}
		if above, err := o.Look(o.ctx, o.key(path[:i])); err != nil || above.ETag != "" {
			return true, err
		}
	}
	return false, nil
}

func (o *bucketWriter) Put(path string, content []byte) (old []byte, done bool, err error) {
	if o.puts++; o.puts%2 == 0 {
		return o.putBlindly(path, content)
	}
	was, err := o.Look(o.ctx, o.key(path))
	if err != nil {
		return nil, false, err
	}
	err = o.unlessBlocked(path, func() (err error) {
		done, err = o.Replace(o.ctx, o.key(path), was.ETag, content)
		return err
	})
	return was.Content, done, err
}

// putBlindly asks for nothing when it puts. What it replaces it has read, as no
// mount gets between.
func (o *bucketWriter) putBlindly(path string, content []byte) (old []byte, done bool, err error) {
	err = o.unlessBlocked(path, func() error {
		was, err := o.Look(o.ctx, o.key(path))
		if err != nil {
			return err
		}
		err = o.Bucket.Put(o.ctx, o.key(path), content, nil)
		old, done = was.Content, err == nil
		return err
	})
	return old, done, err
}

// unlessBlocked runs put unless a path is blocked. No mount gets between, as one could
// with a rename.
func (o *bucketWriter) unlessBlocked(path string, put func() error) (err error) {
	o.gate.Alone(func() {
		var blocked bool
		if blocked, err = o.blocked(path); !blocked && err == nil {
			err = put()
		}
	})
	return err
}

// Remove is without condition: not every server has one.
func (o *bucketWriter) Remove(path string) (old []byte, done bool, err error) {
	o.gate.Alone(func() {
		var was s3server.Object
		if was, err = o.Look(o.ctx, o.key(path)); err == nil && was.ETag != "" {
			old, err = was.Content, o.Delete(o.ctx, o.key(path))
			done = err == nil
		}
	})
	return old, done, err
}

package integration

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/azureserver"
	"github.com/wsmount/wsmount/integration/gcsserver"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/s3server"
	"github.com/wsmount/wsmount/integration/tier"
)

// A bucketStage is a workspace in a bucket.
type bucketStage struct {
	t      *testing.T
	w      *harness.World
	bucket harness.Bucket
	s      *s3server.Server // nil: it is of another service
}

// eachServer runs a test over each S3 server.
func eachServer(t *testing.T, test func(t *testing.T, b *bucketStage)) {
	for _, kind := range s3server.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s := s3server.Start(t, kind)
			test(t, newBucketStage(t, s, s.Endpoint))
		})
	}
}

// others are the services beside S3.
var others = map[string]func(t testing.TB) harness.Bucket{
	"azure": func(t testing.TB) harness.Bucket { return harness.OfAzure(azureserver.Start(t)) },
	"gcs":   func(t testing.TB) harness.Bucket { return harness.OfGCS(gcsserver.Start(t)) },
}

// eachService runs a test over each S3 server and over each other service.
func eachService(t *testing.T, test func(t *testing.T, b *bucketStage)) {
	eachServer(t, test)
	for name, start := range others {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			test(t, newStageOf(t, b, b.Endpoint))
		})
	}
}

// newBucketStage makes the workspace @acme/bucket, which reaches its bucket of an S3 server
// at an endpoint.
func newBucketStage(t *testing.T, s *s3server.Server, endpoint string) *bucketStage {
	t.Helper()
	b := newStageOf(t, harness.S3(s), endpoint)
	b.s = s
	return b
}

// newStageOf is newBucketStage with the bucket of any service.
func newStageOf(t *testing.T, bucket harness.Bucket, endpoint string) *bucketStage {
	t.Helper()
	b := &bucketStage{t: t, w: harness.New(t, harness.Options{}), bucket: bucket}
	b.w.Grant(bucket, endpoint)
	b.workspace("bucket", endpoint, "team/ws")
	return b
}

// login writes other secrets of an S3 server than those that wsmount was given.
func (b *bucketStage) login(secretKey string) {
	b.t.Helper()
	secrets := maps.Clone(b.bucket.Secrets)
	secrets["secret_access_key"] = secretKey
	b.w.Login(secrets)
}

// workspace registers @acme/slug below a prefix.
func (b *bucketStage) workspace(slug, endpoint, prefix string) {
	b.t.Helper()
	b.w.BucketWorkspace(b.bucket, slug, endpoint, prefix, "")
}

// fill makes a tree with what a bucket has no word of its own for.
func (b *bucketStage) fill(dir string) {
	b.t.Helper()
	r := rand.NewChaCha8([32]byte{7})
	must := func(err error) {
		assert.OK(b.t, err)
	}
	for i := range 40 {
		sub := filepath.Join(dir, fmt.Sprint("d", i%5), "in")
		must(os.MkdirAll(sub, 0o755))
		content := make([]byte, i*977)
		r.Read(content)
		must(os.WriteFile(filepath.Join(sub, fmt.Sprintf("file %d é+%%.txt", i)), content, 0o640))
	}
	large := make([]byte, 20<<20)
	r.Read(large)
	must(os.WriteFile(filepath.Join(dir, "large"), large, 0o600))
	must(os.Mkdir(filepath.Join(dir, "empty"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "run"), []byte("#!/bin/sh\n"), 0o755))
	must(os.Symlink("run", filepath.Join(dir, "link")))
	must(os.Chtimes(filepath.Join(dir, "run"), time.Time{}, time.Unix(1e9, 0)))
}

// lines is a line for each entry of a tree.
func (b *bucketStage) lines(root string) (lines []string) {
	b.t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			lines = append(lines, rel+"/")
		case d.Type() == fs.ModeSymlink:
			target, _ := os.Readlink(path)
			lines = append(lines, rel+" -> "+target)
		default:
			content, err := os.ReadFile(path)
			lines = append(lines, fmt.Sprintf("%s %v %d %x", rel, info.Mode(), info.ModTime().UnixNano(), sha256.Sum256(content)))
			return err
		}
		return nil
	})
	assert.OK(b.t, err)
	return lines
}

func (b *bucketStage) same(what, root string, want []string) {
	b.t.Helper()
	got := b.lines(root)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			b.t.Fatalf("%s: entry %d of %d and %d differs:\n%.200q\n%.200q", what, i, len(got), len(want), got[i:min(i+1, len(got))], want[i:min(i+1, len(want))])
		}
	}
}

// A tree in a bucket is the same for whoever mounts it anywhere, and for other
// tools its files are objects of their names.
func TestBucketKeepsATree(t *testing.T) {
	t.Parallel()
	eachService(t, func(t *testing.T, b *bucketStage) {
		m := b.w.Mount("@acme/bucket")
		b.fill(m.Dir)
		want := b.lines(m.Dir)
		m.Stop()
		object, err := b.bucket.Look(t.Context(), "team/ws/run")
		assert.True(t, err == nil && string(object.Content) == "#!/bin/sh\n", "the object", object, err)
		if err := os.RemoveAll(b.w.Path("state", "acme")); err != nil { // a machine that was never here
			t.Fatal(err)
		}
		m.Start()
		b.same("on another machine", m.Dir, want)
		assert.OK(t, os.Rename(filepath.Join(m.Dir, "d1"), filepath.Join(m.Dir, "moved")))
		assert.OK(t, os.RemoveAll(filepath.Join(m.Dir, "d2")))
		want = b.lines(m.Dir)
		m.Stop()
		m.Start()
		b.same("after a rename", m.Dir, want)
	})
}

// replaceMeanwhile writes to a file, which it closes after the rest. Meanwhile no test
// starts a process: that has the file, too, until it runs its own program, and closes it
// then, which a mount takes for a close.
func replaceMeanwhile(t *testing.T, path, content string, rest func()) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f := assert.Of(os.OpenFile(path, os.O_WRONLY, 0)).OK(t)
	_, err := f.WriteString(content)
	rest()
	assert.OK(t, errors.Join(err, f.Close()))
}

// Two mounts of one bucket see each other's changes, and neither overwrites what
// it has not seen.
func TestBucketWithTwoWriters(t *testing.T) {
	t.Parallel()
	eachService(t, func(t *testing.T, b *bucketStage) {
		m, other := b.w.Mount("@acme/bucket"), b.w.Mount("@acme/bucket", "--working-copy", "other")
		write := func(path, content string) {
			t.Helper()
			assert.OK(t, os.WriteFile(path, []byte(content), 0o644))
		}
		write(filepath.Join(m.Dir, "plan"), "base")
		harness.Eventually(t, "the other mount has it", func() bool {
			content, _ := os.ReadFile(filepath.Join(other.Dir, "plan"))
			return string(content) == "base"
		})
		replaceMeanwhile(t, filepath.Join(other.Dir, "plan"), "ours", func() { write(filepath.Join(m.Dir, "plan"), "theirs") })
		seen := map[string][]string{}
		defer func() {
			if t.Failed() {
				t.Logf("seen: %q", seen)
			}
		}()
		harness.Eventually(t, "both mounts have both versions", func() bool {
			for _, dir := range []string{m.Dir, other.Dir} {
				seen[dir] = nil
				copies, _ := filepath.Glob(filepath.Join(dir, "plan*"))
				for _, path := range copies {
					content, err := os.ReadFile(path)
					seen[dir] = append(seen[dir], fmt.Sprintf("%q %v", content, err))
				}
				slices.Sort(seen[dir])
			}
			want := []string{`"ours" <nil>`, `"theirs" <nil>`}
			return slices.Equal(seen[m.Dir], want) && slices.Equal(seen[other.Dir], want)
		})
	})
}

// Of a large file that changes here and there, or grows, only that is sent.
func TestBucketGetsOnlyChanges(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, b *bucketStage) {
		m := b.w.Mount("@acme/bucket")
		path := filepath.Join(m.Dir, "large")
		size := tier.Pick[int64](24, 100) << 20
		want := make([]byte, size)
		rand.NewChaCha8([32]byte{8}).Read(want)
		assert.OK(t, os.WriteFile(path, want, 0o644))
		for i, change := range []struct {
			what string
			off  int64
			put  []byte
			most int64
		}{
			{"grown by 1 KiB", size, want[:1<<10], 64 << 10},
			{"grown again", size + 1<<10, want[:1<<10], 64 << 10},
			{"changed in the middle", size / 2, want[:1<<10], 8 << 20},
		} {
			before := sent(m)
			f := assert.Of(os.OpenFile(path, os.O_WRONLY, 0)).OK(t)
			assert.OK(t, f.Chmod(0o600|fs.FileMode(i))) // for a store, what is copied from has another version then
			_, err := f.WriteAt(change.put, change.off)
			assert.OK(t, errors.Join(err, f.Close()))
			got := sent(m) - before
			assert.True(t, got >= int64(len(change.put)) && got <= change.most, change.what, got, "bytes are sent, at most", change.most, "had to be")
			end := int(change.off) + len(change.put)
			if grown := end - len(want); grown > 0 {
				want = slices.Concat(want, make([]byte, grown))
			}
			copy(want[change.off:], change.put)
		}
		m.Stop()
		if err := os.RemoveAll(b.w.Path("state", "acme")); err != nil { // a machine that was never here
			t.Fatal(err)
		}
		m.Start()
		assert.Equal(t, sha256.Sum256(assert.Of(os.ReadFile(path)).OK(t)), sha256.Sum256(want), "the bucket has", "other bytes")
	})
}

// sent is how many bytes a mount has sent to its bucket.
func sent(m *harness.Mount) (n int64) {
	for _, p := range m.Status().Parts {
		for _, r := range p.WorkingCopy.Requests {
			n += r.Sent
		}
	}
	return n
}

package integration

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

var bucketFiles = flag.Int("files", tier.Pick(100, 500), "how many files are written into a bucket")

// A bucketFile is a file that a program has closed.
type bucketFile struct {
	path string
	size int
	seed uint64
}

func (f bucketFile) content() []byte {
	b := make([]byte, f.size)
	rand.NewChaCha8([32]byte{byte(f.seed), byte(f.seed >> 8), byte(f.seed >> 16), byte(f.seed >> 24)}).Read(b)
	return b
}

// drawFiles are n files in some directories: most small, some empty, some so
// large that they go out in parts, and many with odd names.
func drawFiles(r *rand.Rand, n int) (files []bucketFile) {
	for i := range n {
		f := bucketFile{size: r.IntN(256 << 10), seed: r.Uint64()}
		switch i % 250 {
		case 0:
			f.size = 5<<20 + r.IntN(15<<20)
		case 1, 2, 3:
			f.size = r.IntN(2)
		case 4:
			f.size = 16<<20 + r.IntN(4<<20)
		}
		dir := fmt.Sprintf("d%d/%s", r.IntN(1+n/200), oddNames[r.IntN(len(oddNames))])
		if r.IntN(4) == 0 {
			dir = filepath.Dir(dir)
		}
		f.path = fmt.Sprintf("%s/%d %s", dir, i, oddNames[r.IntN(len(oddNames))])
		files = append(files, f)
	}
	return files
}

// When close has returned, or write-back is unmounted, the bucket has every byte
// of every file, and nothing else: another client looks.
func TestBucketHasEveryByte(t *testing.T) {
	t.Parallel()
	for _, f := range served() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			c := f.mount(t)
			files := drawFiles(rand.New(rand.NewPCG(tier.Seed(t), 0)), *bucketFiles)
			writeFiles(t, c.Dir, files)
			if f.later() {
				c.Stop()
			}
			c.store.(*bucketStore).hasAll(files)
		})
	}
}

// writeFiles writes with some programs at once.
func writeFiles(t *testing.T, dir string, files []bucketFile) {
	t.Helper()
	var work sync.WaitGroup
	const writers = 8
	for w := range writers {
		work.Go(func() {
			for i := w; i < len(files) && !t.Failed(); i += writers {
				path := filepath.Join(dir, files[i].path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Error(err)
					return
				}
				assert.Is(t, os.WriteFile(path, files[i].content(), 0o644), nil)
			}
		})
	}
	work.Wait()
}

// hasAll compares what the bucket has with files.
func (b *bucketStore) hasAll(files []bucketFile) {
	b.t.Helper()
	etags := assert.Of(b.ETags(b.ctx, bucketPrefix)).OK(b.t)
	bytesSeen := 0
	for _, f := range files {
		key := keyOf(f.path)
		o, err := b.Look(b.ctx, bucketPrefix+key)
		got := o.Content
		if want := f.content(); err != nil || !bytes.Equal(got, want) {
			b.t.Errorf("%q: %d bytes with hash %.6x, want %d with %.6x, %v", f.path, len(got), sha256.Sum256(got), f.size, sha256.Sum256(want), err)
		}
		bytesSeen += len(got)
		delete(etags, key)
	}
	for _, key := range slices.Sorted(maps.Keys(etags)) {
		assert.True(b.t, strings.HasSuffix(key, "/"), "nobody wrote", key)
	}
	b.t.Logf("%d files, %d bytes", len(files), bytesSeen)
}

// keyOf is the key of a path: a name that ends as wsmount marks directories beside
// files has that ending twice.
func keyOf(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasSuffix(p, "%2F") {
			parts[i] = p + "%2F"
		}
	}
	return strings.Join(parts, "/")
}

package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
)

// small are options that make small files have many blocks.
func small() Options {
	return Options{Block: 64, Floor: -1, Ballast: -1, piece: 48, most: 1 << 20}
}

func openStore(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s := assert.Of(Open(dir, o)).OK(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// backend is a source whose behaviour tests choose.
type backend struct {
	data []byte

	mu    sync.Mutex
	calls [][2]int64
	// do, if set, is asked first, with the number of the call from 0; handled
	// means that the bytes are its own affair.
	do func(ctx context.Context, call int, off, n int64, w io.WriterAt) (handled bool, err error)
}

func (b *backend) source(ctx context.Context, off, n int64, w io.WriterAt) error {
	b.mu.Lock()
	call := len(b.calls)
	b.calls = append(b.calls, [2]int64{off, n})
	do := b.do
	b.mu.Unlock()
	if do != nil {
		if handled, err := do(ctx, call, off, n, w); handled || err != nil {
			return err
		}
	}
	return b.deliver(off, n, w)
}

// deliver brings a range in two writes, the later bytes first.
func (b *backend) deliver(off, n int64, w io.WriterAt) error {
	mid := off + n/2
	_, err := w.WriteAt(b.data[mid:off+n], mid)
	if err == nil {
		_, err = w.WriteAt(b.data[off:mid], off)
	}
	return err
}

func (b *backend) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.calls)
}

// pattern is bytes that are other ones at each place. The race detector has nothing to
// find in it, and takes long for so many.
//
//go:norace
func pattern(n int, seed byte) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*7+i/251) ^ seed
	}
	return p
}

func digestOf(p []byte) string {
	h := sha256.Sum256(p)
	return "sha256:" + hex.EncodeToString(h[:])
}

// using has a file released when the test ends.
func using(t testing.TB, f *File) *File {
	t.Cleanup(f.Release)
	return f
}

func create(t testing.TB, s *Store, ino uint64) *File {
	t.Helper()
	f := assert.Of(s.Create(ino, "")).OK(t)
	return f
}

func opened(t testing.TB, s *Store, ino uint64) *File {
	t.Helper()
	f := assert.Of(s.Open(ino)).OK(t)
	return f
}

// snapshot takes one that is closed when the test ends.
func snapshot(t testing.TB, f *File) *Snapshot {
	t.Helper()
	v := assert.Of(f.Snapshot(t.Context())).OK(t)
	t.Cleanup(v.Close)
	return v
}

// alone is a file of the backend's bytes in a store of its own.
func alone(t testing.TB, b *backend, digest string) *File {
	t.Helper()
	return using(t, sparse(t, openStore(t, t.TempDir(), small()), 7, b, digest))
}

// tight is a small store on a made-up disk with a floor of 4000 bytes, and what is free there.
func tight(t testing.TB) (*Store, *int64) {
	t.Helper()
	free, o := int64(10_000), small()
	o.Floor, o.Statfs = 4000, disk(&free)
	return openStore(t, t.TempDir(), o), &free
}

// sparse makes a file of the backend's bytes.
func sparse(t testing.TB, s *Store, ino uint64, b *backend, digest string) *File {
	t.Helper()
	f := assert.Of(s.Sparse(ino, fmt.Sprintf("dir/%d", ino), int64(len(b.data)), digest)).OK(t)
	f.SetSource(b.source)
	return f
}

func wantBytes(t testing.TB, f *File, want []byte) {
	t.Helper()
	got := make([]byte, len(want)+10)
	n, err := f.ReadAt(t.Context(), got, 0)
	assert.Must(t, n == len(want) && err == io.EOF, "read", n, "bytes", err, "want", len(want), "and EOF")
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("byte %d is %#x, want %#x", i, got[i], want[i])
		}
	}
}

func wantErr(t testing.TB, got, want error) {
	t.Helper()
	assert.Must(t, errors.Is(got, want), "got error", got, "want", want)
}

func write(t testing.TB, f *File, p []byte, off int64) {
	t.Helper()
	n, err := f.WriteAt(t.Context(), p, off)
	assert.Must(t, n == len(p) && err == nil, "write of", len(p), "at", off, n, err)
}

// descriptors is how many this process has open.
func descriptors(t testing.TB) int {
	t.Helper()
	all := assert.Of(os.ReadDir("/proc/self/fd")).OK(t)
	return len(all)
}

func isErr(err, target error) bool { return errors.Is(err, target) }

// hasBallast reports whether a store knows of its ballast. It may be making it just now.
func hasBallast(s *Store) bool {
	b := s.room.lock()
	defer b.unlock()
	return b.have
}

func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }

// keepCopy makes a copy of a file a part of history.
func keepCopy(t testing.TB, s *Store, f *File, id string) error {
	t.Helper()
	snap, err := f.Snapshot(t.Context())
	if err != nil {
		return err
	}
	defer snap.Close()
	return s.KeepSnapshot(snap, id)
}

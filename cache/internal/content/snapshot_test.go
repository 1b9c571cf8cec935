package content

import (
	"bytes"
	"io"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// TestSnapshotIsOneState lets a writer fill a file with one letter after the
// other, in pieces, while snapshots are read: each must be of one moment, which
// is one letter up to a point and the letter before from there on.
func TestSnapshotIsOneState(t *testing.T) {
	const size, step = 4096, 100
	s := openStore(t, t.TempDir(), small())
	f := using(t, create(t, s, 7))
	write(t, f, bytes.Repeat([]byte{'a'}, size), 0)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for c := byte('b'); ; c = 'a' + (c-'a'+1)%26 {
			for off := 0; off < size; off += step {
				select {
				case <-stop:
					return
				default:
				}
				p := bytes.Repeat([]byte{c}, min(step, size-off))
				if _, err := f.WriteAt(t.Context(), p, int64(off)); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	torn := func(p []byte) bool {
		i := 0
		for i < len(p) && p[i] == p[0] {
			i++
		}
		if i < len(p) && (i%step != 0 || p[0] != 'a'+(p[i]-'a'+1)%26) {
			return true
		}
		return i < len(p) && !bytes.Equal(p[i:], bytes.Repeat(p[i:i+1], len(p)-i))
	}
	for range 100 {
		v := snapshot(t, f)
		var first []byte
		for range 3 {
			got := assert.Of(io.ReadAll(v.Reader())).OK(t)
			assert.Must(t, len(got) == size && !torn(got), "torn", got)
			assert.Must(t, first == nil || bytes.Equal(first, got), "two readings differ")
			first = got
		}
		d := assert.Of(v.Digest(t.Context())).OK(t)
		assert.Equal(t, d, digestOf(first), "the digest is of something else")
		v.Close()
	}
	close(stop)
	wg.Wait()
}

func TestSnapshotCopiesOnlyWhatChanges(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{Floor: -1, Ballast: -1})
	f := using(t, create(t, s, 7))
	data := pattern(8<<20, 1)
	write(t, f, data, 0)
	v := snapshot(t, f)
	assert.True(t, v.aside.Load() == nil, "something was copied before anybody wrote")
	write(t, f, []byte("x"), 1<<20)
	a := v.aside.Load()
	assert.True(t, a.all || bytesOf(a.fd) <= 2*pieceSize, "too much was copied for one byte")
	got, err := io.ReadAll(v.Reader())
	assert.True(t, err == nil && bytes.Equal(got, data), "not the old content", err)
}

func TestSnapshotSurvives(t *testing.T) {
	data := pattern(1000, 1)
	for _, c := range []struct {
		name string
		do   func(t *testing.T, s *Store, f *File)
	}{
		{"truncate", func(t *testing.T, s *Store, f *File) { assert.OK(t, f.Truncate(t.Context(), 0)) }},
		{"shrink and grow", func(t *testing.T, s *Store, f *File) {
			assert.OK(t, f.Truncate(t.Context(), 10))
			assert.OK(t, f.Truncate(t.Context(), 2000))
		}},
		{"append", func(t *testing.T, s *Store, f *File) {
			_, _, err := f.Append(t.Context(), data)
			assert.OK(t, err)
		}},
		{"punch", func(t *testing.T, s *Store, f *File) { assert.OK(t, f.Allocate(t.Context(), 10, 500, punch)) }},
		{"zero", func(t *testing.T, s *Store, f *File) { assert.OK(t, f.Allocate(t.Context(), 10, 500, zeros)) }},
		{"copy", func(t *testing.T, s *Store, f *File) {
			assert.OK(t, assert.ErrOf(f.CopyRange(t.Context(), 0, f, 500, 300)))
		}},
		{"remove and write", func(t *testing.T, s *Store, f *File) {
			s.Remove(7)
			write(t, f, []byte("later"), 0)
		}},
		{"a write by who opens later", func(t *testing.T, s *Store, f *File) {
			f.Release()
			g := opened(t, s, 7)
			write(t, g, []byte("later"), 0)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStore(t, t.TempDir(), small())
			f := create(t, s, 7)
			write(t, f, data, 0)
			v := snapshot(t, f)
			c.do(t, s, f)
			got, err := io.ReadAll(v.Reader())
			assert.True(t, err == nil && bytes.Equal(got, data), "not the old content", len(got), "bytes", err)
			part := make([]byte, 300)
			n, err := v.ReadAt(part, 800)
			assert.True(t, err == io.EOF && bytes.Equal(part[:n], data[800:]), "the end", n, err)
		})
	}
}

// TestSnapshotReadsBesideAWriter has a write happen between the look at what
// was put aside and the read in place.
func TestSnapshotReadsBesideAWriter(t *testing.T) {
	o := small()
	var f *File
	wrote := false
	o.read = func(fd int, p []byte, off int64) (int, error) {
		if !wrote {
			wrote = true
			write(t, f, []byte("later"), 100)
		}
		return pread(fd, p, off)
	}
	f = using(t, create(t, openStore(t, t.TempDir(), o), 7))
	write(t, f, pattern(1000, 1), 0)
	v := snapshot(t, f)
	got := make([]byte, 1000)
	assert.OK(t, assert.ErrOf(v.ReadAt(got, 0)))
	assert.True(t, bytes.Equal(got, pattern(1000, 1)), "not the old content")
}

func TestSnapshotGivesWayToLargeChanges(t *testing.T) {
	o := small()
	o.most = 480
	s := openStore(t, t.TempDir(), o)
	f := using(t, create(t, s, 7))
	write(t, f, pattern(5000, 1), 0)
	v := snapshot(t, f)
	assert.OK(t, f.Truncate(t.Context(), 0))
	wantErr(t, assert.ErrOf(v.ReadAt(make([]byte, 10), 0)), ErrChanged)
	wantErr(t, assert.ErrOf(v.Digest(t.Context())), ErrChanged)
	wantErr(t, s.KeepSnapshot(v, "a"), ErrChanged)
}

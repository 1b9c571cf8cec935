package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// TestKilledInAChange: wherever a process ends in the middle of a change, the next one
// finds all that was done before, and of the change nothing, all or a part. What it finds
// is what the kernel was given by then: a copy of the directory.
func TestKilledInAChange(t *testing.T) {
	source := pattern(640, 1)
	for _, c := range []struct {
		name   string
		change func(t *testing.T, f *File)
		off, n int // what it writes
	}{
		{"whole blocks", func(t *testing.T, f *File) { write(t, f, pattern(192, 9), 64) }, 64, 192},
		{"edges are fetched", func(t *testing.T, f *File) { write(t, f, pattern(200, 9), 70) }, 70, 200},
		{"behind the end", func(t *testing.T, f *File) { write(t, f, pattern(100, 9), 700) }, 700, 100},
		{"append", func(t *testing.T, f *File) {
			_, _, err := f.Append(t.Context(), pattern(100, 9))
			assert.OK(t, err)
		}, 640, 100},
		{"fetch", func(t *testing.T, f *File) { assert.OK(t, f.FetchAll(t.Context())) }, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, o := t.TempDir(), small()
			var kills []string
			kill := func() {
				to := filepath.Join(t.TempDir(), "killed")
				out, err := exec.Command("cp", "-a", dir, to).CombinedOutput()
				assert.OK(t, err, string(out))
				kills = append(kills, to)
			}
			o.write = func(fd int, p []byte, off int64) (int, error) {
				kill()
				half := len(p) / 2
				n, err := pwrite(fd, p[:half], off)
				if n < half || err != nil {
					return n, err
				}
				kill()
				n, err = pwrite(fd, p[half:], off+int64(half))
				kill()
				return half + n, err
			}
			b := &backend{data: source}
			b.do = func(_ context.Context, _ int, off, n int64, w io.WriterAt) (bool, error) {
				kill()
				err := b.deliver(off, n, w)
				kill()
				return true, err
			}
			f := using(t, sparse(t, openStore(t, dir, o), 7, b, ""))
			write(t, f, []byte("done"), 0)
			kills = nil
			c.change(t, f)
			kill()
			old := slices.Clone(source)
			copy(old, "done")
			changed := append(slices.Clone(old), make([]byte, max(0, c.off+c.n-len(old)))...)
			copy(changed[c.off:], pattern(c.n, 9))
			for i, killed := range kills {
				wantEither(t, fmt.Sprint("kill ", i), killed, source, old, changed)
			}
		})
	}
}

// wantEither opens what a kill left, and wants each byte to be that before a change or that
// after it.
func wantEither(t *testing.T, when, dir string, source, old, changed []byte) {
	t.Helper()
	f, err := openStore(t, dir, small()).Open(7)
	assert.Must(t, !errors.Is(err, fs.ErrNotExist), when, "what was done is gone")
	assert.OK(t, err, when)
	defer f.Release()
	f.SetSource((&backend{data: source}).source)
	got := make([]byte, f.Size())
	assert.Must(t, len(got) >= len(old) && len(got) <= len(changed), when, len(got), "bytes, want", len(old), "to", len(changed))
	assert.OK(t, assert.ErrOf(f.ReadAt(t.Context(), got, 0)), when)
	for i, c := range got {
		if c != changed[i] && (i >= len(old) && c != 0 || i < len(old) && c != old[i]) {
			t.Fatalf("%s: byte %d is %#x, neither %#x nor what was before", when, i, c, changed[i])
		}
	}
}

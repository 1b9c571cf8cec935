package content

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// BenchmarkCreateWriteClose compares a small new file here with one made
// directly in a directory of the same disk, by turns, so that both see the same
// machine. It reports the medians and their ratio.
func BenchmarkCreateWriteClose(b *testing.B) {
	data := pattern(4096, 1)
	dir := b.TempDir()
	s := openStore(b, filepath.Join(dir, "store"), Options{})
	direct := func(i int) {
		sub := filepath.Join(dir, fmt.Sprint(i>>10))
		fd := assert.Of(unix.Open(filepath.Join(sub, fmt.Sprint(i)), unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)).OK(b)
		assert.OK(b, assert.ErrOf(unix.Pwrite(fd, data, 0)))
		unix.Close(fd)
	}
	here := func(i int) {
		f := assert.Of(s.Create(uint64(i), "some/directory/name.txt")).OK(b)
		assert.OK(b, assert.ErrOf(f.WriteAt(context.Background(), data, 0)))
		f.Release()
	}
	var times [2][]time.Duration
	i := 0
	for b.Loop() {
		if i&1023 == 0 {
			assert.OK(b, os.Mkdir(filepath.Join(dir, fmt.Sprint(i>>10)), 0o700))
		}
		for k, do := range []func(int){direct, here} {
			begin := time.Now()
			do(i)
			times[k] = append(times[k], time.Since(begin))
		}
		i++
	}
	median := func(t []time.Duration) float64 { slices.Sort(t); return float64(t[len(t)/2]) }
	b.ReportMetric(median(times[0]), "disk-ns")
	b.ReportMetric(median(times[1]), "content-ns")
	b.ReportMetric(median(times[1])/median(times[0]), "ratio")
}

// BenchmarkRead reads 128 KiB of a warm file, here and directly.
func BenchmarkRead(b *testing.B) {
	s := openStore(b, b.TempDir(), Options{})
	f := create(b, s, 1)
	defer f.Release()
	write(b, f, pattern(1<<20, 1), 0)
	buf := make([]byte, 128<<10)
	b.Run("content", func(b *testing.B) {
		b.SetBytes(int64(len(buf)))
		for b.Loop() {
			assert.OK(b, assert.ErrOf(f.ReadAt(context.Background(), buf, 4096)))
		}
	})
	b.Run("disk", func(b *testing.B) {
		file := assert.Of(os.Open(filepath.Join(s.dir, "data/00/1"))).OK(b)
		defer file.Close()
		b.SetBytes(int64(len(buf)))
		for b.Loop() {
			assert.OK(b, assert.ErrOf(file.ReadAt(buf, 4096)))
		}
	})
}

// BenchmarkOpenRelease opens a file that nobody uses.
func BenchmarkOpenRelease(b *testing.B) {
	s := openStore(b, b.TempDir(), Options{})
	f := create(b, s, 1)
	write(b, f, pattern(4096, 1), 0)
	f.Release()
	for b.Loop() {
		opened(b, s, 1).Release()
	}
}

// BenchmarkSmallFetch brings files of 4 KiB here.
func BenchmarkSmallFetch(b *testing.B) {
	s := openStore(b, b.TempDir(), Options{})
	from := &backend{data: pattern(4096, 1)}
	digest := digestOf(from.data)
	buf := make([]byte, 4096)
	ino := uint64(0)
	for b.Loop() {
		ino++
		f := sparse(b, s, ino, from, digest)
		assert.OK(b, assert.ErrOf(f.ReadAt(context.Background(), buf, 0)))
		f.Release()
	}
}

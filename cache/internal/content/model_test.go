package content

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

const (
	punch = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	zeros = unix.FALLOC_FL_ZERO_RANGE
)

// model compares a file with a slice of bytes, through every call, with sources
// that fail, and with processes that end without a word.
type model struct {
	t     *rapid.T
	dir   string
	o     Options
	s     *Store
	f     *File
	b     *backend
	fail  atomic.Bool // the source fails
	want  []byte
	snaps []held
	boots int
}

type held struct {
	v    *Snapshot
	want []byte
}

func TestModel(t *testing.T) {
	tier.Check(t, func(r *rapid.T) {
		dir := assert.Of(os.MkdirTemp("", "content")).OK(r)
		defer os.RemoveAll(dir)
		m := &model{t: r, dir: dir, o: small()}
		m.o.boot = "boot 0"
		m.begin()
		r.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"read":     m.read,
			"write":    m.write,
			"append":   m.append,
			"truncate": m.truncate,
			"allocate": m.allocate,
			"copy":     m.copy,
			"fetch":    m.fetch,
			"source":   func(t *rapid.T) { m.setFail(!m.fail.Load()) },
			"snapshot": m.snapshot,
			"compare":  m.compare,
			"release":  m.release,
			"kill":     m.kill,
			"reboot":   m.reboot,
			"seek":     m.seek,
		})
		m.end()
	})
}

func (m *model) must(err error) {
	m.t.Helper()
	assert.OK(m.t, err)
}

func (m *model) begin() {
	s, err := Open(m.dir, m.o)
	m.must(err)
	m.s = s
	m.b = &backend{data: pattern(rapid.IntRange(0, 700).Draw(m.t, "size"), 1)}
	m.b.do = func(_ context.Context, _ int, off, n int64, w io.WriterAt) (bool, error) {
		if m.fail.Load() {
			m.b.deliver(off, n/2, w)
			return true, errBackend
		}
		return false, nil
	}
	m.want = slices.Clone(m.b.data)
	m.f, err = s.Sparse(7, "", int64(len(m.want)), digestOf(m.want))
	m.must(err)
	m.f.SetSource(m.b.source)
}

func (m *model) end() {
	m.setFail(false)
	m.dropSnaps()
	m.compareAll()
	m.f.Release()
	m.must(m.s.Close())
}

// setFail makes the source fail, or not any more. A call that failed may have left
// other flights, which whoever comes then could board: their ends are waited for.
func (m *model) setFail(fail bool) {
	settle(m.f)
	m.fail.Store(fail)
}

// failed reports that a call failed because the source did, which it may.
func (m *model) failed(err error) bool {
	m.t.Helper()
	if err == nil {
		return false
	}
	assert.Must(m.t, m.fail.Load() && isErr(err, errBackend), "unexpected error", err)
	return true
}

func (m *model) check(t *rapid.T) {
	m.t = t
	assert.Must(t, m.f.Size() == int64(len(m.want)), "size", m.f.Size(), "want", len(m.want))
	assert.Must(t, (m.f.Missing() == 0) == m.f.Whole() || len(m.want) == 0, "whole", m.f.Whole(), m.f.Missing(), "missing")
}

func (m *model) place(most int) (off, n int64) {
	return rapid.Int64Range(0, 800).Draw(m.t, "off"), rapid.Int64Range(1, int64(most)).Draw(m.t, "n")
}

func (m *model) bytes(n int64) []byte {
	return pattern(int(n), rapid.Byte().Draw(m.t, "seed"))
}

func (m *model) grow(to int64) {
	if to > int64(len(m.want)) {
		m.want = append(m.want, make([]byte, to-int64(len(m.want)))...)
	}
}

func (m *model) read(*rapid.T) {
	off, n := m.place(300)
	got := make([]byte, n)
	c, err := m.f.ReadAt(context.Background(), got, off)
	if err == io.EOF {
		err = nil
	}
	if m.failed(err) {
		return
	}
	want := m.want[min(off, int64(len(m.want))):min(off+n, int64(len(m.want)))]
	if !bytes.Equal(got[:c], want) {
		m.t.Fatalf("read %d at %d: got %x, want %x", n, off, got[:c], want)
	}
}

func (m *model) write(*rapid.T) {
	off, n := m.place(300)
	if rapid.Bool().Draw(m.t, "aligned") {
		off, n = off/64*64, (n+63)/64*64
	}
	p := m.bytes(n)
	before := m.f.Writes()
	if _, err := m.f.WriteAt(context.Background(), p, off); m.failed(err) {
		return
	}
	assert.Must(m.t, m.f.Writes() != before, "a write did not move the count")
	m.grow(off + n)
	copy(m.want[off:], p)
}

func (m *model) append(*rapid.T) {
	_, n := m.place(100)
	p := m.bytes(n)
	off, _, err := m.f.Append(context.Background(), p)
	if m.failed(err) {
		return
	}
	assert.Must(m.t, off == int64(len(m.want)), "appended at", off, "want", len(m.want))
	m.want = append(m.want, p...)
}

func (m *model) truncate(*rapid.T) {
	size := rapid.Int64Range(0, 900).Draw(m.t, "size")
	if m.failed(m.f.Truncate(context.Background(), size)) {
		assert.Must(m.t, size != 0, "a truncation to 0 fetched something")
		return
	}
	m.grow(size)
	m.want = m.want[:size:size]
}

func (m *model) allocate(*rapid.T) {
	off, n := m.place(300)
	mode := rapid.SampledFrom([]uint32{0, unix.FALLOC_FL_KEEP_SIZE, punch, zeros, zeros | unix.FALLOC_FL_KEEP_SIZE}).Draw(m.t, "mode")
	if m.failed(m.f.Allocate(context.Background(), off, n, mode)) {
		return
	}
	if mode&unix.FALLOC_FL_KEEP_SIZE == 0 {
		m.grow(off + n)
	}
	if mode&^unix.FALLOC_FL_KEEP_SIZE != 0 && off < int64(len(m.want)) {
		clear(m.want[off:min(off+n, int64(len(m.want)))])
	}
}

func (m *model) copy(*rapid.T) {
	off, n := m.place(100)
	to := rapid.Int64Range(0, 800).Draw(m.t, "to")
	c, err := m.f.CopyRange(context.Background(), off, m.f, to, n)
	if off < to+n && to < off+n {
		assert.Must(m.t, err == unix.EINVAL, "overlapping ranges", err)
		return
	}
	if m.failed(err) {
		return
	}
	want := max(min(n, int64(len(m.want))-off), 0)
	assert.Must(m.t, c == want, "copied", c, "want", want)
	if c > 0 {
		m.grow(to + c)
		copy(m.want[to:], m.want[off:off+c])
	}
}

func (m *model) fetch(*rapid.T) {
	off, n := m.place(300)
	if m.failed(m.f.Fetch(context.Background(), off, n)) {
		return
	}
	assert.Must(m.t, m.f.Present(off, n), "what was fetched is not present")
}

func (m *model) snapshot(*rapid.T) {
	v, err := m.f.Snapshot(context.Background())
	if m.failed(err) {
		return
	}
	m.snaps = append(m.snaps, held{v, slices.Clone(m.want)})
}

func (m *model) compare(*rapid.T) {
	for _, h := range m.snaps {
		got, err := io.ReadAll(h.v.Reader())
		m.must(err)
		if !bytes.Equal(got, h.want) {
			m.t.Fatalf("snapshot is %x, want %x", got, h.want)
		}
		d, err := h.v.Digest(context.Background())
		assert.Must(m.t, err == nil && d == digestOf(h.want), "digest", d, err)
	}
}

func (m *model) dropSnaps() {
	m.compare(m.t)
	for _, h := range m.snaps {
		h.v.Close()
	}
	m.snaps = nil
}

// seek compares data and holes: what the file calls a hole is zeros.
func (m *model) seek(*rapid.T) {
	off := rapid.Int64Range(0, 900).Draw(m.t, "off")
	hole, err := m.f.Seek(off, unix.SEEK_HOLE)
	if off >= int64(len(m.want)) {
		assert.Must(m.t, err == unix.ENXIO, "seek beyond the end", hole, err)
		return
	}
	m.must(err)
	data, err := m.f.Seek(off, unix.SEEK_DATA)
	if err == unix.ENXIO {
		data, err = int64(len(m.want)), nil
	}
	m.must(err)
	assert.Must(m.t, (hole == off) != (data == off), "at", off, "hole at", hole, "data at", data)
	for i := off; i < data; i++ {
		assert.Must(m.t, m.want[i] == 0 && m.here(i), "data at", data, "but there is some at", i)
	}
}

// here reports that the byte at off is not one that the source has still to bring: it
// came, or lies after the last of the source's bytes, in the block where these end.
func (m *model) here(off int64) bool {
	l := m.f.lock()
	defer l.unlock()
	return l.blocks == nil || l.presentAt(off)
}

// lasts reports that the file has something on the disk that counts.
func (m *model) lasts() bool {
	_, err := os.Stat(fmt.Sprintf("%s/data/00/7", m.dir))
	return err == nil
}

func (m *model) release(*rapid.T) {
	m.dropSnaps()
	lasts := m.lasts()
	m.f.Release()
	m.open(lasts)
}

// open takes the file again, or makes it anew when nothing of it was here.
func (m *model) open(lasts bool) {
	f, err := m.s.Open(7)
	if !lasts {
		assert.Must(m.t, isErr(err, os.ErrNotExist), "open", err, "want that there is none")
		assert.Must(m.t, bytes.Equal(m.want, m.b.data), "changes were not on the disk")
		f, err = m.s.Sparse(7, "", int64(len(m.want)), digestOf(m.want))
	}
	m.must(err)
	f.SetSource(m.b.source)
	m.f = f
}

// kill goes on as another process, after one that cleaned nothing up.
func (m *model) kill(*rapid.T) {
	m.dropSnaps()
	old, oldFile := m.s, m.f
	old.work.running.Wait() // the dead do not tidy up
	lasts := m.lasts()
	missing := m.f.Missing()
	s, err := Open(m.dir, m.o)
	m.must(err)
	m.s = s
	m.open(lasts)
	assert.Must(m.t, !lasts || m.f.Missing() == missing, m.f.Missing(), "bytes missing", missing, "before")
	oldFile.held.part = "" // is not ours any more
	oldFile.Release()
	m.must(old.Close())
}

// reboot syncs, and goes on after a boot.
func (m *model) reboot(*rapid.T) {
	m.dropSnaps()
	m.must(m.f.Sync())
	m.boots++
	m.o.boot = fmt.Sprint("boot ", m.boots)
	m.kill(m.t)
}

func (m *model) compareAll() {
	got := make([]byte, len(m.want)+1)
	n, err := m.f.ReadAt(context.Background(), got, 0)
	if err != io.EOF || !bytes.Equal(got[:n], m.want) {
		m.t.Fatalf("in the end %x, %v; want %x", got[:n], err, m.want)
	}
}

package odb

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zlib"

	"github.com/wsmount/wsmount/providers/git/internal/space"
)

// Batch makes a small pack of new objects. It is for one goroutine. Abandon or
// Finish ends it.
type Batch struct {
	m       making
	w       *bufio.Writer
	off     int64
	z       *zlib.Writer
	objects []indexed
	have    map[ID]bool
	whole   bool // also objects that are local already: the pack is sent away
}

// deflaters are of batches that have ended: a new one is more than a megabyte to clear,
// and most batches are one small file and its directories.
var deflaters = sync.Pool{New: func() any { return zlib.NewWriter(io.Discard) }}

// Source writes content to w, and fails if it is not of the size that was said.
type Source func(w io.Writer) error

// NewBatch begins an empty one.
func (s *Store) NewBatch() (*Batch, error) { return s.newBatch(s.space, "new-", false) }

// NewPack begins a batch that is sent away with Pack, so that it also has objects that are local
// already.
func (s *Store) NewPack() (*Batch, error) { return s.newBatch(s.space, "out-", true) }

func (s *Store) newBatch(disk space.Disk, prefix string, whole bool) (*Batch, error) {
	f, err := s.temp(prefix)
	if err != nil {
		return nil, err
	}
	b := &Batch{m: making{s: s, f: f}, w: bufio.NewWriterSize(disk.Writer(f), 64<<10), z: deflaters.Get().(*zlib.Writer), have: map[ID]bool{}, whole: whole}
	return b, b.write(packHeader(0))
}

func packHeader(n int) []byte {
	return binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(n))
}

func (b *Batch) write(p []byte) error {
	n, err := b.w.Write(p)
	b.off += int64(n)
	return err
}

// Add adds an object that is in memory. One that is local already is not added again.
func (b *Batch) Add(kind Kind, content []byte) (ID, error) {
	return b.Put(kind, int64(len(content)), func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Put adds an object of a size. When it fails, the batch is as before.
func (b *Batch) Put(kind Kind, size int64, from Source) (id ID, err error) {
	o := indexed{off: b.off, size: size, kind: kind}
	defer func() {
		if err != nil {
			_ = b.back(o.off) // the first error tells the reason
		}
	}()
	entry := &entryWriter{b: b}
	if _, err := entry.Write(entryHeader(kind, size)); err != nil {
		return id, err
	}
	sum := sha1.New()
	fmt.Fprintf(sum, "%s %d\x00", kind, size)
	b.z.Reset(entry)
	if err := from(io.MultiWriter(sum, b.z)); err != nil {
		return id, err
	}
	if err := b.z.Close(); err != nil {
		return id, err
	}
	sum.Sum(id[:0])
	if b.have[id] || !b.whole && b.m.s.Has(id) {
		return id, b.back(o.off)
	}
	o.id, o.crc = id, entry.crc
	b.have[id], b.objects = true, append(b.objects, o)
	return id, nil
}

// back takes back the bytes written from off on.
func (b *Batch) back(off int64) error {
	b.off = off
	if err := b.w.Flush(); err != nil {
		return err
	}
	if err := b.m.f.Truncate(off); err != nil {
		return err
	}
	_, err := b.m.f.Seek(off, io.SeekStart)
	return err
}

// entryWriter writes an object as it lies in the pack, and its checksum.
type entryWriter struct {
	b   *Batch
	crc uint32
}

func (e *entryWriter) Write(p []byte) (int, error) {
	e.crc = crc32.Update(e.crc, crc32.IEEETable, p)
	return len(p), e.b.write(p)
}

func entryHeader(kind Kind, size int64) []byte {
	first := byte(kind)<<4 | byte(size&15)
	size >>= 4
	if size > 0 {
		first |= 128
	}
	out := []byte{first}
	for size > 0 {
		c := byte(size & 127)
		if size >>= 7; size > 0 {
			c |= 128
		}
		out = append(out, c)
	}
	return out
}

// Finish shows the objects to all readers; they are then safe. The functions in also run at the
// same time, and their work is as safe when Finish returns.
func (b *Batch) Finish(also ...func() error) error {
	if len(b.objects) == 0 {
		b.Abandon()
		return Together(also...)
	}
	defer b.Abandon()
	sum, err := b.close()
	if err != nil {
		return err
	}
	slices.SortFunc(b.objects, func(x, y indexed) int { return bytes.Compare(x.id[:], y.id[:]) })
	b.m.also = also
	return b.m.finish(b.objects, sum)
}

// close writes the number of objects, and the sum.
func (b *Batch) close() ([]byte, error) {
	if err := b.w.Flush(); err != nil {
		return nil, err
	}
	f := b.m.f
	if _, err := f.WriteAt(packHeader(len(b.objects)), 0); err != nil {
		return nil, err
	}
	sum := sha1.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, b.off)); err != nil {
		return nil, err
	}
	trailer := sum.Sum(nil)
	return trailer, b.m.s.space.While(func() error {
		_, err := f.WriteAt(trailer, b.off)
		return err
	})
}

// Pack closes the batch and gives it as a pack to send away. Readers of the store see nothing of
// it. Closing the reader removes it.
func (b *Batch) Pack() (io.ReadCloser, error) {
	if _, err := b.close(); err != nil {
		b.Abandon()
		return nil, err
	}
	if _, err := b.m.f.Seek(0, io.SeekStart); err != nil {
		b.Abandon()
		return nil, err
	}
	return &packReader{b}, nil
}

type packReader struct{ b *Batch }

func (r *packReader) Read(p []byte) (int, error) { return r.b.m.f.Read(p) }

func (r *packReader) Close() error {
	r.b.Abandon()
	return nil
}

// Abandon ends a batch that is not wanted; after Finish it does nothing.
func (b *Batch) Abandon() {
	if b.z != nil {
		b.z.Reset(io.Discard) // it holds the batch
		deflaters.Put(b.z)
		b.z = nil
	}
	b.m.abandon()
}

package odb

import (
	"bufio"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// maxObject bounds the bytes inflated into memory: a header may claim any size.
const maxObject = 2 << 30

// maxChain bounds how many deltas lie between an object and its content.
const maxChain = 5000

// read is the object that begins at off. size is the expected size.
func (s *Store) read(p *pack, off, size int64) (inflated, error) {
	if size > maxObject {
		return inflated{}, fmt.Errorf("%d bytes: %w", size, ErrTooLarge)
	}
	var deltas []header
	var at []uint64
	o, cached := inflated{}, false
	for {
		if o, cached = s.bases.Get(p.place(off)); cached {
			break
		}
		h, err := p.header(off)
		if err != nil {
			return o, err
		}
		if !h.isDelta() {
			o.kind = h.kind
			if o.content, err = inflateAll(p, h); err != nil {
				return o, err
			}
			if len(deltas) > 0 {
				s.bases.put(p.place(off), o)
			}
			break
		}
		deltas, at = append(deltas, h), append(at, p.place(off))
		if len(deltas) > maxChain {
			return o, fmt.Errorf("a chain of deltas without end: %w", ErrCorrupt)
		}
		if off = h.base; h.kind == refDelta {
			i, ok := p.find(h.baseID)
			if !ok {
				return o, fmt.Errorf("the base %s is missing: %w", h.baseID, ErrCorrupt)
			}
			off = p.offset(i)
		}
	}
	for i := len(deltas) - 1; i >= 0; i-- {
		delta, err := inflateAll(p, deltas[i])
		if err != nil {
			return o, err
		}
		if o.content, err = applyDelta(o.content, delta); err != nil {
			return o, err
		}
		if i > 0 {
			s.bases.put(at[i], o)
		}
	}
	return o, nil
}

// inflate is a reader of deflated bytes, for use again.
type inflate struct {
	section *io.SectionReader
	in      *bufio.Reader
	z       io.ReadCloser
}

var inflaters = sync.Pool{New: func() any { return &inflate{in: bufio.NewReaderSize(nil, 8<<10)} }}

func inflater(p *pack, off int64) (*inflate, error) {
	z := inflaters.Get().(*inflate)
	z.section = io.NewSectionReader(p.f, off, p.end-off)
	z.in.Reset(z.section)
	return z, z.begin()
}

func (z *inflate) begin() (err error) {
	if z.z == nil {
		z.z, err = zlib.NewReader(z.in)
	} else {
		err = z.z.(zlib.Resetter).Reset(z.in, nil)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

func (z *inflate) Read(b []byte) (int, error) {
	n, err := z.z.Read(b)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return n, err
}

func (z *inflate) free() {
	z.in.Reset(nil)
	z.section = nil // it holds the pack's file
	inflaters.Put(z)
}

// inflateAll inflates all bytes behind a header.
func inflateAll(p *pack, h header) ([]byte, error) {
	z, err := inflater(p, h.data)
	if err != nil {
		return nil, err
	}
	defer z.free()
	return z.all(h.size)
}

// all reads exactly size bytes. Memory grows with the bytes that come, not with the size that a
// header claims.
func (z *inflate) all(size int64) ([]byte, error) {
	if size < 0 || size > maxObject {
		return nil, fmt.Errorf("%d bytes: %w", size, ErrTooLarge)
	}
	content := make([]byte, 0, min(size+1, 1<<20)) // one more, to see the end
	for {
		if len(content) == cap(content) {
			content = append(content, 0)[:len(content)]
		}
		n, err := z.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		switch {
		case err == io.EOF && int64(len(content)) == size:
			return content, nil
		case err == io.EOF, int64(len(content)) > size:
			return nil, fmt.Errorf("%d bytes instead of %d: %w", len(content), size, ErrCorrupt)
		case err != nil:
			return nil, err
		}
	}
}

package odb

import (
	"bytes"
	"crypto/sha1" // what git's ids are made of
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zlib"
)

// indexed is what an index says of an object, and its size.
type indexed struct {
	id   ID
	off  int64
	crc  uint32
	size int64

	head header
	kind Kind // what it is in the end, also for a delta
}

// indexer finds the ids of the objects in a pack: first those that are whole,
// in one walk, then the deltas, each base with all that stands on it, so that
// no base is made twice and only one chain is in memory for each worker.
type indexer struct {
	pack    []byte
	objects []indexed

	byBase map[int64][]int // deltas, by the place of their base
	done   atomic.Int64

	mu   sync.Mutex // guards what follows
	byID map[ID][]int
}

const indexWorkers = 2

// indexPack reads all of a pack. Its own sum is checked by who wrote it down.
func indexPack(pack []byte) ([]indexed, error) {
	if len(pack) < 12+idSize || string(pack[:4]) != "PACK" || binary.BigEndian.Uint32(pack[4:]) != 2 {
		return nil, fmt.Errorf("no pack of version 2: %w", ErrCorrupt)
	}
	n := int(binary.BigEndian.Uint32(pack[8:]))
	if n > len(pack)/10 { // no object is smaller
		return nil, fmt.Errorf("%d objects in %d bytes: %w", n, len(pack), ErrCorrupt)
	}
	x := &indexer{pack: pack[:len(pack)-idSize], objects: make([]indexed, 0, n), byBase: map[int64][]int{}, byID: map[ID][]int{}}
	if err := x.walk(n); err != nil {
		return nil, err
	}
	if err := x.resolve(); err != nil {
		return nil, err
	}
	if int(x.done.Load()) != n {
		return nil, fmt.Errorf("%d objects stand on what is not in the pack: %w", n-int(x.done.Load()), ErrCorrupt)
	}
	slices.SortFunc(x.objects, func(a, b indexed) int { return bytes.Compare(a.id[:], b.id[:]) })
	return x.objects, nil
}

// unpacker reads deflated bytes, and knows how many were used: bytes.Reader is
// read byte by byte, so never beyond their end.
type unpacker struct {
	in  bytes.Reader
	z   io.ReadCloser
	buf []byte
}

// unpack inflates what a header is of. The result is good until the next call.
func (u *unpacker) unpack(pack []byte, h header) (content []byte, used int64, err error) {
	if h.size > maxObject {
		return nil, 0, fmt.Errorf("%d bytes: %w", h.size, ErrTooLarge)
	}
	u.in.Reset(pack[h.data:])
	if u.z == nil {
		u.z, err = zlib.NewReader(&u.in)
	} else {
		err = u.z.(zlib.Resetter).Reset(&u.in, nil)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	u.buf = u.buf[:0]
	for {
		if len(u.buf) == cap(u.buf) {
			u.buf = slices.Grow(u.buf, max(4096, len(u.buf)))
		}
		n, err := u.z.Read(u.buf[len(u.buf):cap(u.buf)])
		u.buf = u.buf[:len(u.buf)+n]
		switch {
		case err == io.EOF && int64(len(u.buf)) == h.size:
			return u.buf, int64(len(pack)) - h.data - int64(u.in.Len()), nil
		case err == io.EOF, int64(len(u.buf)) > h.size:
			return nil, 0, fmt.Errorf("%d bytes instead of %d: %w", len(u.buf), h.size, ErrCorrupt)
		case err != nil:
			return nil, 0, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
}

// walk finds where each object is, and what the whole ones are.
func (x *indexer) walk(n int) error {
	var u unpacker
	sum := sha1.New()
	off := int64(12)
	for i := range n {
		h, err := parseHeader(x.pack[min(off, int64(len(x.pack))):], off)
		if err != nil {
			return err
		}
		content, used, err := u.unpack(x.pack, h)
		if err != nil {
			return err
		}
		o := indexed{off: off, head: h}
		off = h.data + used
		o.crc = crc32.ChecksumIEEE(x.pack[o.off:off])
		switch h.kind {
		case ofsDelta:
			x.byBase[h.base] = append(x.byBase[h.base], i)
		case refDelta:
			x.byID[h.baseID] = append(x.byID[h.baseID], i)
		default:
			o.kind, o.size = h.kind, h.size
			hashOf(sum, h.kind, content, &o.id)
			x.done.Add(1)
		}
		x.objects = append(x.objects, o)
	}
	if off != int64(len(x.pack)) {
		return fmt.Errorf("%d bytes behind the last object: %w", int64(len(x.pack))-off, ErrCorrupt)
	}
	return nil
}

// hashOf is the id of an object.
func hashOf(sum hash.Hash, kind Kind, content []byte, id *ID) {
	sum.Reset()
	fmt.Fprintf(sum, "%s %d\x00", kind, len(content))
	sum.Write(content)
	sum.Sum(id[:0])
}

// resolve makes all deltas.
func (x *indexer) resolve() error {
	roots := make(chan int)
	errs := make([]error, indexWorkers)
	var failed atomic.Bool
	var wg sync.WaitGroup
	for w := range indexWorkers {
		wg.Go(func() {
			r := &resolver{indexer: x, sum: sha1.New()}
			for i := range roots {
				if errs[w] == nil && !failed.Load() {
					if errs[w] = r.root(i); errs[w] != nil {
						failed.Store(true)
					}
				}
			}
		})
	}
	for i := range x.objects {
		if !x.objects[i].head.isDelta() { // the workers write the others
			roots <- i
		}
	}
	close(roots)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// deltas are those that stand on an object, for whoever asks first: a pack may
// have an object twice.
func (x *indexer) deltas(off int64, id ID) []int {
	x.mu.Lock()
	defer x.mu.Unlock()
	named := x.byID[id]
	delete(x.byID, id)
	return append(named, x.byBase[off]...)
}

// resolver is a worker.
type resolver struct {
	*indexer
	u   unpacker
	sum hash.Hash
}

func (r *resolver) root(i int) error {
	deltas := r.deltas(r.objects[i].off, r.objects[i].id)
	if len(deltas) == 0 {
		return nil
	}
	content, _, err := r.u.unpack(r.pack, r.objects[i].head)
	if err != nil {
		return err
	}
	return r.below(r.objects[i].kind, slices.Clone(content), deltas)
}

// below makes the deltas that stand on content, and what stands on those. Two
// workers never meet: a delta has one base, and each base is one worker's.
func (r *resolver) below(kind Kind, content []byte, deltas []int) error {
	for _, d := range deltas {
		o := &r.objects[d]
		delta, _, err := r.u.unpack(r.pack, o.head)
		if err != nil {
			return err
		}
		made, err := applyDelta(content, delta)
		if err != nil {
			return err
		}
		o.kind, o.size = kind, int64(len(made))
		hashOf(r.sum, kind, made, &o.id)
		r.done.Add(1)
		if err := r.below(kind, made, r.deltas(o.off, o.id)); err != nil {
			return err
		}
	}
	return nil
}

// encodeIndex is the index of objects in the order of their ids, in a pack with
// a sum, and their sizes.
func encodeIndex(objects []indexed, packSum []byte) (idx, sizes []byte) {
	idx = append(idx, idxMagic...)
	var fan [fanout]uint32
	for _, o := range objects {
		fan[o.id[0]]++
	}
	total := uint32(0)
	for _, n := range fan {
		total += n
		idx = binary.BigEndian.AppendUint32(idx, total)
	}
	for _, o := range objects {
		idx = append(idx, o.id[:]...)
	}
	for _, o := range objects {
		idx = binary.BigEndian.AppendUint32(idx, o.crc)
	}
	var large []byte
	for _, o := range objects {
		if o.off < largeAt {
			idx = binary.BigEndian.AppendUint32(idx, uint32(o.off))
			continue
		}
		idx = binary.BigEndian.AppendUint32(idx, largeAt+uint32(len(large)/8))
		large = binary.BigEndian.AppendUint64(large, uint64(o.off))
	}
	idx = append(append(idx, large...), packSum...)
	sum := sha1.Sum(idx)
	for _, o := range objects {
		sizes = binary.LittleEndian.AppendUint64(sizes, uint64(o.size))
	}
	return append(idx, sum[:]...), sizes
}

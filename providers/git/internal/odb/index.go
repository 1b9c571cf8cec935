package odb

import (
	"bufio"
	"bytes"
	"crypto/sha1" // of which git's ids are made
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zlib"
)

// indexed is an index's entry of an object, and its size.
type indexed struct {
	id   ID
	off  int64
	end  int64 // of received objects
	crc  uint32
	size int64

	head header
	kind Kind // the type of the object, also for a delta
}

// indexer finds the ids of the objects in a pack: first those that are whole,
// while the pack comes, then the deltas, each base with all that stands on it, so that
// no base is made twice and only one chain is in memory for each worker.
type indexer struct {
	pack    []byte
	objects []indexed

	byBase map[int64][]int // deltas, by the place of their base
	done   atomic.Int64

	mu   sync.Mutex // guards all below
	byID map[ID][]int
}

const indexWorkers = 2

// walkPack reads a pack as it comes, and finds the place of each object and the ids of whole
// ones. behind is the number of bytes read from the source, buffered ones included; told is
// called after each object, with the number of objects so far and in all.
func walkPack(in *bufio.Reader, behind func() int64, told func(done, total int)) (*indexer, error) {
	var head [12]byte
	if _, err := io.ReadFull(in, head[:]); err != nil || string(head[:4]) != "PACK" || binary.BigEndian.Uint32(head[4:]) != 2 {
		return nil, fmt.Errorf("no pack of version 2: %w", errors.Join(ErrCorrupt, err))
	}
	x := &indexer{byBase: map[int64][]int{}, byID: map[ID][]int{}}
	var u unpacker
	sum := sha1.New()
	total := int(binary.BigEndian.Uint32(head[8:]))
	for i := range total {
		off := behind() - int64(in.Buffered())
		start, err := in.Peek(maxHeader)
		if err != nil && err != io.EOF { // the last object may be smaller
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		h, err := parseHeader(start, off)
		if err != nil {
			return nil, err
		}
		if _, err := in.Discard(int(h.data - off)); err != nil {
			return nil, err
		}
		content, err := u.unpack(in, h.size)
		if err != nil {
			return nil, err
		}
		o := indexed{off: off, end: behind() - int64(in.Buffered()), head: h}
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
		told(i+1, total)
	}
	return x, nil
}

// finish resolves the deltas of a pack that has come whole, and returns its objects.
func (x *indexer) finish(pack []byte) ([]indexed, error) {
	x.pack = pack
	if err := x.resolve(); err != nil {
		return nil, err
	}
	if missing := len(x.objects) - int(x.done.Load()); missing != 0 {
		return nil, fmt.Errorf("%d objects stand on what is not in the pack: %w", missing, ErrCorrupt)
	}
	for i := range x.objects {
		o := &x.objects[i]
		o.crc = crc32.ChecksumIEEE(pack[o.off:o.end])
	}
	slices.SortFunc(x.objects, func(a, b indexed) int { return bytes.Compare(a.id[:], b.id[:]) })
	return x.objects, nil
}

// unpacker inflates one object after another. It reads byte by byte, so never
// beyond the end of one.
type unpacker struct {
	in  bytes.Reader
	z   io.ReadCloser
	buf []byte
}

// at inflates the bytes behind a header. The result is good until the next call.
func (u *unpacker) at(pack []byte, h header) ([]byte, error) {
	u.in.Reset(pack[h.data:])
	return u.unpack(&u.in, h.size)
}

func (u *unpacker) unpack(in io.Reader, size int64) (content []byte, err error) {
	if size > maxObject {
		return nil, fmt.Errorf("%d bytes: %w", size, ErrTooLarge)
	}
	if u.z == nil {
		u.z, err = zlib.NewReader(in)
	} else {
		err = u.z.(zlib.Resetter).Reset(in, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	u.buf = u.buf[:0]
	for {
		if len(u.buf) == cap(u.buf) {
			u.buf = slices.Grow(u.buf, max(4096, len(u.buf)))
		}
		n, err := u.z.Read(u.buf[len(u.buf):cap(u.buf)])
		u.buf = u.buf[:len(u.buf)+n]
		switch {
		case err == io.EOF && int64(len(u.buf)) == size:
			return u.buf, nil
		case err == io.EOF, int64(len(u.buf)) > size:
			return nil, fmt.Errorf("%d bytes instead of %d: %w", len(u.buf), size, ErrCorrupt)
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
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

// deltas are those whose base is an object, for the first caller that asks: a pack may have an
// object twice.
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
	content, err := r.u.at(r.pack, r.objects[i].head)
	if err != nil {
		return err
	}
	return r.below(r.objects[i].kind, slices.Clone(content), deltas)
}

// below makes the deltas whose base has this content, and all deltas above those. Two workers
// never meet: a delta has one base, and each base is one worker's.
func (r *resolver) below(kind Kind, content []byte, deltas []int) error {
	for _, d := range deltas {
		o := &r.objects[d]
		delta, err := r.u.at(r.pack, o.head)
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

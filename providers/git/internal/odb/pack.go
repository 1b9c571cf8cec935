package odb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
)

const (
	idSize  = len(ID{})
	fanout  = 256
	largeAt = 1 << 31 // from here on an offset is in the table of large ones
)

var idxMagic = []byte{0xff, 't', 'O', 'c', 0, 0, 0, 2}

// pack is an open pack with its index. It never changes.
type pack struct {
	f    *os.File
	name string
	// promised: the server has all objects that those in it name and that are not local. Git
	// calls that a promisor pack.
	promised bool
	number   uint64 // no other pack that is or was open has it
	end      int64  // of the objects; the sum of all follows
	n        int
	fan      []byte
	ids      []byte
	offs     []byte
	large    []byte
	sizes    []byte
}

// place is a number for the start of an object, good as long as the database is open.
func (p *pack) place(off int64) uint64 { return p.number<<40 | uint64(off) }

// openPack opens a pack and its index; base is their name without an ending.
func (s *Store) openPack(base string) (_ *pack, err error) {
	idx, err := os.ReadFile(base + ".idx")
	if err != nil {
		return nil, err
	}
	p := &pack{name: filepath.Base(base), number: s.opened.Add(1)}
	if err := p.parse(idx); err != nil {
		return nil, fmt.Errorf("%s.idx: %w", base, err)
	}
	if p.f, err = os.Open(base + ".pack"); err != nil {
		return nil, err
	}
	if _, err := os.Stat(base + promisedEnding); err == nil {
		p.promised = true
	}
	defer func() {
		if err != nil {
			p.f.Close()
		}
	}()
	if err := p.check(idx); err != nil {
		return nil, fmt.Errorf("%s.pack: %w", base, err)
	}
	if p.sizes = s.loadSizes(p); p.sizes == nil {
		if p.sizes, err = s.measure(p); err != nil {
			return nil, fmt.Errorf("%s.pack: %w", base, err)
		}
		s.saveSizes(p)
	}
	return p, nil
}

// parse cuts an index into its tables.
func (p *pack) parse(idx []byte) error {
	rest, ok := bytes.CutPrefix(idx, idxMagic)
	if !ok || len(rest) < fanout*4+2*idSize {
		return fmt.Errorf("no index of version 2: %w", ErrCorrupt)
	}
	cut := func(n int) []byte {
		if n > len(rest) {
			ok = false
			return nil
		}
		part := rest[:n:n]
		rest = rest[n:]
		return part
	}
	p.fan = cut(fanout * 4)
	p.n = int(p.upTo(fanout - 1))
	p.ids = cut(p.n * idSize)
	cut(p.n * 4) // sums of the objects, which only a copy needs
	p.offs = cut(p.n * 4)
	p.large = cut(len(rest) - 2*idSize)
	for b := 1; b < fanout; b++ {
		ok = ok && p.upTo(b-1) <= p.upTo(b)
	}
	if !ok {
		return fmt.Errorf("the index is too short: %w", ErrCorrupt)
	}
	return nil
}

// check compares a pack with its index.
func (p *pack) check(idx []byte) error {
	fi, err := p.f.Stat()
	if err != nil {
		return err
	}
	var head [12]byte
	var sum ID
	p.end = fi.Size() - int64(idSize)
	if p.end < int64(len(head)) {
		return fmt.Errorf("it is too short: %w", ErrCorrupt)
	}
	if _, err := p.f.ReadAt(head[:], 0); err != nil {
		return err
	}
	if _, err := p.f.ReadAt(sum[:], p.end); err != nil {
		return err
	}
	want := idx[len(idx)-2*idSize : len(idx)-idSize]
	if string(head[:4]) != "PACK" || int(binary.BigEndian.Uint32(head[8:])) != p.n || !bytes.Equal(sum[:], want) {
		return fmt.Errorf("it is not what its index is of: %w", ErrCorrupt)
	}
	return nil
}

// upTo is how many objects have ids whose first byte is b or less.
func (p *pack) upTo(b int) uint32 { return binary.BigEndian.Uint32(p.fan[b*4:]) }

func (p *pack) id(i int) []byte { return p.ids[i*idSize : (i+1)*idSize] }

// find is the number of an object.
func (p *pack) find(id ID) (int, bool) {
	from, to := 0, int(p.upTo(int(id[0])))
	if id[0] > 0 {
		from = int(p.upTo(int(id[0]) - 1))
	}
	i := from + sort.Search(to-from, func(i int) bool { return bytes.Compare(p.id(from+i), id[:]) >= 0 })
	return i, i < to && bytes.Equal(p.id(i), id[:])
}

// offset is where object number i begins. A place that cannot be is one that
// reading refuses.
func (p *pack) offset(i int) int64 {
	off := binary.BigEndian.Uint32(p.offs[i*4:])
	if off < largeAt {
		return int64(off)
	}
	at := int(off-largeAt) * 8
	if at+8 > len(p.large) {
		return -1
	}
	return int64(binary.BigEndian.Uint64(p.large[at:]))
}

func (p *pack) size(i int) int64 { return int64(binary.LittleEndian.Uint64(p.sizes[i*8:])) }

// header is how an object begins.
type header struct {
	kind   Kind
	size   int64 // inflated, of the object or of the delta
	base   int64 // of an ofsDelta
	baseID ID    // of a refDelta
	data   int64 // where the deflated bytes begin
}

// maxHeader is the size of the longest header: 10 bytes of size, 20 of an id.
const maxHeader = 10 + idSize

func (p *pack) header(off int64) (header, error) {
	if off < 12 || off >= p.end {
		return header{}, fmt.Errorf("no object begins at %d: %w", off, ErrCorrupt)
	}
	var buf [maxHeader]byte
	n, err := p.f.ReadAt(buf[:], off)
	if err != nil && err != io.EOF {
		return header{}, err
	}
	return parseHeader(buf[:n], off)
}

// parseHeader reads the header of the object that begins at off with b.
func parseHeader(b []byte, off int64) (h header, err error) {
	short := fmt.Errorf("the header at %d is broken: %w", off, ErrCorrupt)
	i, shift := 0, 4
	for ; ; i++ {
		if i >= len(b) || shift > 60 {
			return h, short
		}
		if i == 0 {
			h.kind, h.size = Kind(b[0]>>4&7), int64(b[0]&15)
		} else {
			h.size |= int64(b[i]&127) << shift
			shift += 7
		}
		if b[i]&128 == 0 {
			break
		}
	}
	i++
	switch h.kind {
	case Commit, Tree, Blob, Tag:
	case ofsDelta:
		back, n := backwards(b[i:])
		if n == 0 || back <= 0 || back > off-12 {
			return h, short
		}
		h.base = off - back
		i += n
	case refDelta:
		if copy(h.baseID[:], b[i:]) < idSize {
			return h, short
		}
		i += idSize
	default:
		return h, short
	}
	h.data = off + int64(i)
	return h, nil
}

// backwards reads how far before a delta its base begins.
func backwards(b []byte) (back int64, n int) {
	for n < len(b) && n < 9 {
		c := b[n]
		if n++; n > 1 {
			back++
		}
		back = back<<7 | int64(c&127)
		if c&128 == 0 {
			return back, n
		}
	}
	return 0, 0
}

func (h header) isDelta() bool { return h.kind == ofsDelta || h.kind == refDelta }

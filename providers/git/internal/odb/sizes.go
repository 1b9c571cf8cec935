package odb

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
)

// A file of sizes is this word, eight bytes for each object in the order of the
// index, and the CRC-32 of all that. It is not synced: one that a loss of power
// has damaged is made again.
const sizesMagic = "wssizes1"

func (s *Store) sizesFile(p *pack) string { return filepath.Join(s.private, "sizes", p.name) }

// loadSizes is nil when there is no good file.
func (s *Store) loadSizes(p *pack) []byte {
	b, err := os.ReadFile(s.sizesFile(p))
	if err != nil || len(b) != len(sizesMagic)+p.n*8+4 || string(b[:len(sizesMagic)]) != sizesMagic {
		return nil
	}
	sum := len(b) - 4
	if binary.LittleEndian.Uint32(b[sum:]) != crc32.ChecksumIEEE(b[:sum]) {
		return nil
	}
	return b[len(sizesMagic):sum]
}

// saveSizes writes the file. Without one the pack is walked again.
func (s *Store) saveSizes(p *pack) {
	b := append([]byte(sizesMagic), p.sizes...)
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	tmp := filepath.Join(s.tmp(), p.name+".sizes")
	if err := os.WriteFile(tmp, b, 0o600); err == nil {
		_ = os.Rename(tmp, s.sizesFile(p))
	}
}

// measure finds the sizes of a pack that others made: of a delta the first
// bytes tell.
func (s *Store) measure(p *pack) ([]byte, error) {
	sizes := make([]byte, p.n*8)
	for i := range p.n {
		h, err := p.header(p.offset(i))
		if err != nil {
			return nil, err
		}
		size := h.size
		if h.isDelta() {
			if size, err = resultSize(p, h); err != nil {
				return nil, err
			}
		}
		binary.LittleEndian.PutUint64(sizes[i*8:], uint64(size))
	}
	return sizes, nil
}

func resultSize(p *pack, h header) (int64, error) {
	z, err := inflater(p, h.data)
	if err != nil {
		return 0, err
	}
	defer z.free()
	start := make([]byte, min(20, h.size)) // two numbers of ten bytes at most
	for n := 0; n < len(start); {
		m, err := z.Read(start[n:])
		if n += m; err != nil && n < len(start) {
			return 0, err
		}
	}
	_, size, _, err := deltaSizes(start)
	return size, err
}

package content

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"golang.org/x/sys/unix"
)

// States of a block. A block without bits is missing.
const (
	present = 1 << iota // its bytes are local
	written             // a program changed them
	durable             // they were local when the file was synced
)

// blocks is the presence map of a file that was not made locally. Its owner's mutex guards
// it. On the disk it is a file with a header and one byte for each block:
//
//	 0  magic, 8 bytes
//	 8  block size, 8 bytes
//	16  where the source's bytes end, 8 bytes
//	24  number of blocks, 4 bytes
//	28  flags, 4 bytes
//	32  boot, 1 byte of length and up to 63
//	96  digest, 1 byte of length and up to 255
//	508 CRC-32 of all before
//	512 states
//
// Numbers are little endian. A sector is written at once, so that a header is
// never half of two.
type blocks struct {
	size    int64   // of a block
	remote  int64   // where the bytes of the source end; beyond, all is present
	state   []uint8 // blocks beyond it have no state and are present
	missing int     // blocks
	digest  string  // of the source's version, "" for unknown
	touched bool    // changed by a program, so that the digest says nothing
	boot    string
	fd      int // of the map, -1 for none
}

const (
	mapMagic   = "wsblock1"
	headerSize = 512
	flagTouch  = 1
)

// newBlocks is the map of a file without local blocks.
func newBlocks(size, block int64, digest, boot string) *blocks {
	n := (size + block - 1) / block
	return &blocks{size: block, remote: size, state: make([]uint8, n), missing: int(n),
		digest: digest, boot: boot, fd: -1}
}

// single reports that there is one block only: then the file needs no map, as it gets its
// name when it is whole.
func (b *blocks) single() bool { return b.fd < 0 && len(b.state) == 1 }

// create makes the map and the content file, in this order: content without a map would
// count as whole. It returns the content's descriptor. Older content is to go first: the
// error is EEXIST, and no map is left beside content that it does not describe.
func (b *blocks) create(n names) (int, error) {
	if n.exists() {
		return -1, unix.EEXIST
	}
	fd, err := n.createMap()
	if err != nil {
		return -1, err
	}
	b.fd = fd
	if _, err = pwrite(fd, append(b.header(), b.state...), 0); err == nil {
		var data int
		if data, err = n.create(); err == nil {
			return data, nil
		}
	}
	b.close()
	return -1, errors.Join(err, n.unlinkMap())
}

func (b *blocks) close() {
	if b.fd >= 0 {
		unix.Close(b.fd)
		b.fd = -1
	}
}

// header is the first sector of the map.
func (b *blocks) header() []byte {
	h := make([]byte, headerSize)
	le := binary.LittleEndian
	copy(h, mapMagic)
	le.PutUint64(h[8:], uint64(b.size))
	le.PutUint64(h[16:], uint64(b.remote))
	le.PutUint32(h[24:], uint32(len(b.state)))
	if b.touched {
		le.PutUint32(h[28:], flagTouch)
	}
	putString(h[32:96], b.boot)
	putString(h[96:352], b.digest)
	le.PutUint32(h[508:], crc32.ChecksumIEEE(h[:508]))
	return h
}

func putString(to []byte, s string) {
	if len(s) >= len(to) {
		s = "" // unknown rather than cut
	}
	to[0] = byte(len(s))
	copy(to[1:], s)
}

func getString(from []byte) string {
	return string(from[1:][:min(int(from[0]), len(from)-1)])
}

// loadBlocks reads the map of an inode whose file has the given size; nil when
// it has none and so is whole. The size that it returns is the file's from then on.
func loadBlocks(n names, boot string, size int64) (*blocks, int64, error) {
	fd, err := n.d.openMap(n.ino, unix.O_RDWR)
	if err == unix.ENOENT {
		return nil, size, nil
	}
	if err != nil {
		return nil, size, err
	}
	b, err := readBlocks(fd)
	if err == nil && !b.touched && size != b.remote {
		size, err = b.remote, b.remake(n)
	}
	if err == nil {
		err = b.settle(boot, size)
	}
	if err == nil && b.missing == 0 && !b.touched {
		err = n.unlinkMap()
		b.close()
		return nil, size, err
	}
	if err != nil {
		unix.Close(fd)
		return nil, size, err
	}
	return b, size, nil
}

// remake ends a create that was interrupted: the file has no size yet, or is still the one
// of an older version, which was to be replaced. No program has changed it, or the map
// would say so; none of its bytes are of the map's version.
func (b *blocks) remake(n names) error {
	if err := b.reset(); err != nil {
		return err
	}
	fd, err := n.d.open(n.ino, unix.O_RDWR)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return errors.Join(retry(func() error { return unix.Ftruncate(fd, 0) }), retry(func() error { return unix.Ftruncate(fd, b.remote) }))
}

// readBlocks decodes a map.
func readBlocks(fd int) (*blocks, error) {
	h := make([]byte, headerSize)
	if _, err := pread(fd, h, 0); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	le := binary.LittleEndian
	if string(h[:8]) != mapMagic || le.Uint32(h[508:]) != crc32.ChecksumIEEE(h[:508]) {
		return nil, fmt.Errorf("%w: bad header", ErrDamaged)
	}
	b := &blocks{size: int64(le.Uint64(h[8:])), remote: int64(le.Uint64(h[16:])), fd: fd,
		touched: le.Uint32(h[28:])&flagTouch != 0, boot: getString(h[32:96]), digest: getString(h[96:352])}
	count := le.Uint32(h[24:])
	if b.size <= 0 || b.remote < 0 || count > maxBlocks {
		return nil, fmt.Errorf("%w: bad header", ErrDamaged)
	}
	b.state = make([]uint8, count)
	if _, err := pread(fd, b.state, headerSize); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return b, nil
}

// settle adjusts a map that was just read to the facts that can be relied on: the size of
// the file, when a truncation was cut off, and the boot.
func (b *blocks) settle(boot string, size int64) error {
	changed := boot == "" || b.boot != boot
	for i, st := range b.state {
		if changed && st&(written|durable) == 0 {
			b.state[i] = 0 // the disk may have kept the mark and lost the bytes
		}
	}
	b.boot = boot
	if size < b.remote {
		changed = true
		b.drop(size)
	}
	b.missing = 0
	for _, st := range b.state {
		if st&present == 0 {
			b.missing++
		}
	}
	if !changed {
		return nil
	}
	return b.save()
}

// save writes all of the map.
func (b *blocks) save() error {
	if b.fd < 0 {
		return nil
	}
	_, err := pwrite(b.fd, append(b.header(), b.state...), 0)
	return err
}

// touch notes that a program changes the file. It comes before the change.
func (b *blocks) touch() error {
	if b.touched {
		return nil
	}
	b.touched = true
	return b.saveHeader()
}

func (b *blocks) saveHeader() error {
	if b.fd < 0 {
		return nil
	}
	_, err := pwrite(b.fd, b.header(), 0)
	return err
}

// span is the blocks that a range of bytes touches, as far as they have states.
func (b *blocks) span(off, n int64) (lo, hi int) {
	if n <= 0 || off >= int64(len(b.state))*b.size {
		return 0, 0
	}
	return int(off / b.size), min(int((off+n-1)/b.size)+1, len(b.state))
}

// inside is the blocks that a range covers wholly. In the block in which the source's bytes
// end, the bytes after them need not be covered.
func (b *blocks) inside(off, n int64) (lo, hi int) {
	lo = int(min((off+b.size-1)/b.size, int64(len(b.state))))
	hi = int(min((off+n)/b.size, int64(len(b.state))))
	if off+n >= b.remote && hi < len(b.state) && int64(hi)*b.size < b.remote {
		hi++
	}
	return lo, max(lo, hi)
}

// start and end are where the source's bytes of a block lie.
func (b *blocks) start(i int) int64 { return int64(i) * b.size }
func (b *blocks) end(i int) int64   { return min(int64(i+1)*b.size, b.remote) }

func (b *blocks) has(i int) bool { return i >= len(b.state) || b.state[i]&present != 0 }

// firstMissing is the first missing block in [lo, hi), hi if there is none.
func (b *blocks) firstMissing(lo, hi int) int {
	for ; lo < hi; lo++ {
		if !b.has(lo) {
			break
		}
	}
	return lo
}

func (b *blocks) missingBytes() int64 {
	n := int64(0)
	for i := range b.state {
		if !b.has(i) {
			n += b.end(i) - b.start(i)
		}
	}
	return n
}

// mark adds bits to the blocks [lo, hi), in memory and in the map. It comes after their
// bytes were written.
func (b *blocks) mark(lo, hi int, bits uint8) error {
	changed := false
	for i := lo; i < hi; i++ {
		changed = changed || b.state[i]|bits != b.state[i]
	}
	if !changed {
		return nil
	}
	if b.fd >= 0 {
		next := make([]byte, hi-lo)
		for i := range next {
			next[i] = b.state[lo+i] | bits
		}
		if _, err := pwrite(b.fd, next, headerSize+int64(lo)); err != nil {
			return err
		}
	}
	for i := lo; i < hi; i++ {
		if !b.has(i) && bits&present != 0 {
			b.missing--
		}
		b.state[i] |= bits
	}
	return nil
}

// cut notes that the file was truncated to size: the source's bytes beyond are not wanted
// any more, even when the file grows again.
func (b *blocks) cut(size int64) error {
	if size >= b.remote {
		return nil
	}
	b.drop(size)
	return b.save()
}

// drop is cut in memory.
func (b *blocks) drop(size int64) {
	b.remote = size
	for i := int((size + b.size - 1) / b.size); i < len(b.state); i++ {
		if !b.has(i) {
			b.missing--
		}
		b.state[i] = present | written
	}
}

// reset makes every block missing again.
func (b *blocks) reset() error {
	clear(b.state)
	b.missing = len(b.state)
	return b.save()
}

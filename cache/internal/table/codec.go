package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Each record begins with a byte that gives the version of its encoding. Then come flags
// that say which parts follow, so that a missing part costs nothing, and the parts: numbers
// as varints, text with its length in front.

// encoder appends to a record.
type encoder []byte

func (e *encoder) uint(n uint64) { *e = binary.AppendUvarint(*e, n) }
func (e *encoder) int(n int64)   { *e = binary.AppendVarint(*e, n) }

func (e *encoder) time(t Time) {
	e.int(t.Sec)
	e.int(int64(t.Nsec))
}

func (e *encoder) text(s string) {
	e.uint(uint64(len(s)))
	*e = append(*e, s...)
}

func (e *encoder) link(l Link) {
	e.uint(l.Dir)
	e.text(l.Name)
}

func (e *encoder) links(links []Link) {
	e.uint(uint64(len(links)))
	for _, l := range links {
		e.link(l)
	}
}

func (e *encoder) version(v providers.Version) {
	e.text(v.ETag)
	e.int(v.Modified)
	e.int(v.Size)
}

// encodeMap puts the keys in order, so that equal records are equal bytes.
func encodeMap[V ~string | ~[]byte](e *encoder, m map[string]V) {
	e.uint(uint64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		e.text(k)
		e.text(string(m[k]))
	}
}

// decoder takes a record apart. It never reads past it, and makes nothing larger than it;
// the first error ends it.
type decoder struct {
	rest string // text parts share its memory
	err  error
}

var (
	errShort = errors.New("the record ends too early")
	errLong  = errors.New("the record goes on behind its end")
	errFlags = errors.New("the record has parts that are not known")
)

// decode starts with a record whose encoding must have the given version.
func decode(record []byte, version byte) decoder {
	switch {
	case len(record) == 0:
		return decoder{err: errShort}
	case record[0] != version:
		return decoder{err: fmt.Errorf("the record has encoding %d, and %d is known", record[0], version)}
	}
	return decoder{rest: string(record[1:])}
}

// end is the first error; bytes left over are one, too.
func (d *decoder) end() error {
	if d.err == nil && d.rest != "" {
		d.err = errLong
	}
	return d.err
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.rest = ""
}

func (d *decoder) uint() uint64 {
	var n uint64
	for i := 0; i < len(d.rest) && i < binary.MaxVarintLen64; i++ {
		b := d.rest[i]
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			if i == binary.MaxVarintLen64-1 && b > 1 {
				break
			}
			d.rest = d.rest[i+1:]
			return n
		}
	}
	d.fail(errShort)
	return 0
}

func (d *decoder) int() int64 {
	n := d.uint()
	return int64(n>>1) ^ -int64(n&1)
}

// time reads a time with any second: TimeOf bounds it.
func (d *decoder) time() Time {
	sec, nsec := d.int(), d.int()
	return TimeOf(time.Unix(sec, nsec))
}

// count is a number of items that need at least size bytes each.
func (d *decoder) count(size int) int {
	n := d.uint()
	if n > uint64(len(d.rest)/size) {
		d.fail(errShort)
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.count(1)
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) byte() uint8 {
	n := d.uint()
	if n > 0xff {
		d.fail(errFlags)
		return 0
	}
	return uint8(n)
}

func (d *decoder) uint32() uint32 {
	n := d.uint()
	if n > 0xffffffff {
		d.fail(errFlags)
		return 0
	}
	return uint32(n)
}

func (d *decoder) link() Link { return Link{Dir: d.uint(), Name: d.text()} }

func (d *decoder) links() []Link {
	links := make([]Link, d.count(2))
	for i := range links {
		links[i] = d.link()
	}
	return links
}

func (d *decoder) version() providers.Version {
	return providers.Version{ETag: d.text(), Modified: d.int(), Size: d.int()}
}

func decodeMap[V ~string | ~[]byte](d *decoder) map[string]V {
	n := d.count(2)
	m := make(map[string]V, n)
	for range n {
		k := d.text()
		m[k] = V(d.text())
	}
	return m
}

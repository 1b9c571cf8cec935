package bucket

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// A segment begins with a line that names the format. The rest is gzip, whose
// sum tells a damaged one: a count, and as many records. The numbers are varints,
// in the order of time, each time as the difference to the one before.
const (
	segmentWord = "wsmount hints "
	segmentHead = segmentWord + "3\n"
)

// segmentsPast are formats whose records do not count: they know nothing of headers, or
// of the storage class and the tags among them.
var segmentsPast = []string{segmentWord + "1\n", segmentWord + "2\n"}

var errNewerSegment = errors.New("of a newer wsmount")

// keyedRecord is a record and the id of its key.
type keyedRecord struct {
	id uint64
	record
}

// encodeSegment makes a segment. It sorts all in place.
func encodeSegment(all []keyedRecord) []byte {
	slices.SortFunc(all, func(a, b keyedRecord) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	out := bytes.NewBufferString(segmentHead)
	z := gzip.NewWriter(out)
	b := binary.AppendUvarint(nil, uint64(len(all)))
	last := uint32(0)
	for i := range all {
		b = all[i].append(b, last)
		last = all[i].at
		if len(b) > 1<<16 {
			_, _ = z.Write(b) // a buffer takes all
			b = b[:0]
		}
	}
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

// append adds the bytes of one record.
func (n *keyedRecord) append(b []byte, last uint32) []byte {
	b = binary.BigEndian.AppendUint64(b, n.id)
	b = binary.BigEndian.AppendUint32(b, n.check)
	b = binary.AppendUvarint(b, uint64(n.at-last))
	for _, v := range []uint64{uint64(n.bits), uint64(n.slack), uint64(n.target)} {
		b = binary.AppendUvarint(b, v)
	}
	if n.valid().Has(providers.AttrOwner) {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(n.uid)), uint64(n.gid))
	}
	if n.valid().Has(providers.AttrModTime) {
		b = binary.AppendVarint(b, n.mtime-int64(n.at))
		b = binary.AppendVarint(b, int64(n.nsec))
	}
	return b
}

// decodeSegment reads a segment of at most so many records, all or nothing.
func decodeSegment(b []byte, most int) ([]keyedRecord, error) {
	in := bufio.NewReader(bytes.NewReader(b))
	head, err := in.ReadString('\n')
	switch {
	case slices.Contains(segmentsPast, head):
		return nil, nil
	case strings.HasPrefix(head, segmentWord) && err == nil && head != segmentHead:
		return nil, errNewerSegment
	case head != segmentHead:
		return nil, fmt.Errorf("%w: no segment", providers.ErrCorrupt)
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	from := &segmentReader{in: bufio.NewReader(z)}
	count := from.number()
	if count > uint64(most) {
		return nil, fmt.Errorf("%d records: %w", count, providers.ErrTooLarge)
	}
	all := make([]keyedRecord, 0, min(count, uint64(len(b)/8))) // hashes take more
	for range count {
		if all = append(all, from.record()); from.err != nil {
			return nil, from.err
		}
	}
	if _, err := from.in.ReadByte(); !errors.Is(err, io.EOF) { // which checks the sum
		return nil, fmt.Errorf("%w: after the last record: %w", providers.ErrCorrupt, cmp.Or(err, io.ErrNoProgress))
	}
	return all, from.err
}

// segmentReader reads numbers up to the first error.
type segmentReader struct {
	in   *bufio.Reader
	last uint32
	err  error
}

func (r *segmentReader) fixed(b []byte) []byte {
	if r.err == nil {
		_, r.err = io.ReadFull(r.in, b)
	}
	return b
}

func (r *segmentReader) number() uint64 {
	if r.err != nil {
		return 0
	}
	var v uint64
	v, r.err = binary.ReadUvarint(r.in)
	return v
}

func (r *segmentReader) signed() int64 {
	if r.err != nil {
		return 0
	}
	var v int64
	v, r.err = binary.ReadVarint(r.in)
	return v
}

func (r *segmentReader) record() keyedRecord {
	var fixed [12]byte
	b := r.fixed(fixed[:])
	n := keyedRecord{id: binary.BigEndian.Uint64(b)}
	n.check = binary.BigEndian.Uint32(b[8:])
	r.last += uint32(r.number())
	n.at = r.last
	n.bits = uint32(r.number())
	n.slack, n.target = uint16(r.number()), uint16(r.number())
	if n.valid().Has(providers.AttrOwner) {
		n.uid, n.gid = uint32(r.number()), uint32(r.number())
	}
	if n.valid().Has(providers.AttrModTime) {
		t := time.Unix(r.signed()+int64(n.at), r.signed()) // before 1970, earlier versions wrote the second above and less than none
		n.mtime, n.nsec = t.Unix(), uint32(t.Nanosecond())
	}
	return n
}

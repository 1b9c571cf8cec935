package azure

import (
	"encoding/binary"
	"hash"
	"hash/crc64"
	"io"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// outgoing is a body for the SDK, which finds its size by seeking. It computes a checksum of
// the bytes read.
type outgoing struct {
	io.Reader
	size, at int64
	read     bool
	sum      hash.Hash64
}

// crc is the table of the service's checksum, as in the SDK.
var crc = crc64.MakeTable(0x9A6C9329AC4BC9B5)

func sent(body *bucket.Outgoing) *outgoing {
	return &outgoing{Reader: body.Reader(), size: body.Size, sum: crc64.New(crc)}
}

// Seek implements io.Seeker for a body before its first Read.
func (o *outgoing) Seek(offset int64, whence int) (int64, error) {
	if o.read {
		return 0, words("the body is on its way")
	}
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.size
	}
	o.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (o *outgoing) Read(b []byte) (int, error) {
	o.read = true
	n, err := o.Reader.Read(b)
	o.sum.Write(b[:n])
	return n, err
}

// Close implements io.Closer. The body is the caller's.
func (o *outgoing) Close() error { return nil }

// check compares the checksum of the bytes read with the service's, if it sent one.
func (o *outgoing) check(has []byte) error {
	if len(has) != crc64.Size || binary.LittleEndian.Uint64(has) == o.sum.Sum64() {
		return nil
	}
	return &bucket.Fault{Kind: providers.ErrCorrupt, Err: words("the service has other bytes than were sent")}
}

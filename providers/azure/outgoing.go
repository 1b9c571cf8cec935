package azure

import (
	"encoding/binary"
	"hash"
	"hash/crc64"
	"io"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// outgoing is a body as the SDK wants it, which asks for its size by seeking. It sums up
// what is read.
type outgoing struct {
	io.Reader
	size, at int64
	read     bool
	sum      hash.Hash64
}

// crc is what the service sums up with, as the SDK has it.
var crc = crc64.MakeTable(0x9A6C9329AC4BC9B5)

func sent(body *bucket.Outgoing) *outgoing {
	return &outgoing{Reader: body.Reader(), size: body.Size, sum: crc64.New(crc)}
}

// Seek implements io.Seeker for a body of which nothing was read yet.
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

// check compares what was read with what the service says that it has, if it does.
func (o *outgoing) check(has []byte) error {
	if len(has) != crc64.Size || binary.LittleEndian.Uint64(has) == o.sum.Sum64() {
		return nil
	}
	return &bucket.Fault{Kind: providers.ErrCorrupt, Err: words("the service has other bytes than were sent")}
}

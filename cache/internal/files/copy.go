package files

import (
	"io"
	"sync"
)

// pieceSize is how much content is copied at a time: of 32 KiB, as io.Copy has them, a
// fast remote would need too many system calls.
const pieceSize = 256 << 10

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// Copy copies all of from, about size bytes, in pieces that are as full as can
// be.
func Copy(to io.Writer, from io.Reader, size int64) (n int64, err error) {
	if size < 32<<10 {
		return io.Copy(to, from)
	}
	piece := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(piece)
	for err == nil {
		got := 0
		for got < len(piece) && err == nil {
			var more int
			more, err = from.Read(piece[got:])
			got += more
		}
		if _, werr := to.Write(piece[:got]); werr != nil {
			return n, werr
		}
		n += int64(got)
	}
	if err == io.EOF { // and not one with a cause, which is an error
		err = nil
	}
	return n, err
}

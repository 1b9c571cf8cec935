package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/wsmount/wsmount/integration/assert"
)

// Content is carried whole, however it comes, and what breaks it off is told.
func TestCopy(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 70<<10)
	broken := fmt.Errorf("the line: %w", io.ErrUnexpectedEOF)
	for _, c := range []struct {
		name string
		from io.Reader
		err  error
	}{
		{"at once", bytes.NewReader(data), nil},
		{"with the end", iotest.DataErrReader(bytes.NewReader(data)), nil},
		{"in halves", iotest.HalfReader(bytes.NewReader(data)), nil},
		{"broken off", io.MultiReader(bytes.NewReader(data), iotest.ErrReader(broken)), io.ErrUnexpectedEOF},
		{"and nothing more", io.MultiReader(bytes.NewReader(data), iotest.ErrReader(io.ErrUnexpectedEOF)), io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			var to bytes.Buffer
			n, err := Copy(&to, c.from, int64(len(data)))
			assert.True(t, n == int64(len(data)) && bytes.Equal(to.Bytes(), data) && errors.Is(err, c.err), n, "bytes of", len(data), err)
		})
	}
}

// What cannot be written ends it.
func TestCopyIntoNothing(t *testing.T) {
	full := errors.New("full")
	assert.Is(t, assert.ErrOf(Copy(failing{full}, bytes.NewReader(make([]byte, 1<<20)), 1<<20)), full)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

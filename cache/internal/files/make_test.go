package files

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/wsmount/wsmount/integration/assert"
)

// All that is read becomes content. What ends too early is not taken for whole, and nothing is
// left of it.
func TestMakeContent(t *testing.T) {
	d, broken := newDesk(t), errors.New("broken")
	for _, text := range []string{"", "x", strings.Repeat("0123456789abcdef", pieceSize/16) + "x"} {
		for _, cause := range []error{nil, io.ErrUnexpectedEOF, broken} {
			from := io.Reader(strings.NewReader(text))
			if cause != nil {
				from = io.MultiReader(from, iotest.ErrReader(cause))
			}
			m, err := Make(t.Context(), d.tree, d.store, "f", from)
			assert.Is(t, err, cause, len(text), "bytes")
			left := 0
			assert.OK(t, d.store.Each(func(ino uint64, path string, size int64, partial bool) {
				if ino != d.x {
					assert.True(t, ino == m.Ino && size == int64(len(text)) && size == m.Size && !partial, ino, path, size, m)
					left++
				}
			}))
			assert.Equal(t, left == 1, cause == nil, len(text), "bytes, then", cause)
			if err == nil {
				d.store.Remove(m.Ino)
			}
		}
	}
}

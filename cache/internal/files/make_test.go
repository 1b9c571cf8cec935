package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/content"
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

// The disk has durable content when it is made.
func TestMakeDurableContent(t *testing.T) {
	d := newDesk(t)
	synced := map[string]bool{}
	store := assert.Of(content.Open(t.TempDir(), content.Options{Ballast: -1, Floor: -1, Fsync: func(fd int) error {
		path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		synced[path] = true
		return errors.Join(err, unix.Fsync(fd))
	}})).OK(t)
	t.Cleanup(func() { assert.OK(t, store.Close()) })
	has := func(m Made) (is bool) {
		for path := range synced {
			is = is || filepath.Base(path) == fmt.Sprint(m.Ino)
		}
		return is
	}
	m := assert.Of(Make(t.Context(), d.tree, store, "f", strings.NewReader("text"))).OK(t)
	assert.False(t, has(m), "content that is not durable was synced")
	m = assert.Of(MakeDurable(t.Context(), d.tree, store, "f", strings.NewReader("text"))).OK(t)
	assert.True(t, has(m), "durable content was not synced", synced)
}

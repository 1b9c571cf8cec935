package bucket

import (
	"io"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// A body is sent again from its beginning where it can go back, or nothing of it was read; and
// the request before gets no more of it.
func TestOutgoingAgain(t *testing.T) {
	for _, c := range []struct {
		name     string
		seeks    bool
		read, ok bool
	}{
		{"unread stream", false, false, true}, {"stream", false, true, false},
		{"unread file", true, false, true}, {"file", true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r io.Reader = strings.NewReader("before content")
			assert.OK(t, assert.ErrOf(io.ReadFull(r, make([]byte, len("before ")))))
			if !c.seeks {
				r = struct{ io.Reader }{r}
			}
			o := NewOutgoing(t.Context(), providers.Body{Reader: r, Size: int64(len("content"))})
			first := o.Reader()
			if c.read {
				assert.OK(t, assert.ErrOf(io.ReadFull(first, make([]byte, 3))))
			}
			got := o.Again()
			assert.Must(t, got == c.ok, "again", got)
			n, err := first.Read(make([]byte, 1))
			assert.True(t, n == 0 && err != nil, "the first request read", n, "more bytes")
			if !c.ok {
				return
			}
			assert.Of(io.ReadAll(o.Reader())).Equal(t, []byte("content"), "sent")
			assert.Is(t, o.end(nil), nil)
		})
	}
}

package git

import (
	"context"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/space"
)

// A server that says nothing is given up, and who waits is told, so that the next can
// ask again; who does not wait any more goes at once.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	r := assert.Of(openRepository(filepath.Join(t.TempDir(), "clone"), "https://git.acme.test/acme/r.git", space.Disk{})).OK(t)
	w := r.partial
	asked := make(chan struct{}, 10)
	w.now, w.silence = time.Now, 50*time.Millisecond
	w.ask = func(ctx context.Context, _ []id, _ func(io.Reader) error) error {
		asked <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	assert.OK(t, w.without())
	for range 2 {
		assert.Is(t, w.need(t.Context(), id{1}), providers.ErrUnavailable, "a silent server")
		<-asked
	}
	w.silence = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	assert.Is(t, w.need(ctx, id{2}), context.Canceled, "who goes")
	w.end()
	assert.Is(t, w.need(t.Context(), id{3}), providers.ErrClosed, "after the end")
	assert.Is(t, r.close(), nil)
}

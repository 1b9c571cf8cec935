package partial

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// A server that says nothing is given up, and a caller that waits is told, so that the next can
// ask again; a caller that does not wait any more goes at once.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	w, _ := newBlobs(t)
	asked := make(chan struct{}, 10)
	silent := Server{Now: time.Now, Silence: 50 * time.Millisecond, Ask: func(ctx context.Context, _ []id, _ func(io.Reader) error) error {
		asked <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}}
	w.From(silent)
	assert.OK(t, w.Without())
	for range 2 {
		assert.Is(t, w.Need(t.Context(), id{1}), providers.ErrUnavailable, "a silent server")
		<-asked
	}
	silent.Silence = time.Hour
	w.From(silent)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	assert.Is(t, w.Need(ctx, id{2}), context.Canceled, "a caller that goes")
	w.End()
	assert.Is(t, w.Need(t.Context(), id{3}), providers.ErrClosed, "after the end")
}

package git

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/space"
)

// A server that says nothing is given up, and who waits is told, so that the next can
// ask again; who does not wait any more goes at once.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	r, err := openRepository(filepath.Join(t.TempDir(), "clone"), "https://git.acme.test/acme/r.git", space.Disk{})
	if err != nil {
		t.Fatal(err)
	}
	w := r.partial
	asked := make(chan struct{}, 10)
	w.now, w.silence = time.Now, 50*time.Millisecond
	w.ask = func(ctx context.Context, _ []id, _ func(io.Reader) error) error {
		asked <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	if err := w.without(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.need(t.Context(), id{1}); !errors.Is(err, providers.ErrUnavailable) {
			t.Errorf("a silent server: %v", err)
		}
		<-asked
	}
	w.silence = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if err := w.need(ctx, id{2}); !errors.Is(err, context.Canceled) {
		t.Errorf("who goes: %v", err)
	}
	w.end()
	if err := w.need(t.Context(), id{3}); !errors.Is(err, providers.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
}

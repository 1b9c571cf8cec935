package cache

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// drop takes bytes that nobody wants.
type drop struct{}

func (drop) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// A fetch of a version that is gone says so, and looks at no name: what that brings could
// need a fetch again.
func TestFetchLooksAtNoName(t *testing.T) {
	var c calls
	w := newWorld(t, recording(&c), holding("f", "one"))
	x := table.Ino(w.walk("f"))
	was := w.v.whereabouts(x)
	w.tamper("f", "two")
	c.changes() // forgets what was called
	err := w.v.fetch.Fetch(t.Context(), x, was.gen, 0, 3, drop{})
	assert.Is(t, err, errVersionGone)
	assert.False(t, errors.Is(err, providers.ErrConflict), "it counts as a conflict")
	assert.Slice(t, c.all(), []string{"read f"})
	assert.Equal(t, w.v.whereabouts(x), was)
	assert.Is(t, w.v.fetch.Fetch(t.Context(), x, was.gen+1, 0, 3, drop{}), errOutdated)
}

// All opens that waited for one fetch are sent back to the name, and no later one.
func TestAllWhoWaitedAreSentBack(t *testing.T) {
	w := newScene(t, holding("f", "one"))
	x := table.Ino(w.walk("f"))
	first, next := &goneError{ino: x}, &goneError{ino: x}
	for _, c := range []struct {
		gone *goneError
		sent bool
	}{{first, true}, {first, true}, {next, false}, {first, true}} {
		err := w.v.staleOnce(fmt.Errorf("%w: %w", fs.ErrUnavailable, c.gone))
		assert.Equal(t, errors.Is(err, fs.ErrStale), c.sent, err)
		assert.Is(t, err, map[bool]error{true: fs.ErrStale, false: fs.ErrUnavailable}[c.sent])
	}
}

// A read that finds its version gone while the head moves does not wait for that any
// longer than its caller.
func TestRevalidationEndsWithItsCaller(t *testing.T) {
	w := newScene(t, holding("f", "one"))
	x := table.Ino(w.walk("f"))
	was := w.v.whereabouts(x)
	w.tamper("f", "two")
	w.v.puller.headLock.Lock()
	defer w.v.puller.headLock.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- w.v.fetching(ctx, func() error { return w.v.fetch.Fetch(ctx, x, was.gen, 0, 3, drop{}) })
	}()
	cancel()
	assert.False(t, <-done == nil, "it was fetched")
	err := w.v.fetch.Fetch(t.Context(), x, was.gen, 0, 3, drop{})
	assert.Is(t, err, errVersionGone) // at once, with the lock held
}

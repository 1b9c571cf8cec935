package cache

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
)

// drop takes bytes that nobody wants.
type drop struct{}

func (drop) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// All opens that waited for one fetch are sent back to the name, and no later one.
func TestAllWhoWaitedAreSentBack(t *testing.T) {
	w := newScene(t, holding("f", "one"))
	x := table.Ino(w.walk("f"))
	first, next := &files.GoneError{Ino: x}, &files.GoneError{Ino: x}
	for _, c := range []struct {
		gone *files.GoneError
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
	was := w.v.hydrator.Whereabouts(x)
	w.tamper("f", "two")
	defer w.v.head.Move().Release()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- w.v.hydrator.Follow(ctx, func() error { return w.v.hydrator.Fetch(ctx, x, was.ContentVersion, 0, 3, drop{}) })
	}()
	cancel()
	assert.False(t, <-done == nil, "it was fetched")
	err := w.v.hydrator.Fetch(t.Context(), x, was.ContentVersion, 0, 3, drop{})
	assert.Is(t, err, files.ErrVersionGone) // at once, with the lock held
}

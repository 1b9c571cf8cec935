package revision_test

import (
	"context"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/integration/assert"
)

// Readers share the head, a move of it is alone, and a reader's wait ends with its caller.
func TestHeadLock(t *testing.T) {
	l := revision.NewHeadLock()
	revision.NoHead().Release()
	one, err := l.Hold(t.Context())
	assert.OK(t, err)
	other, err := l.Hold(t.Context())
	assert.OK(t, err)
	moves := make(chan revision.Moving)
	go func() { moves <- l.Move() }()
	one.Release()
	select {
	case <-moves:
		t.Fatal("the head moves while it is read")
	default:
	}
	other.Release()
	moving := <-moves
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- assert.ErrOf(l.Hold(ctx)) }()
	cancel()
	assert.Is(t, <-done, context.Canceled)
	moving.Release()
	_, err = l.Hold(t.Context())
	assert.OK(t, err)
}

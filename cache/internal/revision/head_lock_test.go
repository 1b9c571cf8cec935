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
	assert.OK(t, l.RLock(t.Context()))
	assert.OK(t, l.RLock(t.Context()))
	locked := make(chan struct{})
	go func() {
		l.Lock()
		close(locked)
	}()
	l.RUnlock()
	select {
	case <-locked:
		t.Error("the head moves while it is read")
	default:
	}
	l.RUnlock()
	<-locked
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.RLock(ctx) }()
	cancel()
	assert.Is(t, <-done, context.Canceled)
	l.Unlock()
	assert.OK(t, l.RLock(t.Context()))
}

package daemon

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/wsmount/wsmount/integration/assert"
)

// What is done in the background gives way to an event; an event waits for the one before
// it; and after the end there is none.
func TestGate(t *testing.T) {
	g := newGate("@acme/a", slog.New(slog.DiscardHandler))
	assert.True(t, g.tryTake(), "the gate is open")
	begun, gaveWay := make(chan struct{}), make(chan struct{})
	go g.behind(func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		close(gaveWay)
		return ctx.Err()
	})
	<-begun
	assert.OK(t, g.take(t.Context()))
	<-gaveWay
	assert.False(t, g.tryTake(), "an event is being followed")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Is(t, g.take(over), context.Canceled, "an event that waits no longer")
	assert.Is(t, g.close(over), context.Canceled, "an end that waits no longer")
	g.give()
	assert.OK(t, g.close(t.Context()))
	assert.False(t, g.tryTake(), "after the end")
	err := g.take(over)
	assert.False(t, !errors.Is(err, errClosed) && !errors.Is(err, context.Canceled), "after the end", err)
}

// An event gets its turn also where it came when what is done in the background had the token
// and had not begun yet.
func TestGateGivesWayFromTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate("@acme/a", slog.New(slog.DiscardHandler))
		assert.True(t, g.tryTake(), "the gate is open")
		event := make(chan error)
		go func() { event <- g.take(t.Context()) }()
		synctest.Wait()
		g.behind(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		assert.OK(t, <-event)
		g.give()
	})
}

package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// A gate lets one event of a working copy be followed at a time, until the mount ends.
type gate struct {
	name   string // of the workspace
	log    *slog.Logger
	ctx    context.Context // ends with the mount
	cancel context.CancelFunc
	token  chan struct{} // taken while an event is followed

	mu      sync.Mutex // guards the fields below
	waiting int        // events that wait for the token
	giveWay func()     // cancels the background work
}

func newGate(name string, log *slog.Logger) *gate {
	g := &gate{name: name, log: log, token: make(chan struct{}, 1)}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// take waits until the event under way is done; background work gives way. The
// error is ctx's, or errClosed.
func (g *gate) take(ctx context.Context) error {
	g.mu.Lock()
	g.waiting++
	if g.giveWay != nil {
		g.giveWay()
	}
	g.mu.Unlock()
	defer func() { g.mu.Lock(); g.waiting--; g.mu.Unlock() }()
	select {
	case g.token <- struct{}{}:
		if g.ctx.Err() != nil {
			g.give()
			return errClosed
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("another event is still being followed: %w", ctx.Err())
	}
}

// tryTake is take without waiting.
func (g *gate) tryTake() bool {
	if g.ctx.Err() != nil {
		return false
	}
	select {
	case g.token <- struct{}{}:
		return true
	default:
		return false
	}
}

// join is take for background work: it waits for the event under way, and no work gives
// way to it. The error says that the mount ends.
func (g *gate) join() error {
	select {
	case g.token <- struct{}{}:
		if g.ctx.Err() != nil {
			g.give()
		}
		return g.ctx.Err()
	case <-g.ctx.Done():
		return g.ctx.Err()
	}
}

func (g *gate) give() { <-g.token }

// behind runs f as background work, with the token: it gives way to an event, also to one
// that came after the token was taken and before this call.
func (g *gate) behind(f func(ctx context.Context) error) {
	defer g.give()
	ctx, cancel := context.WithCancel(g.ctx)
	defer cancel()
	g.mu.Lock()
	if g.giveWay = cancel; g.waiting > 0 {
		cancel()
	}
	g.mu.Unlock()
	if err := f(ctx); err != nil && ctx.Err() == nil {
		g.log.Warn("the remote cannot be asked", "workspace", g.name, "err", err)
	}
}

// close cancels the work under way, and takes the token for good: no event comes after it.
func (g *gate) close(ctx context.Context) error {
	g.cancel()
	select {
	case g.token <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("an event was still being followed: %w", ctx.Err())
	}
}

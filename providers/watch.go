package providers

import (
	"context"
	"iter"
)

// Watcher reports changes, also those made by others.
type Watcher interface {
	// Watch gives the changes at and below l until ctx ends or the caller
	// stops. It promises no order and may repeat itself. An error ends it.
	Watch(ctx context.Context, l Locator) iter.Seq2[Event, error]
}

// Event is a change that a Watcher saw. Stat gives the present entry.
type Event struct {
	Locator Locator
	// Lost: changes below Locator may be missing, so list it again.
	Lost bool
}

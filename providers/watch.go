package providers

import (
	"context"
	"iter"
)

// Watcher tells of changes, also of those that others made.
type Watcher interface {
	// Watch gives the changes at and below l until ctx ends or the caller
	// stops. It promises no order and may repeat itself. An error ends it.
	Watch(ctx context.Context, l Locator) iter.Seq2[Event, error]
}

// Event is a change that a Watcher saw. Look with Stat for what is there now.
type Event struct {
	Locator Locator
	// Lost says that changes below Locator may be missing: list it again.
	Lost bool
}

package cache

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/wsmount/wsmount/providers"
)

// scene is a world with another writer in it.
type scene struct{ *world }

func newScene(t *testing.T, change ...func(*world, *Options)) *scene {
	t.Helper()
	return &scene{newWorld(t, change...)}
}

// answerLate has the first call of a method done at once, and answered when gate
// is closed. reached is closed when it is done.
func (w *scene) answerLate(m providers.Method) (gate, reached chan struct{}) {
	gate, reached = make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	w.intercept(func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
		err := next(ctx)
		if c.Method == m && calls.Add(1) == 1 {
			close(reached)
			<-gate
		}
		return err
	})
	return gate, reached
}

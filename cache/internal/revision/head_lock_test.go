package revision_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/integration/assert"
)

// Readers share the head, a move of it is alone, and a reader's wait ends with its caller.
func TestHeadLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := revision.NewHeadLock()
		revision.NoHead().Release()
		one := assert.Of(l.Hold(t.Context())).OK(t)
		other := assert.Of(l.Hold(t.Context())).OK(t)
		var moving *revision.Moving
		go func() { m := l.Move(); moving = &m }()
		for _, h := range []revision.Held{one, other} {
			synctest.Wait()
			assert.True(t, moving == nil, "the head moves while it is read")
			h.Release()
		}
		synctest.Wait()
		assert.Must(t, moving != nil, "the head does not move")
		ctx, cancel := context.WithCancel(t.Context())
		var err error
		go func() { _, err = l.Hold(ctx) }()
		synctest.Wait()
		assert.OK(t, err, "a reader's wait")
		cancel()
		synctest.Wait()
		assert.Is(t, err, context.Canceled, "a reader that was killed")
		moving.Release()
		assert.OK(t, assert.ErrOf(l.Hold(t.Context())))
	})
}

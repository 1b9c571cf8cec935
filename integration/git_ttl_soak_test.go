//go:build soak

package integration

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// Whoever looks while the server is away gets the old state when the patience is over, and
// nobody else waits; that is told once. When it is back, so is what is new, also
// when it is slow at first, as soon as a pull takes less than the patience of a second. That
// is up to the machine: it is why this is a test of make soak.
func TestGitLooksWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	g := newGitStage(t)
	var away atomic.Bool
	var slow atomic.Int32
	g.server.Hook(func(w http.ResponseWriter, _ *http.Request) bool {
		if away.Load() {
			http.Error(w, "nobody is here", http.StatusServiceUnavailable)
		}
		if !away.Load() && slow.Load() > 0 {
			slow.Add(-1)
			time.Sleep(1500 * time.Millisecond)
		}
		return away.Load()
	})
	g.pushes(1)
	g.workspace("site", "pull: {on: turn-start, ttl_seconds: 3600}")
	m := g.w.Mount("@acme/site", "--patience", "1s")
	m.Stop()
	g.pushes(2)
	away.Store(true)
	m.Start()
	for range 3 {
		for what, look := range looksAtAPush {
			if what != "stat of a new name" {
				assert.OK(t, look(m.Dir, 1), what)
			}
		}
	}
	assert.True(t, m.Status().Parts[0].WorkingCopy.Stale, "status tells it")
	const told = "what was last pulled is shown"
	assert.Equal(t, strings.Count(g.read(m.Status().Log), told), 1, "words of it in the log")
	slow.Store(2)
	away.Store(false)
	harness.Eventually(t, "what is new comes by itself", func() bool { return looksAtAPush["open"](m.Dir, 2) == nil })
	assert.True(t, !m.Status().Parts[0].WorkingCopy.Stale, "status tells it no more")
	assert.Equal(t, strings.Count(g.read(m.Status().Log), told), 1, "words of it in the log")
}

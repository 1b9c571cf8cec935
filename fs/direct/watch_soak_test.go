//go:build soak

package direct

import (
	"fmt"
	"testing"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
)

// What others do shows within 100 ms. It is measured, which takes a quiet machine.
func TestWatchIsQuick(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{})
	best := time.Hour
	for i := range 5 { // one of them undisturbed
		name := fmt.Sprint("f", i)
		lookupNone(t, v, wsfs.RootIno, name)
		start := time.Now()
		writeFile(t, "", dir, name)
		r.wait(t, note{"entry", wsfs.RootIno, name})
		best = min(best, time.Since(start))
	}
	assert.True(t, best <= 100*time.Millisecond, "took", best)
}

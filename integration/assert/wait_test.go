package assert

import (
	"testing"
	"testing/synctest"
	"time"
)

// What comes late is waited for, and what never comes is told of.
func TestEventually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name   string
			comes  time.Duration
			report []string
		}{
			{"there", 0, nil},
			{"late", Hangs - time.Second, nil},
			{"never", 2 * Hangs, []string{"fatal: waited in vain: it"}},
		} {
			r, begin, asked := &recorder{}, time.Now(), 0
			Eventually(r, "it", func() bool {
				asked++
				return time.Since(begin) >= c.comes
			})
			Slice(t, r.said, c.report, c.name)
			True(t, time.Since(begin) <= min(c.comes, Hangs)+100*time.Millisecond, c.name, "took", time.Since(begin))
			True(t, asked < 3000, c.name, "asked", asked, "times")
		}
	})
}

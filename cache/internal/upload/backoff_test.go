package upload

import (
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

// An outage is told once: after some failures, or when it lasts. Any success ends it.
func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		what  string
		every time.Duration // a failure
		told  int           // the first that is told
	}{
		{"many at once", 0, flaky},
		{"few, for long", outageAfter/2 + 1, 3},
		{"one, and long after another", outageAfter + 1, 2},
	} {
		b := NewBackoff(noon)
		since, last := b.Unreachable(nil, noon)
		assert.True(t, since == 0 && last == nil, "nothing failed yet")
		now := noon.Add(time.Hour)
		began := now
		for i := 1; i <= 2*flaky; i++ {
			assert.Equal(t, b.Failed(nil, errSome, now), i == c.told, c.what, i)
			assert.Equal(t, b.IsFlaky(nil), i >= flaky, c.what, i)
			since, last = b.Unreachable(nil, now)
			assert.Equal(t, since, now.Sub(noon), c.what)
			assert.Equal(t, last, errSome, c.what)
			now = now.Add(c.every)
		}
		assert.Equal(t, b.Failures(nil), 2*flaky)
		outage, told := b.Reached(nil, now)
		assert.True(t, told && outage == now.Sub(began), c.what, outage)
		_, told = b.Reached(nil, now)
		assert.False(t, told || b.IsFlaky(nil) || b.Failures(nil) > 0, c.what, "it goes on")
		assert.False(t, b.Failed(nil, errSome, now), c.what, "a first failure is no outage")
	}
}

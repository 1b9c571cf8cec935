package pending

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// Only what no attempt before has reached is progress.
func TestReach(t *testing.T) {
	var r Reach
	by := func(n int, progress bool, now int64) {
		t.Helper()
		assert.Equal(t, r.By(n), progress, n)
		assert.Equal(t, r.Now(), now)
	}
	by(3, true, 3)
	by(-2, false, 1) // a part goes again
	by(2, false, 3)
	by(1, true, 4)
	r.Again()
	by(4, false, 4)
	by(1, true, 5)
	r.Forget()
	by(1, true, 1)
}

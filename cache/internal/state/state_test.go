package state

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// One process alone has a directory, or several read in it.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	d := assert.Of(Lock(dir)).OK(t)
	assert.Is(t, assert.ErrOf(Lock(dir)), ErrInUse)
	assert.Is(t, assert.ErrOf(Share(dir)), ErrInUse, "to be read")
	assert.OK(t, d.Close())
	d, other := assert.Of(Share(dir)).OK(t), assert.Of(Share(dir)).OK(t)
	assert.OK(t, d.Close())
	assert.OK(t, other.Close())
}

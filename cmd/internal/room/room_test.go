package room

import (
	"testing"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/integration/assert"
)

// volume has so many bytes of clean content, and as many that are unsaved.
type volume struct{ clean int64 }

func (v *volume) MakeRoom(int64) bool {
	had := v.clean
	v.clean = 0
	return had > 0
}

func (v *volume) ContentUsage() cache.ContentUsage {
	return cache.ContentUsage{Clean: v.clean, Unsaved: 2 << 10}
}

// All open working copies make room; that there is none to be had is said, with what
// they hold.
func TestOpenWorkingCopiesMakeRoom(t *testing.T) {
	r := New(t.TempDir())
	assert.False(t, r.MakeRoom(1), "without a working copy there is room")
	a, b := &volume{3 << 10}, &volume{4 << 10}
	r.Add(a)
	r.Add(b)
	for _, all := range []bool{false, true} {
		if all {
			r.Opened()
		}
		assert.Contains(t, r.Usage(), " 7 KiB that are clean, 4 KiB that are unsaved", "usage")
		assert.True(t, r.MakeRoom(1) && a.clean+b.clean == 0, a.clean, b.clean, "bytes stayed")
		assert.False(t, r.MakeRoom(1), "nothing is left, and there is room")
		a.clean, b.clean = 3<<10, 4<<10
	}
}

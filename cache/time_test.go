package cache

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
)

// Times that nanoseconds since 1970 in 64 bits cannot say are kept here and at the
// backend, and come back from it.
func TestTimesOfAnyYear(t *testing.T) {
	for _, want := range []time.Time{
		time.Date(2500, 1, 1, 0, 0, 0, 5, time.UTC), time.Date(1600, 1, 1, 0, 0, 0, 5, time.UTC),
		time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, math.MaxInt64), time.Unix(0, math.MinInt64),
	} {
		t.Run(fmt.Sprint(want.Year()), func(t *testing.T) {
			w := newWorld(t, holding("f", "1"), unwaited)
			look := func(when string, atime bool) {
				t.Helper()
				a := w.attr("f")
				assert.True(t, a.Mtime.Equal(want) && (!atime || a.Atime.Equal(want)), when, "changed", a.Mtime, "read", a.Atime)
			}
			w.setAttr("f", &fs.SetAttr{Atime: &want, Mtime: &want})
			look("set", true)
			w.again()
			look("opened again", true)
			w.killed()
			look("killed", true)
			w.settle()
			info := w.stat("f")
			assert.True(t, info.ModTime().Equal(want), "the backend has", info.ModTime())
			w.o.StateDir = t.TempDir()
			w.again()
			look("another working copy", false)
		})
	}
}

package daemon

import (
	"testing"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/memory"
)

// A bucket has no end, and what may be written now is what the local disk has above its
// reserve; all else that has a working copy is as large as that disk.
func TestStatfs(t *testing.T) {
	for _, c := range []struct {
		bucket   bool
		keepFree int64
	}{{true, 0}, {false, 0}, {true, 1 << 60}} {
		v, err := cache.Open(t.Context(), memory.New(memory.Options{}), cache.Options{StateDir: t.TempDir(), Provider: "memory", KeepFree: c.keepFree})
		assert.OK(t, err)
		defer v.Close()
		w := &workingCopy{Volume: v, isBucket: c.bucket}
		st := assert.Of(w.Statfs(&fs.Op{}, fs.RootIno)).OK(t)
		assert.Equal(t, st.Blocks*uint64(st.Frsize) == unlimited && st.Bfree == st.Blocks && st.Files == st.Ffree, c.bucket, c, st)
		assert.Equal(t, st.Bavail == 0, c.keepFree > 0, c, st)
		assert.True(t, st.Bavail < unlimited/uint64(st.Frsize), c, st)
	}
}

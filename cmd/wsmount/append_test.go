package main

import (
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// What another writes between the open of a file and the first line appended to
// it is a conflict, and no error of write(2).
func TestAppendToWhatOthersWrite(t *testing.T) {
	tier.RequireFUSE(t)
	w, r := newWorld(t), serve(t, false)
	addr := w.remoteWorkspace("ops", r, "mode: canonical", "")
	r.theirs(t, "f", "1")
	w.mount(addr, "mnt")
	f, err := os.OpenFile(w.path("mnt/f"), os.O_WRONLY|os.O_APPEND, 0)
	assert.OK(t, err)
	r.theirs(t, "f", "22")
	for range 2 {
		assert.Is(t, assert.ErrOf(f.WriteString("a")), nil)
	}
	assert.Is(t, f.Close(), nil)
	eventually(t, "both versions to be there", func() bool {
		all := r.dump(t)
		return strings.Contains(all, `"f" file 2 `) && strings.Contains(all, `"f.conflict-`) && strings.Contains(all, " file 3 ")
	})
}

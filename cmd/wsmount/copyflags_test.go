package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// What flags of mount say reaches the working copy and the mount.
func TestCopyFlags(t *testing.T) {
	tier.RequireRoot(t)
	const bound, owner = 64 << 10, 7
	w, _ := mountFiles(t, "mode: canonical", "--map-ids", "--control-dir", ".ws", "--cache-size", fmt.Sprint(bound))
	for i := range 8 {
		w.write(fmt.Sprint("mnt/f", i), strings.Repeat("x", bound/2))
	}
	assert.OK(t, os.Chown(w.path("mnt/f0"), owner, owner))
	eventually(t, "no more content than was said to be kept", func() bool {
		kept := int64(0)
		files, err := filepath.Glob(w.path("state/acme/ops/*/copy/data/*/*"))
		assert.OK(t, err)
		for _, name := range files {
			var st syscall.Stat_t
			if syscall.Lstat(name, &st) == nil { // else it has gone meanwhile
				kept += st.Blocks * 512
			}
		}
		return kept <= bound
	})
	assert.Contains(t, w.read("mnt/.ws/status.json"), ops)
	assert.Is(t, assert.ErrOf(os.Stat(w.path("mnt/.wsmount"))), os.ErrNotExist, "its usual name")
	w.ok("umount", "mnt")
	for _, flags := range [][]string{{"--map-ids"}, nil} { // from the store, in working copies that know nothing
		w.ok(append([]string{"mount", ops, "mnt", "--working-copy", fmt.Sprint("c", len(flags))}, flags...)...)
		var st syscall.Stat_t
		assert.OK(t, syscall.Stat(w.path("mnt/f0"), &st))
		assert.Equal(t, st.Uid, uint32(owner*len(flags)), flags, "owner")
		w.ok("umount", "mnt")
	}
}

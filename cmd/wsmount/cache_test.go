package main

import (
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
)

// What the store has too can be given up by hand, of what is mounted and of what is
// not, after a kill as well; what it lacks stays.
func TestCacheByHand(t *testing.T) {
	w, r := mountFiles(t, perTurn)
	const size = 64 << 10
	block := strings.Repeat("x", size)
	r.theirs(t, "f", block)
	w.ok("pull", "mnt")
	content := func(args ...string) control.CacheCopy {
		t.Helper()
		var res control.CacheResult
		w.asJSON(&res, append([]string{"cache"}, args...)...)
		assert.Equal(t, len(res.Copies), 1, args)
		return res.Copies[0]
	}
	read := func() {
		t.Helper()
		assert.True(t, w.read("mnt/f") == block, "the remote file is whole")
		assert.True(t, w.read("mnt/mine") == block, "what is unsaved is whole")
	}
	closed := func() bool { c := content("show"); return c.Clean == size && c.Unsaved == size }
	is := func(c control.CacheCopy, mounted bool, clean int64) {
		t.Helper()
		assert.True(t, c.Workspace == ops && c.Mounted == mounted && c.Clean == clean && c.Unsaved == size, "got", c, "want", clean, "bytes of copies, mounted:", mounted)
	}
	w.write("mnt/mine", block)
	read()
	eventually(t, "all is closed", closed)
	is(content("show", ops), true, size)
	is(content("clear", "mnt"), true, 0)
	read()
	eventually(t, "all is closed", closed)
	w.killed()
	is(content("clear", ops), false, 0)
	w.mount(ops, "mnt")
	read()
	w.ok("umount", "mnt")
	if c := content("show"); c.Clean != 2*size || c.Unsaved != 0 {
		t.Errorf("after all was sent there is %+v", c)
	}
	assert.Equal(t, content("clear").Freed, 2*size, "freed")
	assert.Contains(t, w.ok("cache", "show"), "are free on the disk of")
	w.mount(ops, "mnt")
	read()

	assert.Contains(t, w.ok("cache", "pin", "mnt/f"), "on the local disk: 1 file, 64.0 KiB")
	refused := func(want string, args ...string) {
		t.Helper()
		o := w.run(args...)
		assert.True(t, o.code == exit.Unresolvable && strings.Contains(o.errOut, want), args, o)
	}
	refused("nothing to pin", "cache", "pin", "mnt", "g")
	eventually(t, "only what is pinned stays", func() bool { return content("clear").Clean == size })
	w.ok("umount", "mnt")
	c := content("clear", ops)
	assert.True(t, c.Clean == size && len(c.Pins) == 1 && c.Pins[0] == "f", "while it is not mounted", c)
	w.mount(ops, "mnt")
	assert.Contains(t, w.ok("cache", "show"), "pinned      /f")
	w.ok("cache", "unpin", "mnt/f")
	refused("not pinned", "cache", "unpin", "mnt/f")
	assert.Equal(t, content("clear").Clean, 0, "what is pinned no more")
}

package main

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// What the store has too can be given up by hand, of what is mounted and of what is
// not, after a kill as well; what it lacks stays.
func TestCacheByHand(t *testing.T) {
	tier.RequireFUSE(t)
	w, r := newWorld(t), serve(t, false)
	addr := w.remoteWorkspace("ops", r, perTurn, "")
	block := strings.Repeat("x", 64<<10)
	assert.OK(t, r.Tamper(t.Context(), providers.MustLocator("f"), []byte(block)))
	content := func(args ...string) (c control.CacheCopy) {
		t.Helper()
		var res control.CacheResult
		if err := json.Unmarshal([]byte(w.ok(append(args, "--json")...)), &res); err != nil || len(res.Copies) != 1 {
			t.Fatalf("%v: %+v, %v", args, res, err)
		}
		return res.Copies[0]
	}
	read := func() {
		t.Helper()
		if got, err := os.ReadFile(w.path("mnt/f")); err != nil || string(got) != block {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
		if got, err := os.ReadFile(w.path("mnt/mine")); err != nil || string(got) != block {
			t.Errorf("of what is unsaved %d bytes are there, %v", len(got), err)
		}
	}
	is := func(c control.CacheCopy, mounted bool, clean int64) {
		t.Helper()
		if c.Workspace != addr || c.Mounted != mounted || c.Clean != clean || c.Unsaved != 64<<10 {
			t.Errorf("got %+v, want %d bytes of copies, mounted: %v", c, clean, mounted)
		}
	}
	w.mount(addr, "mnt")
	w.write("mnt/mine", block)
	read()
	eventually(t, "all is closed", func() bool { c := content("cache", "show"); return c.Clean > 0 && c.Unsaved > 0 })
	is(content("cache", "show", addr), true, 64<<10)
	is(content("cache", "clear"), true, 0)
	read()
	eventually(t, "all is closed", func() bool { c := content("cache", "show"); return c.Clean > 0 && c.Unsaved > 0 })
	syscall.Kill(w.status().PID, syscall.SIGKILL)
	eventually(t, "the daemon's end", func() bool { return w.status().State == control.Dead })
	is(content("cache", "clear", addr), false, 0)
	w.mount(addr, "mnt")
	read()
	assert.Equal(t, w.run("umount", "mnt").code, exit.Done, "umount")
	if c := content("cache", "show"); c.Clean != 128<<10 || c.Unsaved != 0 {
		t.Errorf("after all was sent there is %+v", c)
	}
	assert.Equal(t, content("cache", "clear").Freed, 128<<10, "freed")
	assert.Contains(t, w.ok("cache", "show"), "are free on the disk of")
	w.mount(addr, "mnt")
	read()
}

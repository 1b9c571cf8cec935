package crash

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/testrun"
)

// What was written to a local workspace is on the disk after a sync(2), as without a mount.
func TestSyncOfALocalWorkspace(t *testing.T) {
	t.Parallel()
	if !testrun.Private(t) {
		return
	}
	w := harness.New(t, harness.Options{})
	d := newDisk(t, w.Mkdir("ws-acme-x", 0o755), 64<<20)
	m := w.Mount(w.Workspace("@acme/x", "watch"))
	assert.OK(t, os.WriteFile(m.Dir+"/f", []byte("written"), 0o644))
	unix.Sync()
	d.Off()
	m.Kill()
	d.On()
	got, err := os.ReadFile(d.Dir + "/f")
	assert.True(t, err == nil && string(got) == "written", "brought to the disk:", string(got), err)
	m.Start()
}

package crash

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// What was written to a local workspace is on the disk after a sync(2), as without a mount,
// and not after a syncfs(2) of the mount, which the kernel does not pass on.
func TestSyncOfALocalWorkspace(t *testing.T) {
	t.Parallel()
	if !testrun.Private(t) {
		return
	}
	w := harness.New(t, harness.Options{})
	d := newDisk(t, w.Mkdir("ws-acme-x", 0o755), 64<<20)
	m := w.Mount(w.Workspace("@acme/x", "watch"))
	tier.Dirty(t, func() string {
		f := assert.Of(os.CreateTemp(m.Dir, "")).OK(t)
		_, err := f.WriteString("written")
		assert.OK(t, errors.Join(err, unix.Syncfs(int(f.Fd())), f.Close()))
		return filepath.Join(d.Dir, filepath.Base(f.Name()))
	})
	assert.OK(t, os.WriteFile(m.Dir+"/f", []byte("written"), 0o644))
	unix.Sync()
	d.Off()
	m.Kill()
	d.On()
	got, err := os.ReadFile(d.Dir + "/f")
	assert.True(t, err == nil && string(got) == "written", "brought to the disk:", string(got), err)
	m.Start()
}

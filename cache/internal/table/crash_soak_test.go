//go:build soak

package table

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// TestPowerCut: after a power cut under a real file system, the table is as it
// was after some commit, not before the last that was synced. Each cut mounts a disk,
// and TestPowerCutAnywhere cuts the power of a simulated one, so this is in make soak.
func TestPowerCut(t *testing.T) {
	image, mnt := filepath.Join(t.TempDir(), "image"), t.TempDir()
	needLoopMounts(t)
	run(t, "truncate", "-s", "64M", image)
	run(t, "mkfs.ext4", "-q", "-F", image)
	t.Cleanup(func() { // of a test that failed half way
		_ = exec.CommandContext(context.Background(), "umount", "-l", mnt).Run()
	})
	lost := 0
	for i := range 12 {
		run(t, "mount", "-o", "loop", image, mnt)
		c := startLoad(t, filepath.Join(mnt, "table"))
		c.reaches(c.first + 20 + i*37%400) // anywhere in the load
		// An fsync that is under way when ext4 is shut down may succeed and have
		// written nothing; where there is no power nobody hears of that.
		synced := int(c.synced.Load())
		shutdown(t, mnt)
		c.kill(t)
		run(t, "umount", mnt)
		run(t, "mount", "-o", "loop", image, mnt)
		lost += afterCut(t, filepath.Join(mnt, "table"), c, synced, i)
		run(t, "umount", mnt)
		if t.Failed() {
			return
		}
	}
	assert.False(t, lost == 0, "no cut lost anything: these were no power cuts")
}

// afterCut verifies, and gives the number of steps that were lost.
func afterCut(t *testing.T, dir string, c *child, synced, cut int) int {
	t.Helper()
	tab := open(t, dir, Options{BootID: fmt.Sprint("after cut ", cut)})
	if s := tab.Session(); !s.PowerLost() {
		t.Errorf("after a power cut the session ended as %+v", s)
	}
	n, err := verify(tab)
	if err != nil || n < synced || n > c.committed+1 {
		t.Errorf("cut %d: %d commits are there, %d were synced, %d returned: %v", cut, n, synced, c.committed, err)
	}
	assert.Is(t, tab.Close(), nil)
	return max(0, c.committed-n)
}

// shutdown stops the file system as a power cut does: what is not on the disk
// never will be.
func shutdown(t *testing.T, mnt string) {
	t.Helper()
	const ext4Shutdown, noLogFlush = 0x8004587d, 2
	f, err := os.Open(mnt)
	assert.OK(t, err)
	defer f.Close()
	assert.OK(t, unix.IoctlSetPointerInt(int(f.Fd()), ext4Shutdown, noLogFlush))
}

func needLoopMounts(t *testing.T) {
	t.Helper()
	tier.RequireRoot(t)
	tier.RequireTools(t, "mkfs.ext4")
	_, err := os.Stat("/dev/loop-control")
	tier.Require(t, "loop devices", err == nil)
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(context.Background(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

package mountpoint

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

func TestElsewhere(t *testing.T) {
	tier.RequireRoot(t)
	dir := t.TempDir()
	cmd := exec.Command("unshare", "-m", "--propagation", "private", "sh", "-c", `umount -a -i -l -t fuse.wsmount; mount -t tmpfs x "$0" && echo && exec cat`, dir)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	assert.OK(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	_, err := bufio.NewReader(out).ReadString('\n')
	tier.Require(t, "a mount namespace", err == nil)
	b := assert.Of(os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", cmd.Process.Pid))).OK(t)
	table := assert.Of(parseTable(strings.NewReader(string(b)))).OK(t)
	m, ok := table.At(dir)
	assert.Must(t, ok, "the namespace has no mount at", dir)
	got := Elsewhere(m.Dev)
	assert.True(t, len(got) == 1 && got[0].PID == cmd.Process.Pid && strings.Contains(got[0].Uses[0], dir), "got", got, "want process", cmd.Process.Pid, "with", dir)
	root, _ := table.At("/")
	for _, h := range Elsewhere(root.Dev) {
		assert.False(t, h.PID == os.Getpid(), "a process of this namespace is elsewhere")
	}
	assert.Equal(t, len(Elsewhere("0:0")), 0, "a file system that is nowhere")
}

func TestTableShows(t *testing.T) {
	table := Table{{Path: "/m", Dev: "0:5", Type: FSType}, {Path: "/m", Dev: "0:6", Type: FSType}, {Path: "/n", Dev: "0:7", Type: "tmpfs"}}
	for _, tt := range []struct {
		path, dev string
		want      bool
	}{
		{"/m", "0:6", true}, {"/m", "", true}, {"/m", "0:5", false}, {"/n", "0:7", false}, {"/x", "", false},
	} {
		assert.Equal(t, table.Shows(tt.path, tt.dev), tt.want, tt.path, "with device", tt.dev)
	}
}

package integration

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/tier"
)

// unitValue is what the last line of the unit says of a key.
func unitValue(t *testing.T, key string) (value string) {
	t.Helper()
	for line := range strings.Lines(readFile(t, "example/wsmount@.service")) {
		if v, ok := strings.CutPrefix(line, key+"="); ok {
			value = strings.TrimSpace(v)
		}
	}
	return value
}

// A systemd stands in for the program of that name, as far as the unit needs it.
type systemd struct {
	t    *testing.T
	sock *net.UnixConn
	cmd  *exec.Cmd
	said strings.Builder
}

// start runs the unit's command with the variables of its file and of no user.
func startUnit(t *testing.T, w *harness.World, variables map[string]string) *systemd {
	t.Helper()
	path := w.Path("notify")
	os.Remove(path)
	sock := assert.Of(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})).OK(t, "listen")
	t.Cleanup(func() { sock.Close() })
	s := &systemd{t: t, sock: sock}
	words := strings.Fields(os.Expand(unitValue(t, "ExecStart"), func(name string) string { return variables[name] }))
	ctx, cancel := context.WithTimeout(context.Background(), harness.Hangs)
	t.Cleanup(cancel)
	s.cmd = w.Command(ctx, harness.Binary(), words[1:]...)
	s.cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "NOTIFY_SOCKET=" + path,
		"WSMOUNT_STATE_DIR=" + w.Path("state"), "WSMOUNT_CONFIG=" + w.Path("config/wsmount/config.yaml")}
	s.cmd.Dir, s.cmd.Stderr = "/", &s.said
	assert.OK(t, s.cmd.Start(), "start")
	return s
}

func (s *systemd) hears(want string) {
	s.t.Helper()
	b := make([]byte, 100)
	s.sock.SetReadDeadline(time.Now().Add(harness.Hangs))
	if n, err := s.sock.Read(b); err != nil || string(b[:n]) != want {
		s.t.Fatalf("got %q, %v, want %s\n%s", b[:n], err, want, &s.said)
	}
}

// ends waits for the end of what was told to stop.
func (s *systemd) ends(code int) {
	s.t.Helper()
	s.cmd.Wait()
	assert.Equal(s.t, s.cmd.ProcessState.ExitCode(), code, "the exit code", &s.said)
}

// The unit is ready when the mount is there, says when it stops, and ends by itself,
// for which systemd leaves it time: when programs stay in the mount, too.
func TestUnit(t *testing.T) {
	t.Parallel()
	tier.RequireRoot(t)
	stop := assert.Of(time.ParseDuration(strings.TrimPrefix(unitValue(t, "Environment"), "STOP_TIMEOUT="))).OK(t, "STOP_TIMEOUT")
	limit := assert.Of(time.ParseDuration(unitValue(t, "TimeoutStopSec"))).OK(t)
	assert.True(t, limit >= stop+10*time.Second && unitValue(t, "Type") == "notify", "systemd waits", limit, "and wsmount", stop)
	for name, code := range map[string]int{"idle": 0, "in use": 1} {
		t.Run(name, func(t *testing.T) {
			w := harness.New(t, harness.Options{Config: "{}\n"})
			dir, mnt := w.Workspace("@acme/app", ""), w.Mkdir("mnt", 0o755)
			s := startUnit(t, w, map[string]string{"WORKSPACE": dir, "MOUNTPOINT": mnt, "STOP_TIMEOUT": map[int]string{0: "2m", 1: "300ms"}[code]})
			s.hears("READY=1")
			assert.Is(t, assert.ErrOf(os.Stat(mnt+"/WORKSPACE.md")), nil, "it is ready, and not mounted")
			if code != 0 {
				f := assert.Of(os.Open(mnt+"/WORKSPACE.md")).OK(t, "open")
				defer f.Close()
			}
			assert.Is(t, s.cmd.Process.Signal(syscall.SIGTERM), nil, "stop")
			s.hears("STOPPING=1")
			s.ends(code)
			assert.Is(t, assert.ErrOf(os.Stat(mnt+"/WORKSPACE.md")), os.ErrNotExist, "it has ended, and something is mounted")
		})
	}
}

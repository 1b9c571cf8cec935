package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/internal/harness"
)

// A sharedTree is a directory of the host that has mount points, shown to sandboxes.
type sharedTree struct {
	t   *testing.T
	w   *harness.World
	dir string // a shared mount, as all are where systemd runs
	app string // in it
}

func newSharedTree(t *testing.T) *sharedTree {
	t.Helper()
	w := harness.New(t, harness.Options{})
	s := &sharedTree{t: t, w: w, dir: w.Mkdir("tree", 0o755), app: w.Mkdir("tree/app", 0o755)}
	checkErr(t, "bind", unix.Mount(s.dir, s.dir, "", unix.MS_BIND, ""), nil)
	checkErr(t, "share", unix.Mount("", s.dir, "", unix.MS_SHARED, ""), nil)
	t.Cleanup(func() { checkErr(t, "unmount", unix.Unmount(s.dir, unix.MNT_DETACH), nil) })
	for _, slug := range []string{"app", "lib"} {
		dir := w.Workspace("@acme/"+slug, "")
		w.Write("ws-acme-"+slug+"/f", slug+"\n", 0o644)
		checkErr(t, "chown", os.Chown(dir, userID, userID), nil)
		w.MustRun("registry", "add", dir)
	}
	return s
}

// mount mounts @acme/app with @acme/lib in it, for every user of the host.
func (s *sharedTree) mount() {
	s.t.Helper()
	s.w.MustRun("mount", "@acme/app", s.app, "--allow-other", "--mount", "at=/lib,source=@acme/lib")
}

// kill ends the daemon as a crash would.
func (s *sharedTree) kill() {
	s.t.Helper()
	var status struct{ PID int }
	checkErr(s.t, "status", json.Unmarshal([]byte(s.w.MustRun("status", "--json", s.app)), &status), nil)
	checkErr(s.t, "kill", syscall.Kill(status.PID, syscall.SIGKILL), nil)
	harness.Eventually(s.t, 20*time.Second, "the daemon ends", func() bool {
		_, err := os.Stat(s.app)
		return err != nil
	})
}

// An inside is a shell in a sandbox, which does one line after the other.
type inside struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

// A sandboxKind is one way to start a command that sees only a tree, as an ordinary user.
type sandboxKind struct {
	name    string
	command func(t *testing.T, w *harness.World, ctx context.Context, tree string, words ...string) *exec.Cmd
}

var sandboxKinds = []sandboxKind{
	{"bwrap", func(t *testing.T, w *harness.World, ctx context.Context, tree string, words ...string) *exec.Cmd {
		harness.RequireTools(t, "bwrap")
		script := w.Write("bwrap.sh", readFile(t, "example/bwrap.sh"), 0o755)
		cmd := w.Command(ctx, script, append([]string{tree}, words...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: userID, Gid: userID}}
		return cmd
	}},
	{"podman", func(t *testing.T, w *harness.World, ctx context.Context, tree string, words ...string) *exec.Cmd {
		if _, err := exec.LookPath("podman"); err != nil {
			t.Skip("podman is not installed")
		}
		script := w.Write("podman.sh", readFile(t, "example/podman.sh"), 0o755)
		cmd := w.Command(ctx, script, append([]string{tree}, words...)...)
		cmd.Env = append(cmd.Env, podmanHome(t, w)...)
		cmd.Env = append(cmd.Env, fmt.Sprintf("AS=%d:%d", userID, userID))
		return cmd
	}},
}

// podmanHome keeps all that podman has in the world. It lets it find control groups
// of one version, since crun refuses a machine that has both, and ask for no more
// files and processes than a root without all capabilities can have.
func podmanHome(t *testing.T, w *harness.World) []string {
	t.Helper()
	var fs unix.Statfs_t
	checkErr(t, "statfs", unix.Statfs("/sys/fs/cgroup", &fs), nil)
	if fs.Type != unix.CGROUP2_SUPER_MAGIC {
		checkErr(t, "control groups", unix.Mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, ""), nil)
		t.Cleanup(func() { unix.Unmount("/sys/fs/cgroup", 0) })
	}
	dir := w.Mkdir("podman", 0o700)
	return []string{
		"CONTAINERS_CONF=" + w.Write("podman/containers.conf", fmt.Sprintf("[containers]\ndefault_ulimits = [\"nofile=1024:4096\", \"nproc=1024:4096\"]\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\nruntime = \"crun\"\ntmp_dir = %q\n", dir+"/tmp"), 0o600),
		"CONTAINERS_STORAGE_CONF=" + w.Write("podman/storage.conf", fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n", dir+"/graph", dir+"/run"), 0o600),
	}
}

// enter starts a shell in a sandbox that sees a tree at its working directory.
func (s *sharedTree) enter(kind sandboxKind, tree string) *inside {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := kind.command(s.t, s.w, ctx, tree, "sh", "-c", `while read -r line; do eval "$line" 2>&1; echo "=$?"; done`)
	in, err := cmd.StdinPipe()
	checkErr(s.t, "pipe", err, nil)
	out, err := cmd.StdoutPipe()
	checkErr(s.t, "pipe", err, nil)
	cmd.Stderr = os.Stderr
	checkErr(s.t, "start", cmd.Start(), nil)
	s.t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("the sandbox ended with %v", err)
		}
		cancel()
	})
	return &inside{s.t, in, bufio.NewReader(out)}
}

// want runs a line, which must say something and end with a status.
func (i *inside) want(line, says, code string) {
	i.t.Helper()
	fmt.Fprintln(i.in, line)
	var said strings.Builder
	for {
		got, err := i.out.ReadString('\n')
		if err != nil {
			i.t.Fatalf("%s: %v after %q", line, err, &said)
		}
		if status, is := strings.CutPrefix(got, "="); is {
			if strings.TrimSpace(status) != code || !strings.Contains(said.String(), says) {
				i.t.Errorf("%s: status %s with %q, want %s with %q", line, strings.TrimSpace(status), &said, code, says)
			}
			return
		}
		said.WriteString(got)
	}
}

const notConnected = "Transport endpoint is not connected"

// An ordinary user in a sandbox that shows the directory of the mount points works
// in a workspace and in those mounted in it. When wsmount dies, what is there
// answers ENOTCONN; when it is mounted again, or somewhere else, that appears inside.
func TestSharedTree(t *testing.T) {
	if !harness.Private(t) {
		return
	}
	for _, kind := range sandboxKinds {
		t.Run(kind.name, func(t *testing.T) {
			s := newSharedTree(t)
			s.mount()
			in := s.enter(kind, s.dir)
			in.want("id -u", itoa(userID)+"\n", "0")
			in.want("cat app/f app/lib/f", "app\nlib\n", "0")
			in.want("echo x >app/new && echo y >app/lib/new", "", "0")
			checkContent(t, s.w.Path("ws-acme-app/new"), "x\n")
			checkContent(t, s.w.Path("ws-acme-lib/new"), "y\n")
			in.want("cd app", "", "0")
			s.kill()
			in.want("cat f", notConnected, "1")
			in.want("cat /workspace/app/lib/f", notConnected, "1")
			s.mount()
			in.want("cat f", notConnected, "1") // where it stands is what it entered
			in.want("cd /workspace/app && cat f lib/f", "app\nlib\n", "0")
			in.want("cd /workspace", "", "0")

			s.w.MustRun("umount", s.app)
			in.want("ls app", "", "0")
			other := s.w.Mkdir("tree/other", 0o755)
			s.w.MustRun("mount", "@acme/lib", other, "--allow-other")
			in.want("cat other/f", "lib\n", "0")
			s.w.MustRun("umount", other)
		})
	}
}

// Of a sandbox that shows the mount itself, the mount that comes after a crash is
// out of reach: it is started anew.
func TestBoundMount(t *testing.T) {
	if !harness.Private(t) {
		return
	}
	for _, kind := range sandboxKinds {
		t.Run(kind.name, func(t *testing.T) {
			s := newSharedTree(t)
			s.mount()
			in := s.enter(kind, s.app)
			in.want("cat f lib/f", "app\nlib\n", "0")
			s.kill()
			in.want("cat f", notConnected, "1")
			s.mount()
			in.want("cat /workspace/f", notConnected, "1")
			s.enter(kind, s.app).want("cat f lib/f", "app\nlib\n", "0")
			t.Cleanup(func() { s.w.MustRun("umount", "--timeout", "20s", s.app) })
		})
	}
}

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
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// A sharedTree is a directory of the host that has mount points, shown to sandboxes.
type sharedTree struct {
	t   *testing.T
	w   *harness.World
	dir string // a shared mount, as all are where systemd runs
	app string // in it

	command func(ctx context.Context, tree string, words ...string) *exec.Cmd // in a sandbox
}

func newSharedTree(t *testing.T, kind sandboxKind) *sharedTree {
	t.Helper()
	kind.require(t)
	w := harness.New(t, harness.Options{})
	s := &sharedTree{t: t, w: w, dir: w.Mkdir("tree", 0o755), app: w.Mkdir("tree/app", 0o755)}
	assert.Is(t, unix.Mount(s.dir, s.dir, "", unix.MS_BIND, ""), nil, "bind")
	assert.Is(t, unix.Mount("", s.dir, "", unix.MS_SHARED, ""), nil, "share")
	t.Cleanup(func() { assert.Is(t, unix.Unmount(s.dir, unix.MNT_DETACH), nil, "unmount") })
	for _, slug := range []string{"app", "lib"} {
		dir := w.Workspace("@acme/"+slug, "")
		w.Write("ws-acme-"+slug+"/f", slug+"\n", 0o644)
		assert.Is(t, os.Chown(dir, userID, userID), nil, "chown")
		w.MustRun("registry", "add", dir)
	}
	s.command = kind.prepare(t, w, userID)
	return s
}

// inSandboxes runs a test for each kind of sandbox, with the tree mounted.
func inSandboxes(t *testing.T, test func(t *testing.T, s *sharedTree)) {
	t.Helper()
	if !testrun.Private(t) {
		return
	}
	for _, kind := range sandboxKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			s := newSharedTree(t, kind)
			s.mount()
			test(t, s)
		})
	}
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
	harness.Eventually(s.t, "the daemon ends", func() bool { return !testrun.Alive(status.PID) })
}

// An inside is a shell in a sandbox, which does one line after the other.
type inside struct {
	t     *testing.T
	in    io.Writer
	out   *bufio.Reader
	leave func() // ends the sandbox
}

// A sandboxKind is one way to start a command that sees only a tree, as an ordinary user.
type sandboxKind struct {
	name   string
	script string // of the examples, and the name of its tool
	uid    uint32 // who starts it
}

var sandboxKinds = []sandboxKind{
	{"bwrap", "bwrap", userID},
	{"podman of root", "podman", 0},
	{"podman of a user", "podman", userID},
}

func (k sandboxKind) require(t *testing.T) {
	t.Helper()
	tier.RequireTools(t, k.script)
	if k.script == "podman" {
		tier.RequireTools(t, "crun")
	}
}

// prepare returns how commands are started in a world; where root may choose, as a user.
func (k sandboxKind) prepare(t *testing.T, w *harness.World, as uint32) func(ctx context.Context, tree string, words ...string) *exec.Cmd {
	t.Helper()
	script := w.Write(k.script+".sh", readFile(t, "example/"+k.script+".sh"), 0o755)
	dir := testrun.InMemory(t) // podman cannot clean up after itself in a directory of over 50 characters, and syncs its database time and again
	t.Cleanup(func() { assert.Is(t, os.RemoveAll(dir), nil, "remove") })
	assert.Is(t, os.Chown(dir, int(k.uid), int(k.uid)), nil, "chown")
	env := []string{"HOME=" + dir, "TMPDIR=" + dir, fmt.Sprintf("AS=%d:%d", as, as)}
	if k.uid != 0 {
		env = env[:2]
	}
	command := func(ctx context.Context, name string, args ...string) *exec.Cmd {
		cmd := w.Command(ctx, name, args...)
		cmd.Env = append(cmd.Env, env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: k.uid, Gid: k.uid}}
		return cmd
	}
	if k.script == "podman" {
		env = append(env, podmanHome(t, w, dir)...)
		t.Cleanup(func() { // the process that keeps a user's namespaces
			out, err := command(context.Background(), "podman", "system", "migrate").CombinedOutput()
			assert.True(t, err == nil, "podman system migrate", out, err)
		})
	}
	return func(ctx context.Context, tree string, words ...string) *exec.Cmd {
		return command(ctx, script, append([]string{tree}, words...)...)
	}
}

// controlGroups has those of version 2, until the end of this process, which has its
// mounts to itself.
var controlGroups = sync.OnceValue(func() error {
	var fs unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &fs); err != nil || fs.Type == unix.CGROUP2_SUPER_MAGIC {
		return err
	}
	return unix.Mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, "")
})

// podmanHome keeps all that podman has in a directory, its locks too, which else all of the
// machine share. It lets it find control groups
// of one version, since crun refuses a machine that has both, and ask for no more
// files and processes than a root without all capabilities can have.
func podmanHome(t *testing.T, w *harness.World, dir string) []string {
	t.Helper()
	assert.Is(t, controlGroups(), nil, "control groups")
	return []string{
		"XDG_RUNTIME_DIR=" + dir, "XDG_CONFIG_HOME=" + dir,
		"CONTAINERS_CONF=" + w.Write("containers.conf", fmt.Sprintf("[containers]\ndefault_ulimits = [\"nofile=1024:4096\", \"nproc=1024:4096\"]\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\nlock_type = \"file\"\nruntime = \"crun\"\ntmp_dir = %q\n", dir+"/tmp"), 0o644),
		"CONTAINERS_STORAGE_CONF=" + w.Write("storage.conf", fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrootless_storage_path = %q\nrunroot = %q\n", dir+"/graph", dir+"/graph", dir+"/run"), 0o644),
	}
}

// enter starts a shell in a sandbox that sees a tree at its working directory.
func (s *sharedTree) enter(tree string) *inside {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), harness.Hangs)
	cmd := s.command(ctx, tree, "sh", "-c", `while read -r line; do eval "$line" 2>&1; echo "=$?"; done`)
	in := assert.Of(cmd.StdinPipe()).OK(s.t, "pipe")
	out := assert.Of(cmd.StdoutPipe()).OK(s.t, "pipe")
	cmd.Stderr = os.Stderr
	assert.OK(s.t, cmd.Start(), "start")
	leave := sync.OnceFunc(func() {
		in.Close()
		assert.Is(s.t, cmd.Wait(), nil, "the sandbox ended")
		cancel()
	})
	s.t.Cleanup(leave)
	return &inside{s.t, in, bufio.NewReader(out), leave}
}

// want runs a line, which must say something and end with a status.
func (i *inside) want(line, says, code string) {
	i.t.Helper()
	fmt.Fprintln(i.in, line)
	var said strings.Builder
	for {
		got := assert.Of(i.out.ReadString('\n')).OK(i.t, line, "after", &said)
		if status, is := strings.CutPrefix(got, "="); is {
			if strings.TrimSpace(status) != code || !strings.Contains(said.String(), says) {
				i.t.Errorf("%s: status %s with %q, want %s with %q", line, strings.TrimSpace(status), &said, code, says)
			}
			return
		}
		said.WriteString(got)
	}
}

// came looks at a file that the user of a sandbox wrote.
func (s *sharedTree) came(path, text string) {
	s.t.Helper()
	checkContent(s.t, s.w.Path(path), text)
	var st unix.Stat_t
	assert.Is(s.t, unix.Stat(s.w.Path(path), &st), nil, "stat")
	assert.True(s.t, st.Uid == userID && st.Gid == userID, path, "belongs to", st.Uid, st.Gid)
}

const notConnected = "Transport endpoint is not connected"

// An ordinary user in a sandbox that shows the directory of the mount points works
// in a workspace and in those mounted in it. When wsmount dies, what is there
// answers ENOTCONN; when it is mounted again, or somewhere else, that appears inside.
func TestSharedTree(t *testing.T) {
	t.Parallel()
	inSandboxes(t, func(t *testing.T, s *sharedTree) {
		in := s.enter(s.dir)
		in.want("id -u", itoa(userID)+"\n", "0")
		in.want("cat app/f app/lib/f", "app\nlib\n", "0")
		in.want("echo x >app/new && echo y >app/lib/new", "", "0")
		s.came("ws-acme-app/new", "x\n")
		s.came("ws-acme-lib/new", "y\n")
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

// Of a sandbox that shows the mount itself, the mount that comes after a crash is
// out of reach: it is started anew.
func TestBoundMount(t *testing.T) {
	t.Parallel()
	inSandboxes(t, func(t *testing.T, s *sharedTree) {
		in := s.enter(s.app)
		in.want("cat f lib/f", "app\nlib\n", "0")
		s.kill()
		in.want("cat f", notConnected, "1")
		s.mount()
		in.want("cat /workspace/f", notConnected, "1")
		anew := s.enter(s.app)
		anew.want("cat f lib/f", "app\nlib\n", "0")
		in.leave()
		anew.leave()
		s.w.MustRun("umount", "--timeout", "2m", s.app)
	})
}

// Who works in a mount in a sandbox keeps it from being unmounted, and is named. Once
// the sandbox has ended nothing does, what podman keeps of a user included.
func TestSandboxEnds(t *testing.T) {
	t.Parallel()
	inSandboxes(t, func(t *testing.T, s *sharedTree) {
		in := s.enter(s.dir)
		in.want("cd app/lib && exec 3<f && cat <&3", "lib\n", "0")
		if r := s.w.Run("umount", s.app); r.Code != 1 || !contains(r.Out+r.Err, "is in use", "sh (pid ", "working directory: lib", "open: lib/f") {
			t.Errorf("umount while a sandbox works in it: exit %d\n%s%s", r.Code, r.Out, r.Err)
		}
		in.leave()
		s.w.MustRun("umount", "--timeout", "2m", s.app)
		assert.Equal(t, len(assert.Of(os.ReadDir(s.app)).OK(t)), 0, "after umount there are")
	})
}

package integration

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/integration/memoryserver"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers/memory"
)

// A packageStage is a machine on which the program is installed. What is
// changed on its disks lies in memory, and only this process and what it starts
// sees it.
type packageStage struct {
	t   *testing.T
	w   *harness.World
	dir string // in memory
	mnt string
}

// A stageTest is a test of what is installed. Where they share the machine, each leaves
// nothing mounted.
type stageTest struct {
	name string
	test func(p *packageStage)
}

// helped are the tests of what mount(8) and umount(8) run.
var helped = []stageTest{
	{"mount and umount", (*packageStage).mountAndUmount},
	{"exit codes", (*packageStage).exitCodes},
	{"umount sends first", (*packageStage).umountSends},
	{"fstab", (*packageStage).fstab},
	{"users", (*packageStage).users},
	{"namespace", (*packageStage).namespace},
}

// mount(8) and umount(8) find the program under the names that a package installs. Each
// test has a machine of its own.
func TestMountHelper(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "mount", "findmnt")
	for i, tt := range helped {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if !testrun.Private(t) {
				return
			}
			p := newOverlay(t)
			program := assert.Of(os.ReadFile(harness.Binary())).OK(t, "read")
			assert.Is(t, os.WriteFile("/usr/bin/wsmount", program, 0o755), nil, "install")
			for _, name := range []string{"mount.wsmount", "mount.fuse.wsmount", "umount.wsmount", "umount.fuse.wsmount"} {
				assert.Is(t, os.Symlink("../bin/wsmount", "/usr/sbin/"+name), nil, "install")
			}
			p.notes()
			p.each(helped[i : i+1])
		})
	}
}

// newOverlay is a machine on which nothing is installed yet.
func newOverlay(t *testing.T) *packageStage {
	t.Helper()
	w := harness.New(t, harness.Options{})
	p := &packageStage{t: t, w: w, dir: w.Mkdir("over", 0o755), mnt: w.Mkdir("mnt", 0o755)}
	p.overlay("/usr", "/etc", "/run", "/var/cache", "/var/lib", "/var/log")
	return p
}

// notes registers the workspace that the tests mount.
func (p *packageStage) notes() {
	p.t.Helper()
	p.w.Workspace("@acme/notes", "watch")
	p.w.MustRun("registry", "add", p.w.Path("ws-acme-notes"))
}

// each runs tests one after the other.
func (p *packageStage) each(tests []stageTest) {
	p.t.Helper()
	for _, tt := range tests {
		p.t.Run(tt.name, func(t *testing.T) {
			stage := *p
			stage.t = t
			tt.test(&stage)
			left := stage.mounted()
			assert.Must(t, len(left) == 0, "it left", left, "mounted")
		})
	}
}

// overlay keeps what is changed in directories of the machine in memory.
func (p *packageStage) overlay(dirs ...string) {
	p.t.Helper()
	mounted := func(source, dir, kind, data string) {
		p.t.Helper()
		assert.Is(p.t, syscall.Mount(source, dir, kind, 0, data), nil, "mount "+dir)
		p.t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	}
	mounted("none", p.dir, "tmpfs", "mode=755")
	for i, dir := range dirs {
		upper, work := filepath.Join(p.dir, "upper"+itoa(i)), filepath.Join(p.dir, "work"+itoa(i))
		assert.Is(p.t, os.Mkdir(upper, 0o755), nil, "mkdir")
		assert.Is(p.t, os.Mkdir(work, 0o755), nil, "mkdir")
		mounted("none", dir, "overlay", "lowerdir="+dir+",upperdir="+upper+",workdir="+work)
	}
}

// run runs a program of the machine, which must end with a code and say something.
func (p *packageStage) run(says string, code int, name string, args ...string) string {
	p.t.Helper()
	return p.ends(p.w.Command(p.t.Context(), name, args...), says, code)
}

func (p *packageStage) ends(cmd *exec.Cmd, says string, code int) string {
	p.t.Helper()
	out, _ := cmd.CombinedOutput()
	got := cmd.ProcessState.ExitCode()
	assert.True(p.t, got == code && strings.Contains(string(out), says), cmd.Args, "exit", got, "want", code, "and", says, out)
	return string(out)
}

// mounted are the mount points of workspaces that this test made.
func (p *packageStage) mounted() []string {
	p.t.Helper()
	var found []string
	for line := range strings.Lines(readFile(p.t, "/proc/mounts")) {
		if fields := strings.Fields(line); fields[2] == "fuse.wsmount" && strings.HasPrefix(fields[1], p.w.Dir) {
			found = append(found, fields[1])
		}
	}
	return found
}

// shows checks what the mount table says of a mount point.
func (p *packageStage) shows(dir, want string) {
	p.t.Helper()
	out, _ := p.w.Command(p.t.Context(), "findmnt", "-nro", "SOURCE,FSTYPE,OPTIONS", "--mountpoint", dir).CombinedOutput()
	got := string(out)
	assert.True(p.t, strings.HasPrefix(got, want) && (want != "" || got == ""), dir, "the mount table has", got, "want", want)
}

// ended says whether the daemons of a mount point have.
func (p *packageStage) ended(dir string) bool {
	p.t.Helper()
	return !strings.Contains(p.w.MustRun("status", "--json"), `"`+dir+`"`)
}

// idle checks that umount(8) has waited until the daemon ended.
func (p *packageStage) idle(dir string) {
	p.t.Helper()
	if !p.ended(dir) {
		p.t.Errorf("after umount there is still\n%s", p.w.MustRun("status"))
	}
}

// Both types are mounted, and umount(8) leaves it to the program, which has ended
// when umount has.
func (p *packageStage) mountAndUmount() {
	for _, kind := range []string{"wsmount", "fuse.wsmount"} {
		p.run("", 0, "mount", "-t", kind, "-o", "ro,noexec", "@acme/notes", p.mnt)
		p.shows(p.mnt, "@acme/notes fuse.wsmount ro,nosuid,nodev,noexec")
		p.run("cannot be remounted", 1, "mount", "-o", "remount,rw", p.mnt)
		p.run("", 0, "umount", p.mnt)
		p.shows(p.mnt, "")
		p.idle(p.mnt)
	}
	p.run("", 0, "mount", "-t", "wsmount", "@acme/notes", p.mnt)
	f := assert.Of(os.Open(p.mnt+"/WORKSPACE.md")).OK(p.t, "open")
	defer f.Close()
	p.run("wsmount: "+p.mnt+" is in use: 1 file is open", 32, "umount", p.mnt)
	p.run("", 0, "umount", "-l", p.mnt)
	p.shows(p.mnt, "")
	f.Close()
	harness.Eventually(p.t, "the lazy mount ends", func() bool {
		return p.ended(p.mnt)
	})
}

func (p *packageStage) exitCodes() {
	mount := func(says string, code int, args ...string) {
		p.t.Helper()
		p.run(says, code, "mount", append([]string{"-t", "wsmount"}, args...)...)
	}
	mount("unknown option -o quux", 1, "-o", "quux", "@acme/notes", p.mnt)
	mount("@acme/nobody", 32, "@acme/nobody", p.mnt)
	mount("", 0, "--fake", "@acme/notes", p.mnt)
	p.shows(p.mnt, "")
	mount("", 0, "-s", "-o", "quux", "@acme/notes", p.mnt)
	mount("already mounted: @acme/notes", 32, "@acme/notes", p.mnt)
	p.run("", 0, "umount", "-f", p.mnt)
	p.shows(p.mnt, "")
	p.run("not mounted", 32, "umount", p.mnt)
}

// umount returns when the store has everything. umount -f does not wait, and
// fails with where the rest is.
func (p *packageStage) umountSends() {
	socket := filepath.Join(p.w.Mkdir("service", 0o700), "s")
	l := assert.Of(net.Listen("unix", socket)).OK(p.t, "listen")
	assert.Is(p.t, os.Chmod(socket, 0o600), nil, "chmod")
	server := memoryserver.ServeRemote(l, memoryrepo.NewRemote(nil), memory.Options{})
	p.t.Cleanup(func() { server.Close() })
	p.w.Write("config/wsmount/config.yaml", "allow_paths: [ "+filepath.Dir(socket)+" ]\n", 0o600)
	const sync = "storage: {inline: {provider: memory, config: {clone: a, branch: main, socket: %}, " +
		"sync: {mode: pull-push, pull: {on: turn-start}, commit: {on: write, batch_window_ms: 600000}, push: {on: per-commit}}}}\n"
	dir := p.w.Mkdir("ws-later", 0o755)
	p.w.Write("ws-later/WORKSPACE.md", harness.Manifest("@acme/later", strings.Replace(sync, "%", socket, 1)), 0o644)
	p.w.MustRun("registry", "add", dir)
	c := assert.Of(memoryserver.DialCloneControl(p.t.Context(), "unix", socket, "a", "main")).OK(p.t, "dial")
	for _, tt := range []struct {
		file, flag, says string
		code             int
		sent             bool
	}{
		{"sent", "-v", "", 0, true},
		{"kept", "-f", "is unmounted, and", 32, false},
	} {
		p.run("", 0, "mount", "-t", "wsmount", "@acme/later", p.mnt)
		assert.Is(p.t, os.WriteFile(p.mnt+"/"+tt.file, nil, 0o644), nil, "write")
		if !tt.sent { // or it might be, before the daemon ends; a commit may be made still
			assert.Is(p.t, c.Cut(p.t.Context(), true), nil, "cut")
		}
		p.run(tt.says, tt.code, "umount", tt.flag, p.mnt)
		p.shows(p.mnt, "")
		assert.Is(p.t, c.Connect(p.t.Context()), nil, "connect")
		all, err := c.Dump(p.t.Context())
		assert.True(p.t, err == nil && strings.Contains(strings.Join(all, "\n"), `"`+tt.file+`"`) == tt.sent, "umount", tt.flag, "the store has", all, err)
	}
}

// A line of fstab is all that mount and umount need, and mount -a knows what is
// mounted.
func (p *packageStage) fstab() {
	other := p.w.Mkdir("mnt other", 0o755)
	ws := p.w.Path("ws-acme-notes")
	assert.Is(p.t, os.WriteFile("/etc/fstab", []byte(
		"@acme/notes "+p.mnt+" wsmount ro,noauto,nofail,_netdev,x-systemd.automount 0 0\n"+
			ws+" "+strings.ReplaceAll(other, " ", `\040`)+" wsmount state-dir="+p.w.Path("other-state")+" 0 0\n"), 0o644), nil, "fstab")
	p.run("0 parse errors, 0 errors", 0, "findmnt", "--verify")
	p.run("", 0, "mount", p.mnt)
	p.shows(p.mnt, "@acme/notes fuse.wsmount ro,")
	p.run("", 0, "umount", p.mnt)
	p.idle(p.mnt)

	p.run("", 0, "mount", "-a")
	p.run("", 0, "mount", "-a")
	p.shows(p.mnt, "")
	p.shows(other, ws+" fuse.wsmount rw,")
	f := assert.Of(os.Open(other+"/WORKSPACE.md")).OK(p.t, "open")
	defer f.Close()
	umount := func(says string, code int) {
		p.t.Helper()
		cmd := p.w.Command(p.t.Context(), "umount", other)
		cmd.Env = append(cmd.Env, "WSMOUNT_STATE_DIR=")
		p.ends(cmd, says, code)
	}
	umount("1 file is open", 32) // which only the daemon knows, and only that state directory leads to it
	f.Close()
	umount("", 0)
	p.shows(other, "")
}

// A user mounts and unmounts what fstab says, as that user, with a bare
// environment; another one cannot.
func (p *packageStage) users() {
	const uid, otherID = 1234, 1235
	assert.Is(p.t, appendTo("/etc/passwd", "one:x:1234:1234::"+p.w.Path("one")+":/bin/sh\nother:x:1235:1235::/:/bin/sh\n"), nil, "users")
	for _, dir := range []string{"one", "one/mnt", "one/ws"} {
		p.w.Mkdir(dir, 0o755)
	}
	p.w.Write("one/ws/WORKSPACE.md", harness.Manifest("@one/ws", "storage: {inline: {provider: local-fs, config: {mount_path: "+p.w.Path("one/ws")+"}}}\n"), 0o644)
	assert.Is(p.t, exec.Command("chown", "-R", "1234:1234", p.w.Path("one")).Run(), nil, "own")
	mnt := p.w.Path("one/mnt")
	assert.Is(p.t, os.WriteFile("/etc/fstab", []byte(p.w.Path("one/ws")+" "+mnt+" wsmount user,noauto 0 0\n"), 0o644), nil, "fstab")
	as := func(uid uint32, says string, code int, args ...string) {
		p.t.Helper()
		cmd := p.w.Command(p.t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		p.ends(cmd, says, code)
	}
	as(uid, "", 0, "mount", mnt)
	p.shows(mnt, p.w.Path("one/ws")+" fuse.wsmount rw,nosuid,nodev,noexec,")
	as(uid, "", 0, "sh", "-c", "echo mine >"+mnt+"/file && cat "+mnt+"/file")
	assert.Is(p.t, assert.ErrOf(os.Stat(p.w.Path("one/.local/state/wsmount"))), nil, "the state is not the user's")
	as(otherID, "", 32, "umount", mnt)
	p.shows(mnt, p.w.Path("one/ws"))
	as(uid, "", 0, "umount", mnt)
	p.shows(mnt, "")
}

func appendTo(name, text string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// mount -N mounts in the namespace of another process.
func (p *packageStage) namespace() {
	apart := exec.CommandContext(p.t.Context(), "sh", "-c", "echo ready; exec cat")
	apart.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	in := assert.Of(apart.StdinPipe()).OK(p.t, "pipe")
	out, err := apart.StdoutPipe()
	assert.Is(p.t, err, nil, "pipe")
	assert.Is(p.t, apart.Start(), nil, "start")
	p.t.Cleanup(func() { in.Close(); apart.Wait() })
	out.Read(make([]byte, 6))
	pid := itoa(apart.Process.Pid)
	there := func() bool {
		return strings.Contains(readFile(p.t, "/proc/"+pid+"/mounts"), " "+p.mnt+" fuse.wsmount ")
	}
	p.run("", 0, "mount", "-N", pid, "-t", "wsmount", "@acme/notes", p.mnt)
	p.shows(p.mnt, "")
	assert.True(p.t, there(), "it is not mounted there")
	p.run("", 0, "umount", "-N", pid, p.mnt)
	assert.False(p.t, there(), "it is still mounted there")
	p.idle(p.mnt)
}

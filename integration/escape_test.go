package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// theSecret stands wherever a command in a sandbox must not look.
const theSecret = "the-secret-of-the-host"

// An escape is one attempt to get out of a sandbox. The script runs inside, in the
// workspace, with names in braces replaced; what it prints is a success when there
// is the secret in it, or "ESCAPED".
type escape struct {
	name, script string
	prepare      func(s *escapeScene, cmd *exec.Cmd)
	alone        bool                 // what is prepared is in the way of the others
	afterwards   func(s *escapeScene) // looks at the host
}

var escapes = []escape{
	{name: "a link of the tree to the outside", script: "cat out link out/secret"},
	{name: "dots", script: `cat "../../../../../..{secret}"; cd ..; cat "..{secret}"; ls .. | grep -qx root && echo ESCAPED`},
	{name: "a path of the host", script: `cat "{secret}"; ls /home /root /var /etc/shadow /sys && echo ESCAPED`},
	{name: "another workspace", script: `cat "{other}/file" "{otherMount}/file"`},
	{name: "state and configuration", script: `ls "{state}" && echo ESCAPED; cat "{config}" && echo ESCAPED`},
	{name: "the control socket", script: `{escaper} connect unix "{socket}"`},
	{name: "an abstract socket", script: `{escaper} connect unix "{abstract}"`},
	{name: "the network", script: "{escaper} connect tcp {tcp}"},
	{name: "processes of the host", script: `cat /proc/[0-9]*/cmdline | grep -ao 'the-secret[-]of-the-host'`},
	{name: "ptrace of the daemon", script: "{escaper} process {daemon}"},
	{name: "roots of processes", script: `for p in /proc/[0-9]*; do cat "$p/root{secret}" "$p/cwd{secret}"; done`},
	{name: "a descriptor that was inherited", script: `for f in /proc/self/fd/*; do cat "$f/secret"; done`, prepare: inheritDirectory, alone: true},
	{name: "standard input as a directory", script: `cat /proc/self/fd/0/secret`, prepare: stdinDirectory, alone: true},
	{name: "standard input opened anew", script: `echo ESCAPED >/proc/self/fd/0`, prepare: stdinFile, afterwards: stdinIsWhole},
	{name: "standard output opened anew", script: `timeout 0.2 cat /proc/self/fd/2`, prepare: stderrFile, afterwards: stderrWasNotRead},
	{name: "the environment", script: `env; cat /proc/*/environ`},
	{name: "mounts", script: `umount -l /etc/alternatives && echo ESCAPED; umount -l /workspace && echo ESCAPED; mount --bind /proc /tmp && echo ESCAPED
		mount -o remount,rw,bind /usr && echo ESCAPED; mount -t proc proc /tmp && echo ESCAPED; {escaper} root`},
	{name: "a user namespace", script: `unshare -U true && echo ESCAPED; unshare -rm true && echo ESCAPED`},
	{name: "capabilities", script: `grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb):.*[1-9a-f]' /proc/self/status && echo ESCAPED; grep -qx 'NoNewPrivs:.1' /proc/self/status || echo ESCAPED`},
	{name: "devices", script: `{escaper} device /tmp/d; head -c 1 zero >/dev/null && echo ESCAPED
		for d in fuse kmsg mem vda sda loop-control kvm; do [ ! -e /dev/$d ] || echo ESCAPED; done`},
	{name: "set-id programs", script: `[ "$(./set-id -u)" = "$(id -u)" ] || echo ESCAPED`},
	{name: "keys of the session", script: "{escaper} key wsmount-test", prepare: addKey},
	{name: "input for the terminal", script: "{escaper} terminal", prepare: onTerminal, alone: true},
	{name: "settings of the kernel", script: `for f in core_pattern modprobe; do {escaper} open /proc/sys/kernel/$f; done; {escaper} open /proc/sysrq-trigger`},
	{name: "memory of System V", script: "{escaper} memory {shm}"},
	{name: "files of the system", script: `for f in /usr/bin/x /bin/x /etc/x /x /etc/alternatives/x; do touch $f && echo ESCAPED; done`},
	{name: "manifests that govern", script: `echo >>WORKSPACE.md && echo ESCAPED; mv WORKSPACE.md x && echo ESCAPED; rm -f WORKSPACE.md && echo ESCAPED`},
}

// An escapeScene is a host with something to be found everywhere.
type escapeScene struct {
	t       *testing.T
	w       *harness.World
	m       *harness.Mount
	names   *strings.Replacer
	stdin   string
	stderr  string
	cleanup []func()
}

const sandboxAtWorkspace = "sandbox: {inline: {provider: local, config: {}, " + untimed + ", mounts: [{source: workspace, at: /workspace}]}}\n"

// untimed is for commands that are not about their time, of which the machine may take any:
// a test hangs first.
const untimed = "limits: {timeout_ms: 3600000}"

// sandboxed is a workspace with a sandbox block.
func sandboxed(w *harness.World, slug, block string) (dir string) {
	dir = w.Mkdir("ws-"+slug, 0o755)
	w.Write("ws-"+slug+"/WORKSPACE.md", harness.Manifest("@acme/"+slug,
		"storage: {inline: {provider: local-fs, config: {mount_path: "+dir+"}}}\n"+block), 0o644)
	return dir
}

func newEscapeScene(t *testing.T, uid uint32) *escapeScene {
	t.Helper()
	tier.RequireTools(t, "bwrap", "unshare")
	w := harness.New(t, harness.Options{UID: uid, Config: "{}\n"})
	s := &escapeScene{t: t, w: w}
	secret := w.Write("secret", theSecret, 0o644)
	dir := sandboxed(w, "inside", sandboxAtWorkspace)
	other := w.Mkdir("ws-acme-other", 0o755)
	otherMount := w.Mount(w.Workspace("@acme/other", ""))
	w.Write("ws-acme-other/file", theSecret, 0o644)
	for name, target := range map[string]string{"out": w.Dir, "link": secret} {
		assert.Is(t, os.Symlink(target, dir+"/"+name), nil, "link")
	}
	program := assert.Of(os.ReadFile(harness.Escaper(t))).OK(t, "escaper")
	w.Write("ws-inside/escaper", string(program), 0o755)
	s.plant(dir)
	s.m = w.Mount(dir)
	s.names = strings.NewReplacer("{secret}", secret, "{other}", other, "{otherMount}", otherMount.Dir, "{state}", w.Path("state"),
		"{config}", w.Path("config/wsmount/config.yaml"), "{socket}", s.socket(), "{abstract}", s.listen("unix", "@wsmount-"+filepath.Base(w.Dir)),
		"{tcp}", s.listen("tcp", "127.0.0.1:0"), "{daemon}", itoa(s.m.PID), "{shm}", itoa(s.segment()), "{escaper}", "./escaper")
	s.run(w.Command(context.Background(), "sh", "-c", "sleep 600; : "+theSecret))
	w.Env("WSMOUNT_TEST_SECRET=" + theSecret)
	return s
}

// plant puts into the tree what only root can make.
func (s *escapeScene) plant(dir string) {
	if os.Geteuid() != 0 {
		return
	}
	assert.Is(s.t, unix.Mknod(dir+"/zero", unix.S_IFCHR|0o666, 1<<8|5), nil, "device")
	assert.Is(s.t, os.Chmod(dir+"/zero", 0o666), nil, "mode of the device")
	id := assert.Of(os.ReadFile("/usr/bin/id")).OK(s.t, "id")
	assert.Is(s.t, os.WriteFile(dir+"/set-id", id, 0o755), nil, "set-id")
	assert.Is(s.t, os.Chown(dir+"/set-id", 4321, 4321), nil, "owner of set-id")
	assert.Is(s.t, os.Chmod(dir+"/set-id", 0o755|os.ModeSetuid), nil, "mode of set-id")
}

func (s *escapeScene) socket() string {
	found, err := filepath.Glob(s.w.Path("state/acme/inside/*/control.sock"))
	assert.Must(s.t, err == nil && len(found) == 1, "control sockets:", found, err)
	return found[0]
}

func (s *escapeScene) listen(network, address string) string {
	l := assert.Of(net.Listen(network, address)).OK(s.t, "listen")
	s.t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func (s *escapeScene) segment() int {
	id := assert.Of(unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o666)).OK(s.t, "shmget")
	s.t.Cleanup(func() { unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	return id
}

// run starts a process of the host and ends it with the test.
func (s *escapeScene) run(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	assert.OK(s.t, cmd.Start(), "start")
	s.t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	})
}

func (s *escapeScene) open(path string, flags int) *os.File {
	f := assert.Of(os.OpenFile(path, flags, 0o666)).OK(s.t, "open")
	s.cleanup = append(s.cleanup, func() { f.Close() })
	return f
}

func inheritDirectory(s *escapeScene, cmd *exec.Cmd) {
	d := s.open(s.w.Dir, os.O_RDONLY)
	cmd.ExtraFiles = slices.Repeat([]*os.File{d}, 40) // more than are opened for the sandbox, whose numbers those get
}

func stdinDirectory(s *escapeScene, cmd *exec.Cmd) { cmd.Stdin = s.open(s.w.Dir, os.O_RDONLY) }

func stdinFile(s *escapeScene, cmd *exec.Cmd) {
	s.stdin = s.w.Write("stdin", "what is read", 0o666)
	cmd.Stdin = s.open(s.stdin, os.O_RDONLY)
}

func stdinIsWhole(s *escapeScene) { checkContent(s.t, s.stdin, "what is read") }

// stderrFile lets the command write a file that it may not read.
func stderrFile(s *escapeScene, cmd *exec.Cmd) {
	s.stderr = s.w.Write("stderr", theSecret+"\n", 0o666)
	cmd.Stderr = s.open(s.stderr, os.O_WRONLY|os.O_APPEND)
}

func stderrWasNotRead(s *escapeScene) {
	text, err := os.ReadFile(s.stderr)
	assert.True(s.t, err == nil && strings.HasPrefix(string(text), theSecret), "standard error is", text, err)
}

// addKey puts a key into the session of the thread that will start the command,
// which ends with the test.
func addKey(s *escapeScene, _ *exec.Cmd) {
	runtime.LockOSThread()
	assert.Is(s.t, assert.ErrOf(unix.KeyctlJoinSessionKeyring("wsmount-test")), nil, "session")
	assert.OK(s.t, assert.ErrOf(unix.AddKey("user", "wsmount-test", []byte(theSecret), unix.KEY_SPEC_SESSION_KEYRING)), "key")
}

// onTerminal gives the command a terminal that is that of its session.
func onTerminal(s *escapeScene, cmd *exec.Cmd) {
	_, slave := terminal(s.t)
	cmd.Stdin = slave
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
}

// terminal makes a terminal of which the test is the user.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master = assert.Of(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)).OK(t, "ptmx")
	assert.Is(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0), nil, "unlock")
	n := assert.Of(unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)).OK(t, "number")
	slave = assert.Of(os.OpenFile("/dev/pts/"+itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)).OK(t, "slave")
	t.Cleanup(func() { master.Close(); slave.Close() })
	return master, slave
}

// together makes one attempt of all that can be made side by side: most of the time
// sandboxes start and end.
func together(all []escape) (few []escape) {
	one := escape{name: "all others"}
	var prepare []func(s *escapeScene, cmd *exec.Cmd)
	var afterwards []func(s *escapeScene)
	for _, e := range all {
		if e.alone {
			few = append(few, e)
			continue
		}
		one.script += fmt.Sprintf("echo '== %s'; (%s)\n", e.name, e.script)
		if e.prepare != nil {
			prepare = append(prepare, e.prepare)
		}
		if e.afterwards != nil {
			afterwards = append(afterwards, e.afterwards)
		}
	}
	one.prepare = func(s *escapeScene, cmd *exec.Cmd) {
		for _, f := range prepare {
			f(s, cmd)
		}
	}
	one.afterwards = func(s *escapeScene) {
		for _, f := range afterwards {
			f(s)
		}
	}
	return append(few, one)
}

// tries runs attempts by a way to start commands in a sandbox.
func (s *escapeScene) tries(t *testing.T, attempts []escape, command func(script string) *exec.Cmd) {
	for _, e := range attempts {
		t.Run(e.name, func(t *testing.T) {
			s.t = t
			defer func() {
				for _, f := range s.cleanup {
					f()
				}
				s.cleanup = nil
			}()
			var out bytes.Buffer
			cmd := command(s.names.Replace(e.script) + "\necho tried")
			cmd.Stdout, cmd.Stderr = &out, io.Writer(&out)
			if e.prepare != nil {
				e.prepare(s, cmd)
			}
			err := cmd.Run()
			refused := err != nil && strings.Contains(out.String(), "standard input is a directory") || strings.Contains(out.String(), "is a directory, through which")
			got := out.String()
			assert.True(t, !strings.Contains(got, theSecret) && !strings.Contains(got, "ESCAPED") && (refused || strings.Contains(got, "tried\n")), err, got)
			if e.afterwards != nil {
				e.afterwards(s)
			}
		})
	}
}

// Nobody gets out of a sandbox of `wsmount exec`, whether root started it or not.
func TestEscape(t *testing.T) {
	t.Parallel()
	tier.RequireRoot(t)
	for name, uid := range map[string]uint32{"root": 0, "user": userID} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEscapeScene(t, uid)
			s.tries(t, tier.Pick(together(escapes), escapes), func(script string) *exec.Cmd {
				return s.command(harness.Binary(), "exec", s.w.Path("ws-inside"), "--", "sh", "-c", script)
			})
		})
	}
}

// Nor out of the one that the example makes by hand.
func TestEscapeByHand(t *testing.T) {
	t.Parallel()
	tier.RequireRoot(t)
	script := assert.Of(os.ReadFile("example/bwrap.sh")).OK(t, "example")
	for name, uid := range map[string]uint32{"root": 0, "user": userID} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEscapeScene(t, uid)
			byHand := s.w.Write("bwrap.sh", string(script), 0o755)
			s.tries(t, tier.Pick(together(escapes), escapes), func(script string) *exec.Cmd {
				return s.command(byHand, s.m.Dir, "sh", "-c", script)
			})
		})
	}
}

// Nor out of a container of podman, in which user namespaces can be made all the same.
func TestEscapeFromPodman(t *testing.T) {
	t.Parallel()
	if !testrun.Private(t) {
		return
	}
	assert.Is(t, unix.Mount("", "/", "", unix.MS_SHARED|unix.MS_REC, ""), nil, "share")
	attempts := together(slices.DeleteFunc(slices.Clone(escapes), func(e escape) bool { return e.name == "a user namespace" }))
	for _, kind := range sandboxKinds {
		if kind.script != "podman" {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			kind.require(t)
			attempts := attempts
			if !tier.Soak && kind.uid == 0 { // what stays alone is the same as a user's
				attempts = attempts[len(attempts)-1:]
			}
			s := newEscapeScene(t, kind.uid)
			start := kind.prepare(t, s.w, kind.uid)
			s.tries(t, attempts, func(script string) *exec.Cmd {
				ctx, cancel := context.WithTimeout(context.Background(), harness.Hangs)
				s.cleanup = append(s.cleanup, cancel)
				return start(ctx, s.m.Dir, "sh", "-c", script)
			})
		})
	}
}

func (s *escapeScene) command(name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), harness.Hangs)
	s.cleanup = append(s.cleanup, cancel)
	return s.w.Command(ctx, name, args...)
}

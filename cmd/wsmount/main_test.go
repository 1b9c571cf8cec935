package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// binary is the program under test, run as a process of its own so that a test never
// waits for a mount that it serves itself. In make soak it has the race detector, and
// reader, which is run to read or to set down something, is the same without: a process
// with the race detector takes long to begin.
var (
	binary, reader string
	reading        = []string{"status", "log", "diff", "restore", "conflicts", "validate", "resolve", "registry", "list", "find", "version", "help", "init", "publish", "schema", "store"}
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if how := os.Getenv(leaveEnv); how != "" {
		return leave(how)
	}
	return testrun.Main(m, func(r *testrun.Run) (err error) {
		reader, err = r.Program()
		binary = reader
		if tier.Soak && err == nil {
			binary, err = r.ProgramWithRaceDetector()
		}
		return err
	})
}

// world is a user's part of a machine: home, state directory, workspaces and
// mount points, all below one temporary directory.
type world struct {
	t    *testing.T
	dir  string
	env  []string
	cred *syscall.Credential
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := assert.Of(filepath.EvalSymlinks(t.TempDir())).OK(t)
	dir = filepath.Join(dir, "the-world")
	w := &world{t: t, dir: dir, env: []string{"HOME=" + dir + "/home", "PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir + "/tmp",
		"WSMOUNT_STATE_DIR=" + dir + "/state", "GORACE=atexit_sleep_ms=0"}} // else the race detector sleeps a second at exit
	for _, d := range []string{"home", "tmp", "mnt"} {
		w.mkdir(d)
	}
	t.Cleanup(w.leaveNothing)
	return w
}

// leaveNothing fails a test that leaves a mount behind, and takes it away, or a process,
// for whose end it waits.
func (w *world) leaveNothing() {
	table, err := mountpoint.ReadTable()
	assert.Is(w.t, err, nil)
	for _, m := range slices.Backward(table) {
		if mountpoint.Within(m.Path, w.dir) {
			w.t.Errorf("left mounted: %s", m.Path)
			mountpoint.Abort(m)
			mountpoint.Unmount(m.Path, true)
		}
	}
	for _, p := range testrun.AwaitProcesses(w.dir) { // they write below w.dir, which is removed next
		w.t.Errorf("left running: %s", p)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) mkdir(name string) {
	w.t.Helper()
	assert.OK(w.t, os.MkdirAll(w.path(name), 0o755))
	w.own(name)
}

func (w *world) own(name string) {
	if w.cred != nil {
		os.Chown(w.path(name), int(w.cred.Uid), int(w.cred.Gid))
	}
}

// read returns what is in a file.
func (w *world) read(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(w.path(name))
	assert.Is(w.t, err, nil)
	return string(b)
}

func (w *world) write(name, text string) {
	w.t.Helper()
	w.mkdir(filepath.Dir(name))
	assert.OK(w.t, os.WriteFile(w.path(name), []byte(text), 0o644))
	w.own(name)
}

// edit replaces a text in a file.
func (w *world) edit(name, old, replacement string) {
	w.t.Helper()
	w.write(name, strings.Replace(w.read(name), old, replacement, 1))
}

// nobody is a user without privilege.
var nobody = &syscall.Credential{Uid: 65534, Gid: 65534}

// openToOthers lets other users get to the world.
func (w *world) openToOthers() {
	for _, dir := range []string{"../..", "..", "."} {
		os.Chmod(w.path(dir), 0o755)
	}
}

// outcome is what a run of the program came to.
type outcome struct {
	code        exit.Code
	out, errOut string
}

func (w *world) command(args ...string) *exec.Cmd {
	program := binary
	if len(args) > 0 && slices.Contains(reading, args[0]) {
		program = reader
	}
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir = w.env, w.dir
	if w.cred != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: w.cred}
	}
	return cmd
}

func (w *world) run(args ...string) outcome {
	w.t.Helper()
	cmd := w.command(args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exited *exec.ExitError
	assert.Must(w.t, err == nil || errors.As(err, &exited), err)
	return outcome{exit.Code(cmd.ProcessState.ExitCode()), out.String(), errOut.String()}
}

// ok runs the program and wants success.
func (w *world) ok(args ...string) string {
	w.t.Helper()
	o := w.run(args...)
	assert.Must(w.t, o.code == exit.Done, "wsmount", strings.Join(args, " "), "exit", o.code, o.out, o.errOut)
	return o.out
}

// refused runs the program and wants one line of what, one of what to do, and
// an exit code.
func (w *world) refused(code exit.Code, says string, args ...string) {
	w.t.Helper()
	o := w.run(args...)
	lines := strings.Split(strings.TrimSpace(o.errOut), "\n")
	assert.True(w.t, o.code == code && strings.Contains(o.errOut, says), "wsmount", args, "got exit", o.code, "want", code, "with", says, o.out, o.errOut)
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "wsmount: ") || !strings.HasPrefix(lines[1], "hint: ") {
		w.t.Errorf("wsmount %q: not one line of what and one of what to do:\n%s", args, o.errOut)
	}
}

// workspace makes and registers a local-fs workspace @acme/<name> in <name>.
func (w *world) workspace(name string) string {
	w.t.Helper()
	w.ok("init", w.path(name), "--id", "@acme/"+name, "--owner-id", "acme-1", "--register")
	return "@acme/" + name
}

const notes = "@acme/notes"

// mountNotes mounts a local workspace.
func mountNotes(t *testing.T, flags ...string) *world {
	t.Helper()
	tier.RequireFUSE(t)
	w := newWorld(t)
	w.mount(append([]string{w.workspace("notes"), "mnt"}, flags...)...)
	return w
}

// mount mounts and unmounts at the end of the test.
func (w *world) mount(args ...string) {
	w.t.Helper()
	w.ok(append([]string{"mount"}, args...)...)
	w.t.Cleanup(func() {
		table, _ := mountpoint.ReadTable()
		if m, ok := table.At(w.path("mnt")); ok && m.Ours() {
			w.ok("umount", m.Path)
		}
	})
}

func (w *world) status() (s control.Status) {
	w.t.Helper()
	o := w.run("status", w.path("mnt"), "--json")
	assert.OK(w.t, json.Unmarshal([]byte(o.out), &s), "status", o.out, o.errOut)
	return s
}

// shown is what status prints of mounts whose daemons run.
func (w *world) shown(args ...string) string {
	w.t.Helper()
	return w.ok(append([]string{"status"}, args...)...)
}

// asJSON reads what the program prints with --json.
func (w *world) asJSON(into any, args ...string) {
	w.t.Helper()
	out := w.ok(append(args, "--json")...)
	assert.OK(w.t, json.Unmarshal([]byte(out), into), args, out)
}

// hangs is when a test takes it for certain that something hangs.
const hangs = assert.Hangs

// eventually waits for something that another process does.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	assert.Eventually(t, what, is)
}

// alive is testrun.Alive.
func alive(pid int) bool { return testrun.Alive(pid) }

// stop hangs a daemon, every thread of it.
func stop(t *testing.T, pid int) {
	t.Helper()
	assert.OK(t, syscall.Kill(pid, syscall.SIGSTOP))
	eventually(t, "every thread to stop", func() bool { return testrun.Stopped(pid) })
}

func isMounted(path string) bool {
	table, err := mountpoint.ReadTable()
	m, ok := table.At(path)
	return err == nil && ok && m.Ours()
}

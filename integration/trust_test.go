package integration

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/tier"
)

// Exit codes of the program.
const (
	exitInvalid      = 3
	exitUnresolvable = 4
	exitDenied       = 5
	exitUnreachable  = 6
)

// A workspace that is not registered is said to be so.
func TestTrustUnverified(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{})
	dir := w.Workspace("@acme/x", "")
	m := w.Mount(dir)
	assert.True(t, m.Status().Unverified, "a manifest given by path is not shown as unverified")
	other := w.Workspace("@acme/y", "")
	m = w.Mount(other, "--trust")
	assert.False(t, m.Status().Unverified, "--trust: shown as unverified")
	w.MustRun("registry", "add", w.Workspace("@acme/z", ""))
	m = w.Mount("@acme/z")
	assert.False(t, m.Status().Unverified, "a registered workspace is shown as unverified")
}

// No program in the mount changes the files that govern it.
func TestTrustGoverning(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{})
	dir := w.Workspace("@acme/x", "")
	want := assert.Of(os.ReadFile(dir + "/WORKSPACE.md")).OK(t)
	m := w.Mount(dir)
	f := m.Dir + "/WORKSPACE.md"
	write(t, m.Dir+"/evil", "evil")
	for what, err := range map[string]error{
		"write": os.WriteFile(f, []byte("evil"), 0o644), "append": tryOpen(f, unix.O_WRONLY|unix.O_APPEND), "truncate": unix.Truncate(f, 0),
		"unlink": unix.Unlink(f), "rename away": unix.Rename(f, m.Dir+"/x"), "rename over": unix.Rename(m.Dir+"/evil", f),
		"exchange": unix.Renameat2(unix.AT_FDCWD, m.Dir+"/evil", unix.AT_FDCWD, f, unix.RENAME_EXCHANGE),
		"chmod":    unix.Chmod(f, 0o666), "utimes": os.Chtimes(f, fixedTime, fixedTime), "setxattr": unix.Setxattr(f, "user.a", []byte("x"), 0),
		"link": unix.Link(f, m.Dir+"/other"),
	} {
		assert.Is(t, err, syscall.EROFS, what)
	}
	checkContent(t, f, string(want))
	checkContent(t, dir+"/WORKSPACE.md", string(want))
	log := assert.Of(os.ReadFile(m.Dir + "/.wsmount/errors.log")).OK(t)
	assert.Contains(t, string(log), "WORKSPACE.md", "errors.log")
}

// A user's mount is his own: not even root enters it unless he lets others in.
func TestTrustOthers(t *testing.T) {
	t.Parallel()
	tier.RequireRoot(t)
	w := harness.New(t, harness.Options{UID: userID})
	m := w.Mount(w.Workspace("@acme/x", ""))
	assert.Is(t, assert.ErrOf(os.ReadDir(m.Dir)), syscall.EACCES, "root lists a user's mount")
	assert.Of(w.Command(t.Context(), "ls", m.Dir).CombinedOutput()).Equal(t, []byte("WORKSPACE.md\n"), "the user lists his mount")
}

// The attack: a user who has a program of root's open for writing from before it
// was made set-user-id changes it, closes it, and runs it before the bit is gone.
// Only a mount that was asked for with the option suid gives programs rights.
func TestSetIDProgramThatIsWrittenTo(t *testing.T) {
	t.Parallel()
	tier.RequireRoot(t)
	w := harness.New(t, harness.Options{})
	m := w.Mount(w.Workspace("@acme/tools", "watch"), "--allow-other", "--options", "suid")
	program := m.Dir + "/id"
	copyProgram(t, "id", program)
	asUser := func(name string, args ...string) *exec.Cmd {
		cmd := w.Command(t.Context(), name, args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: userID, Gid: userID}}
		return cmd
	}
	assert.OK(t, os.Chmod(program, os.ModeSetuid|0o755))
	got := runBusy(t, func() *exec.Cmd { return asUser(program, "-u") })
	assert.Must(t, got == "0", "a set-user-id program of root's runs as", got)
	for i := range tier.Pick(2, 10) {
		assert.OK(t, os.Chmod(program, 0o777))
		writer := asUser("sh", "-c", `exec 3>>"$1"; echo open; read go; printf x >&3`, "sh", program)
		say, opened := startTalking(t, writer)
		assert.OK(t, assert.ErrOf(io.ReadFull(opened, make([]byte, len("open\n")))))
		assert.OK(t, os.Chmod(program, os.ModeSetuid|0o777))
		got := make(chan string)
		go func() { got <- runBusy(t, func() *exec.Cmd { return asUser(program, "-u") }) }()
		assert.Is(t, assert.ErrOf(io.WriteString(say, "go\n")), nil)
		assert.Equal(t, <-got, itoa(userID), "round", i, "what the user wrote runs as")
		assert.OK(t, writer.Wait())
	}
}

// copyProgram copies an installed program, for everybody to write to.
func copyProgram(t *testing.T, name, to string) {
	t.Helper()
	assert.OK(t, os.WriteFile(to, assert.Of(os.ReadFile(assert.Of(exec.LookPath(name)).OK(t))).OK(t), 0o755))
}

func startTalking(t *testing.T, cmd *exec.Cmd) (io.WriteCloser, io.Reader) {
	t.Helper()
	in := assert.Of(cmd.StdinPipe()).OK(t)
	out := assert.Of(cmd.StdoutPipe()).OK(t)
	assert.OK(t, cmd.Start())
	return in, out
}

// runBusy runs a program as soon as nobody has it open for writing: without a pause, since
// a moment later it is no attack any more.
func runBusy(t *testing.T, command func() *exec.Cmd) string {
	for begin := time.Now(); time.Since(begin) < harness.Hangs; {
		out, err := command().Output()
		if errors.Is(err, syscall.ETXTBSY) {
			continue
		}
		assert.Is(t, err, nil)
		return strings.TrimSpace(string(out))
	}
	t.Error("the program stays open for writing")
	return ""
}

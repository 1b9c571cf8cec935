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

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/tier"
)

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
	if got := runBusy(t, func() *exec.Cmd { return asUser(program, "-u") }); got != "0" {
		t.Fatalf("a set-user-id program of root's runs as %s", got)
	}
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
	path, err := exec.LookPath(name)
	assert.OK(t, err)
	content, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(to, content, 0o755)
	}
	assert.OK(t, err)
}

func startTalking(t *testing.T, cmd *exec.Cmd) (io.WriteCloser, io.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	assert.OK(t, err)
	out, err := cmd.StdoutPipe()
	assert.OK(t, err)
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

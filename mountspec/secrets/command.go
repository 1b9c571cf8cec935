package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/mountspec/host/hostfile"
)

const (
	maxOutput      = 64 << 10
	commandTimeout = 10 * time.Second
)

// programDirs are where a command's name is looked for. PATH is not asked:
// it may name directories in a workspace.
var programDirs = []string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"}

// Command is a secret on the standard output of a program. There is no
// shell: Argv is what the program gets. Its environment is PATH, HOME, USER,
// LOGNAME, LANG and XDG_RUNTIME_DIR, its directory is /, its standard input
// is empty, its standard error is not read (it may hold the value). It has
// 10 seconds and 64 KiB, then it and its children are killed.
type Command struct {
	Argv   []string
	Format Format
	// Lookup reads the environment that the program started with.
	Lookup func(name string) (string, bool)
	// Timeout is the time limit. Zero: 10 seconds.
	Timeout time.Duration
}

// Kind returns "command".
func (c Command) Kind() string { return "command" }

// String names the program only: arguments may be telling.
func (c Command) String() string {
	if len(c.Argv) == 0 {
		return "command"
	}
	return "command " + c.Argv[0]
}

// Files are the files that decide what the program prints, as far as the command
// names them: the program, wherever it is looked for, and every argument that is
// an absolute path or ends in =PATH.
func (c Command) Files() []string {
	var out []string
	for i, arg := range c.Argv {
		if i == 0 && !strings.Contains(arg, "/") {
			for _, dir := range programDirs {
				out = append(out, filepath.Join(dir, arg))
			}
			continue
		}
		if _, value, ok := strings.Cut(arg, "="); ok && !filepath.IsAbs(arg) {
			arg = value
		}
		if filepath.IsAbs(arg) {
			out = append(out, arg)
		}
	}
	return out
}

// Fetch runs the program.
func (c Command) Fetch(ctx context.Context) (Secret, error) {
	prog, err := c.program()
	if err != nil {
		return Secret{}, err
	}
	limit := c.Timeout
	if limit == 0 {
		limit = commandTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := &bounded{stop: cancel}
	err = c.command(ctx, prog, out).Run()
	switch {
	case out.over:
		return Secret{}, fmt.Errorf("%s printed more than %d bytes", prog, maxOutput)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Secret{}, fmt.Errorf("%s did not finish within %s", prog, limit)
	case ctx.Err() != nil:
		return Secret{}, ctx.Err()
	case err != nil:
		return Secret{}, fmt.Errorf("%s failed: %w", prog, err)
	}
	return decode(out.b.Bytes(), c.Format)
}

func (c Command) command(ctx context.Context, prog string, out io.Writer) *exec.Cmd {
	cmd := exec.CommandContext(ctx, prog, c.Argv[1:]...)
	cmd.Dir = "/"
	cmd.Env = c.environ()
	cmd.Stdout = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a child that left the group and holds the pipe
	return cmd
}

func (c Command) environ() []string {
	env := []string{"PATH=" + strings.Join(programDirs, ":"), "LANG=C.UTF-8"}
	for _, n := range []string{"HOME", "USER", "LOGNAME", "XDG_RUNTIME_DIR"} {
		if v, ok := c.Lookup(n); ok {
			env = append(env, n+"="+v)
		}
	}
	return env
}

// program finds what Argv[0] names and checks that only the host could have
// written it.
func (c Command) program() (string, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return "", errors.New("the command is empty")
	}
	name := c.Argv[0]
	if filepath.IsAbs(name) {
		return hostfile.CheckProgram(name, hostfile.Options{})
	}
	if strings.Contains(name, "/") {
		return "", fmt.Errorf("the command %s is relative: write its absolute path", name)
	}
	for _, dir := range programDirs {
		prog, err := hostfile.CheckProgram(filepath.Join(dir, name), hostfile.Options{})
		if !hostfile.IsAbsent(err) {
			return prog, err
		}
	}
	return "", fmt.Errorf("the command %s is in none of %s: write its absolute path", name, strings.Join(programDirs, ", "))
}

// bounded keeps the first bytes of an output and stops the program when
// there are more.
type bounded struct {
	b    bytes.Buffer
	over bool
	stop func()
}

func (w *bounded) Write(p []byte) (int, error) {
	if w.over || w.b.Len()+len(p) > maxOutput {
		w.over = true
		w.stop()
		return 0, errors.New("too much output")
	}
	return w.b.Write(p)
}

// Package program runs a program that the host configuration names: one that prints a secret,
// or is sent reports of problems.
//
// It promises that only root and the user can have written it, that no shell reads its
// arguments, that it gets nothing of the environment but PATH, HOME, USER, LOGNAME, LANG and
// XDG_RUNTIME_DIR, that its directory is /, and that when its time is over it is killed with
// its children. Its standard error is not read: it may hold a secret.
//
//	err := program.Program{Argv: []string{"pass", "show", "git"}, Lookup: lookup}.Run(ctx, nil, out)
package program

import (
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

// dirs are where a program's name is looked for. PATH is not asked: it may name
// directories in a workspace.
var dirs = []string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"}

// A Program is one with its arguments.
type Program struct {
	Argv []string
	// Lookup reads the environment that this process started with.
	Lookup func(name string) (string, bool)
	// Timeout is the time limit. Zero: 10 seconds.
	Timeout time.Duration
}

const defaultTimeout = 10 * time.Second

// Variables are those of the environment that a program gets, beside PATH and LANG.
func Variables() []string { return []string{"HOME", "USER", "LOGNAME", "XDG_RUNTIME_DIR"} }

// Files are the files that decide what the program does, as far as its arguments
// name them: the program, wherever it is looked for, and every argument that is
// an absolute path or ends in =PATH.
func (p Program) Files() []string {
	var out []string
	for i, arg := range p.Argv {
		if i == 0 && !strings.Contains(arg, "/") {
			for _, dir := range dirs {
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

// Run runs the program, with in as its input; its output goes to out. Either may be
// nil. An error of out ends it.
func (p Program) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	prog, err := p.find()
	if err != nil {
		return err
	}
	limit := p.Timeout
	if limit == 0 {
		limit = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	to := &printed{to: out, stop: cancel}
	cmd := exec.CommandContext(ctx, prog, p.Argv[1:]...)
	cmd.Dir = "/"
	cmd.Env = p.environ()
	if cmd.Stdin = in; out != nil {
		cmd.Stdout = to
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a child that left the group and holds the pipe
	err = cmd.Run()
	switch {
	case to.err != nil:
		return fmt.Errorf("%s %w", prog, to.err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s did not finish within %s", prog, limit)
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%s failed: %w", prog, err)
	}
	return nil
}

func (p Program) environ() []string {
	env := []string{"PATH=" + strings.Join(dirs, ":"), "LANG=C.UTF-8"}
	for _, n := range Variables() {
		if v, ok := p.Lookup(n); ok {
			env = append(env, n+"="+v)
		}
	}
	return env
}

// find finds the program that Argv[0] names and checks that only the host could have
// written it.
func (p Program) find() (string, error) {
	if len(p.Argv) == 0 || p.Argv[0] == "" {
		return "", errors.New("the command is empty")
	}
	name := p.Argv[0]
	if filepath.IsAbs(name) {
		return hostfile.CheckProgram(name, hostfile.Options{})
	}
	if strings.Contains(name, "/") {
		return "", fmt.Errorf("the command %s is relative: write its absolute path", name)
	}
	for _, dir := range dirs {
		prog, err := hostfile.CheckProgram(filepath.Join(dir, name), hostfile.Options{})
		if !hostfile.IsAbsent(err) {
			return prog, err
		}
	}
	return "", fmt.Errorf("the command %s is in none of %s: write its absolute path", name, strings.Join(dirs, ", "))
}

// printed passes on the output of a program until out refuses it, which stops the program.
type printed struct {
	to   io.Writer
	err  error
	stop func()
}

func (w *printed) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	if err != nil {
		w.err = err
		w.stop()
	}
	return n, err
}

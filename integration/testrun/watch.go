package testrun

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// watchEnv makes the test binary the watcher of the run in a directory.
const watchEnv = "WSMOUNT_TEST_WATCH"

// A watcher is the process that waits for the end of a run, which it learns by the end
// of its input, and sweeps what is there then. It has a session of its own, so that
// Ctrl-C does not end it with the run.
type watcher struct {
	cmd   *exec.Cmd
	input io.Closer
}

func startWatcher(dir string) (*watcher, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), watchEnv+"="+dir)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &watcher{cmd, input}, nil
}

// dismiss lets the watcher go, and fails if there was something to sweep.
func (w *watcher) dismiss() error {
	w.input.Close()
	return w.cmd.Wait()
}

// watch is what the watcher does. It returns the status to exit with.
func watch(dir string) int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	if _, err := os.Lstat(dir); err != nil {
		return 0
	}
	report(dir, sweepRun(dir))
	return 1
}

func report(dir string, found []string) {
	fmt.Fprintf(os.Stderr, "testrun: a run ended without its end, and left %s\n", dir)
	for _, f := range found {
		fmt.Fprintf(os.Stderr, "testrun:   ended %s\n", f)
	}
}

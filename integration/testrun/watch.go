package testrun

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
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

// silence is how long no test of a run of many packages may say anything before it is taken for
// one that hangs. While programs are built, nothing counts as silence: see isBuilding.
const silence = 15 * time.Minute

// watch is what the watcher does. It returns the status to exit with.
func watch(dir string) int {
	go func() {
		for tick := time.Tick(silence / 100); ; <-tick {
			rouse(dir, silence)
		}
	}()
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

// isBuilding reports whether a compiler or linker of Go works for a run: on a busy machine that
// builds all anew, its tests have nothing to say for longer than any limit.
func isBuilding(dir string) bool {
	return slices.ContainsFunc(ProcessesOf(dir), func(pid int) bool {
		program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		return strings.Contains(program, "/pkg/tool/")
	})
}

// rouse has a run in which nothing is said for so long come to an end, and say where it hangs:
// the programs of its tests tell what each goroutine waits for, and end by that. If they did not,
// all that belongs to the run is killed.
func rouse(dir string, silence time.Duration) {
	logs, _ := filepath.Glob(filepath.Join(dir, "logs", "*"))
	var last time.Time
	for _, log := range logs {
		if info, err := os.Lstat(log); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	if last.IsZero() || time.Since(last) < silence || isBuilding(dir) {
		return
	}
	roused := filepath.Join(dir, "logs", "roused")
	_, err := os.Lstat(roused)
	first := err != nil
	_ = os.WriteFile(roused, nil, 0o600) // which is said, too
	fmt.Fprintf(os.Stderr, "testrun: no test has said anything for %v in %s, where these run:\n", silence, dir)
	for _, pid := range ProcessesOf(dir) {
		where, _ := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", pid))
		fmt.Fprintf(os.Stderr, "testrun:   process %d %s (in %s)\n", pid, CommandLine(pid), where)
		program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		switch {
		case !first:
			kill(pid)
		case strings.HasSuffix(program, ".test") && !strings.Contains(string(environment), watchEnv+"="):
			_ = syscall.Kill(pid, syscall.SIGQUIT)
		}
	}
}

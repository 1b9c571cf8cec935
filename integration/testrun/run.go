// Package testrun is one run of a package of tests: the directory below which all is
// that the run makes, the program that it tests, and what a single test can have for
// itself: mounts, a network, a disk whose power can be cut. What a run leaves that was killed,
// mounts and processes too, ends: at once by a watcher, which outlives the run, and
// if that was killed as well, by the next run, which says so. What packages leave that
// are no run of their own lies in one that integration/tools/test.sh begins.
//
//	func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }
package testrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// prefix begins the name of every run's directory.
const prefix = "wsmount-test-"

// Base is where the directories of runs are made: $WSMOUNT_TEST_DIR, or /var/tmp, which
// is on a disk where /tmp may be memory.
func Base() string {
	if dir := os.Getenv("WSMOUNT_TEST_DIR"); dir != "" {
		return dir
	}
	return "/var/tmp"
}

// A Run is a run that has begun.
type Run struct {
	Dir     string // every user may pass it
	lock    *os.File
	watcher *watcher
}

// runEnv names, to what a run starts, the run's directory: by it a killed run's processes
// are found, and one that is the same program again knows that it is not a run itself.
const runEnv = "WSMOUNT_TEST_RUN"

// Main runs the tests of a package in a run of their own, whose directory is their
// $TMPDIR, and returns the status to exit with. Before them come the preparations. In a
// process that a run has started, to be killed or as another user, it only runs them.
func Main(m *testing.M, prepare ...func(*Run) error) int {
	if os.Getenv(runEnv) != "" {
		leaveOthers()
		return m.Run()
	}
	r, err := Begin()
	if err != nil {
		return fail(err)
	}
	err = errors.Join(os.Setenv("TMPDIR", r.Dir), os.Setenv(runEnv, r.Dir+"/"))
	for _, f := range prepare {
		err = errors.Join(err, f(r))
	}
	if err != nil {
		return fail(errors.Join(err, r.End()))
	}
	code := m.Run()
	if err := r.End(); err != nil {
		return fail(err)
	}
	return code
}

func fail(err error) int {
	fmt.Fprintf(os.Stderr, "testrun: %v\n", err)
	return 1
}

// Begin begins a run, and ends what killed ones have left. TestMain calls it before all
// else: the watcher is the same program, and does not return from here.
func Begin() (*Run, error) {
	if dir := os.Getenv(watchEnv); dir != "" {
		os.Exit(watch(dir))
	}
	leaveOthers()
	sweep(Base())
	sweep(memoryBase)
	dir, err := os.MkdirTemp(Base(), prefix)
	if err != nil {
		return nil, err
	}
	r := &Run{Dir: dir}
	if r.lock, err = claim(dir); err == nil {
		r.watcher, err = startWatcher(dir)
	}
	if err = errors.Join(err, os.Chmod(dir, 0o755)); err != nil {
		return nil, errors.Join(err, r.End())
	}
	return r, nil
}

// End removes the run's directory. What the run has left mounted there, the watcher
// ends and names.
func (r *Run) End() error {
	var err error
	if len(MountsBelow(r.Dir)) == 0 {
		err = os.RemoveAll(r.Dir)
	}
	if r.watcher != nil {
		err = errors.Join(err, r.watcher.dismiss())
	}
	if r.lock != nil {
		r.lock.Close()
	}
	return err
}

// programEnv names a program to test instead of one that is built first.
const programEnv = "WSMOUNT_TEST_BINARY"

// Patient are the flags of go build by which wsmount waits so long for a daemon that runs
// that no busy machine is taken for one that hangs.
const Patient = "-ldflags=-X github.com/wsmount/wsmount/cmd/internal/control.answerLimit=10m"

// Program is wsmount as it is released, but Patient: what $WSMOUNT_TEST_BINARY names, or built.
func (r *Run) Program() (string, error) {
	if there := os.Getenv(programEnv); there != "" {
		return there, nil
	}
	// With the flags of a release its packages are those of a release, and built once.
	return r.build("released", []string{"CGO_ENABLED=0"}, "-trimpath")
}

// ProgramWithRaceDetector is wsmount built with that.
func (r *Run) ProgramWithRaceDetector() (string, error) { return r.build("race", nil, "-race") }

func (r *Run) build(how string, env []string, flags ...string) (string, error) {
	to := filepath.Join(r.Dir, "bin", how, "wsmount")
	args := append([]string{"build", "-o", to, Patient}, flags...)
	cmd := exec.CommandContext(context.Background(), "go", append(args, "github.com/wsmount/wsmount/cmd/wsmount")...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building wsmount: %w\n%s", err, out)
	}
	return to, nil
}

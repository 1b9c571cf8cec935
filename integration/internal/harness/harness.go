// Package harness builds the real wsmount, runs it as separate processes and
// finds what it leaves behind.
//
// It knows the command line and the documents that the program prints, nothing
// of its packages. It promises that a test package that uses Main fails on a
// mount, a process or a descriptor that outlives its test, on a daemon that had to
// contain a panic, and, where it runs with the race detector as in make soak, on a
// data race in a daemon.
//
//	func TestMain(m *testing.M) { harness.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		w := harness.New(t, harness.Options{})
//		ws := w.Workspace("@acme/one", "")
//		m := w.Mount(ws, "--read-only")
//		_, err := os.ReadDir(m.Dir)
//		...
//	}
package harness

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/testrun"
)

// root is the directory of the run: all that it makes lies below it.
var root string

// removals are those of worlds whose tests have ended.
var removals sync.WaitGroup

// The program under test, and the one for commands that end soon. Where the tests have
// the race detector the first has it, too; the second never: to begin with it takes a
// fifth of a second of a processor, which of the time of all tests was the third part.
// The daemons that are asked have it, and cmd/wsmount tests with it those commands that
// wait and tell of progress.
var program, asker string

// programEnv and askerEnv hand the two to a process that runs a test of its own.
const (
	programEnv = "WSMOUNT_TEST_PROGRAM"
	askerEnv   = "WSMOUNT_TEST_ASKER"
)

// Binary is the program under test.
func Binary() string { return program }

// asking are the commands for which asker is run.
var asking = []string{"umount", "status", "event", "pull", "commit", "push", "log", "diff", "restore", "conflicts",
	"validate", "resolve", "registry", "version", "help", "completion", "init"}

// programFor is what is run for a command line.
func programFor(args []string) string {
	if len(args) > 0 && slices.Contains(asking, args[0]) {
		return asker
	}
	return program
}

// Main builds the program, runs the tests and looks for leftovers.
func Main(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	r, err := testrun.Begin() // first: the run's watcher, which is this program, stays in it
	if err != nil {
		return fail("%v", err)
	}
	root = r.Dir
	if err := choosePrograms(r); err != nil {
		return fail("%v", errors.Join(err, r.End()))
	}
	before := descriptors()
	code := m.Run()
	removals.Wait()
	for _, problem := range leftovers(before) {
		code = fail("left over: %s", problem)
	}
	if err := r.End(); err != nil {
		code = fail("%v", err)
	}
	return code
}

func fail(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "harness: "+format+"\n", args...)
	return 1
}

// choosePrograms sets the programs, and tells them to the second process of a private test.
func choosePrograms(r *testrun.Run) (err error) {
	if program, asker = os.Getenv(programEnv), os.Getenv(askerEnv); program != "" {
		return nil
	}
	asker, err = r.Program()
	program = asker
	if Race && err == nil {
		program, err = r.ProgramWithRaceDetector()
	}
	return errors.Join(err, os.Setenv(programEnv, program), os.Setenv(askerEnv, asker))
}

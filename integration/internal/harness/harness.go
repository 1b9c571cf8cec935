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
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// root is the directory of one run of a test package: everything that it makes
// lies below it.
var root string

// rootPrefix begins the name of every root.
const rootPrefix = "wsmount-test-"

// base is where a run's directory is made. /var/tmp is on a disk where /tmp
// may be memory.
func base() string {
	if dir := os.Getenv("WSMOUNT_TEST_DIR"); dir != "" {
		return dir
	}
	return "/var/tmp"
}

// binaryEnv names a program to test instead of one that is built first, and askerEnv
// what is run where that only asks a daemon or reads what a mount has left.
const (
	binaryEnv = "WSMOUNT_TEST_BINARY"
	askerEnv  = "WSMOUNT_TEST_ASKER"
)

// Binary is the program under test.
func Binary() string {
	if there := os.Getenv(binaryEnv); there != "" {
		return there
	}
	return filepath.Join(root, "bin", "wsmount")
}

// asker is the program for commands that end soon. It has no race detector, whose
// beginning takes a fifth of a second of a processor: of the time of all tests that
// was the third part. The daemons that they ask have it, and cmd/wsmount tests with it
// those of them that wait and tell of progress.
func asker() string {
	if there := os.Getenv(askerEnv); there != "" || !Race || os.Getenv(binaryEnv) != "" {
		return cmp.Or(there, Binary())
	}
	return filepath.Join(root, "plain", "wsmount")
}

// asking are the commands for which asker is run.
var asking = []string{"umount", "status", "event", "pull", "commit", "push", "log", "diff", "restore", "conflicts",
	"validate", "resolve", "registry", "version", "help", "completion", "init"}

// program is what is run for a command line.
func program(args []string) string {
	if len(args) > 0 && slices.Contains(asking, args[0]) {
		return asker()
	}
	return Binary()
}

// Main builds the program, runs the tests and looks for leftovers.
func Main(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(privateEnv) != "" {
		leaveOthers()
	}
	var err error
	if root, err = os.MkdirTemp(base(), rootPrefix); err != nil {
		return fail("%v", err)
	}
	defer os.RemoveAll(root)
	lock, err := claim(root)
	if err != nil {
		return fail("%v", err)
	}
	defer lock.Close()
	sweep(base())
	if err := build(); err != nil {
		return fail("%v", err)
	}
	before := descriptors()
	code := m.Run()
	for _, problem := range leftovers(before) {
		code = fail("left over: %s", problem)
	}
	return code
}

func fail(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "harness: "+format+"\n", args...)
	return 1
}

// build builds the program as it is released; where the test was built with the race
// detector, with that as well.
func build() error {
	if err := os.Chmod(root, 0o755); err != nil {
		return err
	}
	if os.Getenv(binaryEnv) != "" {
		return nil
	}
	released := []string{"CGO_ENABLED=0"} // with -trimpath: then its parts are those of a release, and built once
	if !Race {
		return compile(Binary(), released, "-trimpath")
	}
	return errors.Join(compile(Binary(), nil, "-race"), compile(asker(), released, "-trimpath"))
}

func compile(to string, env []string, flags ...string) error {
	args := append([]string{"build", "-o", to}, flags...)
	cmd := exec.CommandContext(context.Background(), "go", append(args, "github.com/wsmount/wsmount/cmd/wsmount")...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building wsmount: %w\n%s", err, out)
	}
	return nil
}

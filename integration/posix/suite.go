package posix

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// who says which caller a case is for.
type who int

const (
	anyone who = iota // root and an ordinary user
	asRoot            // needs root, to act for several users or on devices
	asUser            // an ordinary user only: root may do what is refused here
)

// A Case is one rule.
type Case struct {
	Name string // family/rule
	who  who
	run  func(*T)
}

// Options choose what runs.
type Options struct {
	// LeftOut maps the name of a case that is known to fail to the reason. It
	// runs all the same, and the test fails when it passes, so that the list
	// cannot outlive its reasons.
	LeftOut map[string]string
	// Without names groups that do not run: what stands before the slash in the
	// names of their cases.
	Without []string
}

// Long are the groups that take long, and ask nothing of who calls and how content
// is kept: for Without, where they have run on a mount with the same names.
var Long = []string{"readdir", "exercise"}

// Content are the groups that ask what becomes of content and offsets, which nobody's
// rights change: for Without, where they have run on such a mount as its own user.
var Content = []string{"mmap", "fallocate", "copy_file_range", "sendfile and splice", "lseek", "fcntl", "flock", "lock", "unlinked", "stamps", "name"}

// Cases returns every case in the order in which Run runs them.
func Cases() []Case {
	return slices.Concat(
		openCases, createCases, tmpfileCases, readWriteCases, truncateCases,
		unlinkCases, unlinkedCases, dirCases, readdirCases, renameCases,
		renameFlagCases, linkCases, symlinkCases, nodeCases, nameCases,
		chmodCases, chownCases, privCases, stickyCases, timeCases, stampCases,
		xattrCases, aclCases, mmapCases, allocateCases, seekCases, copyCases,
		lockCases, statfsCases, syncCases, accessCases, execCases, noticeCases,
		exerciseCases,
	)
}

// Run runs every case that the calling user can run, each in a new directory
// below dir, which the user must be able to write to and others to pass.
func Run(t *testing.T, dir string, o Options) {
	t.Helper()
	checkLeftOut(t, o)
	for _, c := range Cases() {
		root := os.Geteuid() == 0
		if c.who == asRoot && !root || c.who == asUser && root {
			continue
		}
		if group, _, _ := strings.Cut(c.Name, "/"); slices.Contains(o.Without, group) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) { runCase(t, dir, c, o.LeftOut[c.Name]) })
	}
}

// checkLeftOut refuses reasons for cases that do not exist.
func checkLeftOut(t *testing.T, o Options) {
	t.Helper()
	names := map[string]bool{}
	for _, c := range Cases() {
		if names[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		names[c.Name] = true
	}
	for name := range o.LeftOut {
		if !names[name] {
			t.Errorf("left out: there is no case %s", name)
		}
	}
	for _, group := range o.Without {
		if !slices.ContainsFunc(Cases(), func(c Case) bool { return strings.HasPrefix(c.Name, group+"/") }) {
			t.Errorf("without: there is no group %s", group)
		}
	}
}

// runCase runs one case on a thread that is thrown away afterwards: a
// goroutine that ends while locked to its thread ends the thread too.
func runCase(t *testing.T, dir string, c Case, leftOut string) {
	w := newT(t, dir)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer w.recoverPanic()
		defer w.cleanup()
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			w.fatalf("unshare: %v", err)
		}
		unix.Umask(0o022)
		c.run(w)
	}()
	<-done
	report(t, w, leftOut)
}

func report(t *testing.T, w *T, leftOut string) {
	switch {
	case leftOut == "":
		for _, f := range w.failures {
			t.Error(f)
		}
	case len(w.failures) == 0:
		t.Errorf("passes, so its reason to be left out is gone: %s", leftOut)
	default:
		t.Logf("left out: %s (%s)", leftOut, strings.Join(w.failures, "; "))
	}
}

// newT makes the directory of one case.
func newT(t *testing.T, dir string) *T {
	name := strings.NewReplacer("/", "-").Replace(t.Name())
	own := filepath.Join(dir, fmt.Sprintf("%.60s.%d", name[max(0, len(name)-60):], os.Getpid()))
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(own); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	return &T{Dir: own}
}

package cache

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// A mount is served by a process of its own: one that touches its own mount
// waits for itself sooner or later.
const (
	childMount  = "WSMOUNT_CACHE_TEST_MOUNT"
	childState  = "WSMOUNT_CACHE_TEST_STATE"
	childPolicy = "WSMOUNT_CACHE_TEST_POLICY"
)

const beside = "beside" // a directory at the backend that no test touches

// childPolicies are what a mount can be told, by name: whether close waits for
// the backend.
var childPolicies = map[string]Policy{
	"waits":   {},
	"gathers": {NoWait: true, Window: 100 * time.Millisecond, MaxUnsaved: 1 << 50}, // some cases make files of terabytes, all hole
}

func TestMain(m *testing.M) {
	if mountpoint := os.Getenv(childMount); mountpoint != "" {
		if err := serveChild(mountpoint, os.Getenv(childState)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	fewerChecks()
	os.Exit(testrun.Main(m))
}

// fewerChecks sets how often the models are tried, unless the command line says so
// (-rapid.checks): there are many of them.
func fewerChecks() {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "rapid.checks" })
	if !said {
		flag.Set("rapid.checks", tier.Pick("3", "50"))
	}
}

// serveChild mounts a working copy over a store in memory, says so, and takes it
// away when its standard input ends. What it prints last is what the backend
// has then. There is so much beside what the tests make that no end of theirs
// is taken for an accident (see massdelete.go).
func serveChild(mountpoint, state string) error {
	p := smallStore{memory.New(memory.Options{})}
	for i := range 2000 {
		l := providers.MustLocator(fmt.Sprintf("%s/%d", beside, i))
		if _, err := p.Write(context.Background(), l, providers.String(""), providers.WriteOptions{If: providers.IfAbsent()}); err != nil {
			return err
		}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	v, err := Open(context.Background(), p, Options{StateDir: state, Provider: "memory", Log: log, strict: true,
		Policy: childPolicies[os.Getenv(childPolicy)]})
	if err != nil {
		return err
	}
	options := fs.Options{AllowOther: os.Geteuid() == 0, MountOptions: []string{"suid", "dev"}, Log: log}
	s, err := fs.Serve(mountpoint, []fs.Part{{Name: "@acme/test", Volume: v}}, options)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	for err := s.Unmount(); err != nil; err = s.Unmount() {
		time.Sleep(20 * time.Millisecond) // a program of the test is on its way out
	}
	s.Wait()
	for _, line := range listBackend(p) {
		if !strings.HasPrefix(line, beside+"/") {
			fmt.Println(line)
		}
	}
	locked := v.lock()
	defer locked.unlock()
	for _, problem := range locked.problems {
		fmt.Printf("problem: %s %s: %v\n", problem.Op, problem.Path, problem.Err)
	}
	return nil
}

// passable is a new directory that every user can pass.
func passable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "wsmount-cache")
	assert.OK(t, err)
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil { // not RemoveAll: something may be mounted
			t.Error(err)
		}
	})
	assert.OK(t, os.Chmod(dir, 0o755))
	return dir
}

// smallStore refuses what would not fit into memory: some cases make files of
// terabytes, all hole.
type smallStore struct{ *memory.Provider }

func (s smallStore) Write(ctx context.Context, l providers.Locator, b providers.Body, o providers.WriteOptions) (providers.Info, error) {
	if b.Size > 64<<20 {
		return providers.Info{}, &providers.Error{Op: providers.MethodWrite, Locator: l, Kind: providers.ErrTooLarge}
	}
	return s.Provider.Write(ctx, l, b, o)
}

func (s smallStore) Capabilities() providers.Capabilities {
	c := s.Provider.Capabilities()
	c.MaxSize = 64 << 20
	return c
}

// mount gives a mounted working copy over an empty memory provider. unmount
// ends it and returns what the child then printed.
func mount(t *testing.T, policy string) (dir string, unmount func() []string) {
	t.Helper()
	tier.RequireRoot(t)
	tier.RequireFUSE(t)
	dir = passable(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childMount+"="+dir, childState+"="+t.TempDir(), childPolicy+"="+policy)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // outlives us, to unmount
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	assert.OK(t, cmd.Start())
	lines := bufio.NewScanner(out)
	ended := false
	unmount = func() []string {
		if ended {
			return nil
		}
		ended = true
		in.Close()
		var rest []string
		for lines.Scan() {
			rest = append(rest, lines.Text())
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the serving process: %v", err)
			unix.Unmount(dir, unix.MNT_DETACH)
		}
		return rest
	}
	t.Cleanup(func() { unmount() })
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatal("the serving process did not start")
	}
	return dir, unmount
}

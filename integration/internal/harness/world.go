package harness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// Options choose who lives in a world.
type Options struct {
	// UID is the user and group that runs wsmount; 0 is the user who runs the
	// test. Only root can choose another.
	UID uint32

	// Config is the text of the host configuration.
	Config string
}

// A World is a host of its own: home, configuration, state, workspaces.
type World struct {
	t   testing.TB
	o   Options
	Dir string // everything lies below it; everyone may pass
	env []string
}

// Env adds variables, as NAME=value, to what programs get from now on.
func (w *World) Env(variables ...string) { w.env = append(w.env, variables...) }

// New makes a world for one test.
func New(t testing.TB, o Options) *World {
	t.Helper()
	tier.RequireFUSE(t)
	dir, err := os.MkdirTemp(root, "world-")
	if err != nil {
		t.Fatal(err)
	}
	w := &World{t: t, o: o, Dir: dir}
	// The first cleanup is the last that runs. All worlds of a run together take
	// gigabytes, and nothing of one is asked for after its test. To remove the thousands
	// of files of some takes seconds, in which other tests can begin.
	t.Cleanup(func() {
		if t.Failed() {
			w.showLogs()
		}
		if len(testrun.MountsBelow(dir)) == 0 {
			removals.Go(func() { os.RemoveAll(dir) })
		}
	})
	w.own(dir, 0o755)
	for _, sub := range []string{"home", "config", "config/wsmount", "state", "tmp"} {
		w.Mkdir(sub, 0o700)
	}
	if o.Config != "" {
		w.Write("config/wsmount/config.yaml", o.Config, 0o600)
	}
	return w
}

// showLogs logs the end of each daemon's log, and the last words of one that crashed:
// what fails once in a thousand runs is not seen again.
func (w *World) showLogs() {
	logs, _ := filepath.Glob(w.Path("state/*/*/*/log"))
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		w.t.Logf("%s:\n%s", path, text[max(0, len(text)-8000):])
		if text, err := os.ReadFile(filepath.Join(filepath.Dir(path), "crash.log")); err == nil && len(text) > 0 {
			w.t.Logf("crashed:\n%s", text[:min(len(text), 200_000)])
		}
	}
}

// Path is a path in the world.
func (w *World) Path(elem ...string) string {
	return filepath.Join(append([]string{w.Dir}, elem...)...)
}

// Mkdir makes a directory that belongs to the world's user.
func (w *World) Mkdir(path string, mode os.FileMode) string {
	w.t.Helper()
	if err := os.MkdirAll(w.Path(path), mode); err != nil {
		w.t.Fatal(err)
	}
	w.own(w.Path(path), mode)
	return w.Path(path)
}

// Write writes a file that belongs to the world's user.
func (w *World) Write(path, text string, mode os.FileMode) string {
	w.t.Helper()
	if err := os.WriteFile(w.Path(path), []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
	w.own(w.Path(path), mode)
	return w.Path(path)
}

// Own gives a directory to the world's user, when something was mounted there.
func (w *World) Own(path string, mode os.FileMode) {
	w.t.Helper()
	w.own(w.Path(path), mode)
}

func (w *World) own(path string, mode os.FileMode) {
	w.t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		w.t.Fatal(err)
	}
	if w.o.UID != 0 {
		if err := os.Chown(path, int(w.o.UID), int(w.o.UID)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// Workspace makes a directory with a manifest, beside which its files lie.
// mode is the sync mode; empty is the provider's own.
func (w *World) Workspace(id, mode string) string {
	w.t.Helper()
	owner, slug, _ := strings.Cut(strings.TrimPrefix(id, "@"), "/")
	dir := w.Mkdir("ws-"+owner+"-"+slug, 0o755)
	storage := "storage:\n  inline:\n    provider: local-fs\n    config:\n      mount_path: " + dir + "\n"
	if mode != "" {
		storage += "    sync:\n      mode: " + mode + "\n"
	}
	w.Write("ws-"+owner+"-"+slug+"/WORKSPACE.md", Manifest(id, storage), 0o644)
	return dir
}

// Manifest is the text of a WORKSPACE.md with further blocks.
func Manifest(id, blocks string) string {
	owner, slug, _ := strings.Cut(strings.TrimPrefix(id, "@"), "/")
	return "---\nschema: workspace/v1\nid: \"" + id + "\"\nversion: \"0.1.0\"\nname: " + slug +
		"\nowner:\n  type: org\n  id: owner-of-" + owner + "\n  slug: " + owner + "\n" + blocks + "---\n\n# " + slug + "\n"
}

// A Result is how a run of the program ended.
type Result struct {
	Out, Err string
	Code     int
}

// Run runs wsmount to its end.
func (w *World) Run(args ...string) Result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Hangs)
	defer cancel()
	cmd := w.Command(ctx, programFor(args), args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		w.t.Fatalf("wsmount %s: %v\n%s", strings.Join(args, " "), err, errOut.String())
	}
	return Result{out.String(), errOut.String(), cmd.ProcessState.ExitCode()}
}

// lavish has programs that were built with the race detector collect garbage rarely:
// there a sync.Pool forgets at random, so that each second request of the kernel takes
// a new buffer of 1 MiB, and the collector would run all the time.
func lavish() []string {
	if Race {
		return []string{"GOGC=800"}
	}
	return nil
}

// Command prepares a program that runs as the world's user, with the world's
// environment.
func (w *World) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Minute // a child that does not run its own program yet has the pipes, too
	cmd.Dir = w.Dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.Path("home"), "TMPDIR=" + w.Path("tmp"), "LANG=C.UTF-8",
		"XDG_CONFIG_HOME=" + w.Path("config"), "WSMOUNT_STATE_DIR=" + w.Path("state"),
		"GORACE=atexit_sleep_ms=0 log_path=" + filepath.Join(root, "race"),
	}, append(lavish(), w.env...)...)
	if w.o.UID != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: w.o.UID, Gid: w.o.UID}}
	}
	return cmd
}

// MustRun runs wsmount, which must end well, and returns what it printed.
func (w *World) MustRun(args ...string) string {
	w.t.Helper()
	r := w.Run(args...)
	if r.Code != 0 {
		w.t.Fatalf("wsmount %s: exit %d\n%s%s", strings.Join(args, " "), r.Code, r.Out, r.Err)
	}
	return r.Out
}

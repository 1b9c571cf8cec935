package integration

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/tier"
)

// Exit codes of the program.
const (
	exitInvalid      = 3
	exitUnresolvable = 4
	exitDenied       = 5
	exitUnreachable  = 6
)

// refused checks that a mount is refused with this exit code, naming what.
func refused(t *testing.T, w *harness.World, code int, what string, args ...string) {
	t.Helper()
	dir := w.Mkdir("refused", 0o755)
	r := w.Run(append([]string{"mount", args[0], dir}, args[1:]...)...)
	if r.Code != code || !strings.Contains(r.Err, what) {
		t.Errorf("exit %d, want %d; want %q in\n%s", r.Code, code, what, r.Err)
	}
	if r.Code == 0 {
		w.Run("umount", dir)
	}
	if !strings.HasPrefix(r.Err, "wsmount: ") || !strings.Contains(r.Err, "\nhint: ") {
		t.Errorf("a refusal says what and what to do; got\n%s", r.Err)
	}
}

// elsewhere is a manifest of @acme/x whose files lie in another directory.
func elsewhere(w *harness.World, path string) string {
	return harness.Manifest("@acme/x", "storage: {inline: {provider: local-fs, config: {mount_path: \""+path+"\"}}}\n")
}

// A manifest reaches its own directory and what the host allows, nothing else.
func TestTrustPaths(t *testing.T) {
	t.Parallel()
	t.Run("outside allow_paths", func(t *testing.T) {
		w := harness.New(t, harness.Options{})
		private := w.Mkdir("private", 0o755)
		dir := w.Mkdir("x", 0o755)
		w.Write("x/WORKSPACE.md", elsewhere(w, private), 0o644)
		refused(t, w, exitDenied, private, dir)
		w.Run("registry", "add", dir)
		refused(t, w, exitDenied, private, "@acme/x")
	})
	t.Run("by a symlink", func(t *testing.T) {
		w := harness.New(t, harness.Options{})
		private := w.Mkdir("private", 0o755)
		dir := w.Mkdir("x", 0o755)
		assert.OK(t, os.Symlink(private, dir+"/data"))
		w.Write("x/WORKSPACE.md", elsewhere(w, dir+"/data"), 0o644)
		refused(t, w, exitDenied, "", dir)
	})
	t.Run("allowed by the host", func(t *testing.T) {
		w := harness.New(t, harness.Options{})
		srv := w.Mkdir("srv", 0o755)
		w.Write("config/wsmount/config.yaml", "allow_paths: [ \""+srv+"\" ]\n", 0o600)
		w.Write("srv/f", "x", 0o644)
		dir := w.Mkdir("x", 0o755)
		w.Write("x/WORKSPACE.md", elsewhere(w, srv), 0o644)
		w.MustRun("registry", "add", dir)
		m := w.Mount("@acme/x")
		checkContent(t, m.Dir+"/f", "x")
	})
	t.Run("configuration that others can write", func(t *testing.T) {
		w := harness.New(t, harness.Options{Config: "allow_paths: [ / ]\n"})
		assert.OK(t, os.Chmod(w.Path("config/wsmount/config.yaml"), 0o666))
		refused(t, w, exitDenied, "config.yaml", w.Workspace("@acme/x", ""))
	})
}

// A workspace that is not registered is said to be so.
func TestTrustUnverified(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{})
	dir := w.Workspace("@acme/x", "")
	if m := w.Mount(dir); !m.Status().Unverified {
		t.Error("a manifest given by path is not shown as unverified")
	}
	other := w.Workspace("@acme/y", "")
	if m := w.Mount(other, "--trust"); m.Status().Unverified {
		t.Error("--trust: shown as unverified")
	}
	w.MustRun("registry", "add", w.Workspace("@acme/z", ""))
	if m := w.Mount("@acme/z"); m.Status().Unverified {
		t.Error("a registered workspace is shown as unverified")
	}
}

// No program in the mount changes the files that govern it.
func TestTrustGoverning(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{})
	dir := w.Workspace("@acme/x", "")
	want, err := os.ReadFile(dir + "/WORKSPACE.md")
	assert.OK(t, err)
	m := w.Mount(dir)
	f := m.Dir + "/WORKSPACE.md"
	write(t, m.Dir+"/evil", "evil")
	for what, err := range map[string]error{
		"write": os.WriteFile(f, []byte("evil"), 0o644), "append": tryOpen(f, unix.O_WRONLY|unix.O_APPEND), "truncate": unix.Truncate(f, 0),
		"unlink": unix.Unlink(f), "rename away": unix.Rename(f, m.Dir+"/x"), "rename over": unix.Rename(m.Dir+"/evil", f),
		"exchange": unix.Renameat2(unix.AT_FDCWD, m.Dir+"/evil", unix.AT_FDCWD, f, unix.RENAME_EXCHANGE),
		"chmod":    unix.Chmod(f, 0o666), "utimes": os.Chtimes(f, fixedTime, fixedTime), "setxattr": unix.Setxattr(f, "user.a", []byte("x"), 0),
		"link": unix.Link(f, m.Dir+"/other"),
	} {
		checkErr(t, what, err, syscall.EROFS)
	}
	checkContent(t, f, string(want))
	checkContent(t, dir+"/WORKSPACE.md", string(want))
	log, err := os.ReadFile(m.Dir + "/.wsmount/errors.log")
	assert.OK(t, err)
	assert.Contains(t, string(log), "WORKSPACE.md", "errors.log")
}

// A user's mount is his own: not even root enters it unless he lets others in.
func TestTrustOthers(t *testing.T) {
	t.Parallel()
	tier.RequireRoot(t)
	w := harness.New(t, harness.Options{UID: userID})
	m := w.Mount(w.Workspace("@acme/x", ""))
	_, err := os.ReadDir(m.Dir)
	checkErr(t, "root lists a user's mount", err, syscall.EACCES)
	out, err := w.Command(t.Context(), "ls", m.Dir).CombinedOutput()
	if err != nil || string(out) != "WORKSPACE.md\n" {
		t.Errorf("the user lists his mount: got %q, %v", out, err)
	}
}

// The daemon's secrets are not for other programs, not even of the same user.
func TestTrustDaemon(t *testing.T) {
	t.Parallel()
	tier.RequireRoot(t)
	w := harness.New(t, harness.Options{UID: userID})
	m := w.Mount(w.Workspace("@acme/x", ""))
	for _, file := range []string{"environ", "mem", "maps"} {
		out, err := w.Command(t.Context(), "head", "-c", "1", "/proc/"+itoa(m.PID)+"/"+file).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "Permission denied") {
			t.Errorf("%s of the daemon: got %v, %q; want it refused", file, err, out)
		}
	}
	sockets, err := filepath.Glob(w.Path("state/*/*/*/*sock*"))
	if err != nil || len(sockets) == 0 {
		t.Fatalf("no control socket: %v", err)
	}
	for _, s := range sockets {
		info, err := os.Stat(s)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %v, %v; want 0600", s, info.Mode(), err)
		}
	}
}

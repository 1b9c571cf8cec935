package state

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/providers/flock"
)

func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }

func open(t *testing.T, root string) *Dir {
	t.Helper()
	d := assert.Of(Open(root, "acme", "ops", "f1", nil)).OK(t)
	t.Cleanup(func() { d.Close() })
	return d
}

func record(t *testing.T, d *Dir) Record {
	t.Helper()
	r := Record{Workspace: "@acme/ops", Mountpoint: "/mnt/ws"}
	assert.OK(t, r.Identify())
	assert.OK(t, d.SaveRecord(r))
	return r
}

func TestRoot(t *testing.T) {
	home := map[string]string{"HOME": "/home/bob"}
	own := "/home/bob/.local/state/wsmount"
	if os.Geteuid() == 0 {
		own = "/var/lib/wsmount"
	}
	tests := []struct {
		name, explicit string
		env            map[string]string
		want           string
	}{
		{"explicit wins", "/srv/state", map[string]string{"XDG_STATE_HOME": "/x"}, "/srv/state"},
		{"XDG", "", map[string]string{"XDG_STATE_HOME": "/x", "HOME": "/home/bob"}, "/x/wsmount"},
		{"a relative XDG is ignored", "", map[string]string{"XDG_STATE_HOME": "x", "HOME": "/home/bob"}, own},
		{"default", "", home, own},
	}
	for _, tt := range tests {
		got, err := Root(tt.explicit, func(k string) string { return tt.env[k] })
		assert.Is(t, err, nil, tt.name)
		assert.Equal(t, got, tt.want, tt.name)
	}
}

func TestSecondOpenNamesTheFirst(t *testing.T) {
	root := t.TempDir()
	d := open(t, root)
	var locked *LockedError
	if _, err := Open(root, "acme", "ops", "f1", nil); !errors.As(err, &locked) || locked.Holder != nil {
		t.Fatalf("before the record: got %v", err)
	}
	record(t, d)
	if _, err := Open(root, "acme", "ops", "f1", nil); !errors.As(err, &locked) || locked.Holder == nil {
		t.Fatalf("got %v, want a LockedError with its holder", err)
	}
	got := locked.Error()
	assert.True(t, strings.Contains(got, "/mnt/ws") && strings.Contains(got, "@acme/ops"), "the message does not name the mount:", got)
	part, err := Open(root, "acme", "lib", "f1", nil)
	assert.OK(t, err)
	assert.OK(t, part.SaveParent(d, "vendor/lib"))
	_, err = Open(root, "acme", "lib", "f1", nil)
	assert.Contains(t, err.Error(), "@acme/lib is mounted already at /mnt/ws/vendor/lib, as a part of @acme/ops")
	assert.True(t, MountOf(d.Path()) != nil && MountOf(part.Path()) != nil, "a mount and its part")
	part.Close()
	part, err = Open(root, "acme", "lib", "f1", nil)
	assert.True(t, MountOf(part.Path()) == nil, "what a command has is mounted")
	assert.OK(t, err, "when the mount it was a part of has let go of it")
	_, err = Open(root, "acme", "lib", "f1", nil)
	assert.Contains(t, err.Error(), "that is starting", "by itself")
	part.Close()
	other, err := Open(root, "acme", "ops", "f2", nil)
	assert.OK(t, err, "another working copy")
	other.Close()
	d.Close()
	open(t, root)
}

// To ask whether a directory is held keeps nobody from asking too.
func TestHeld(t *testing.T) {
	d := open(t, t.TempDir())
	assert.True(t, Held(d.Path()), "open")
	assert.OK(t, d.Close())
	asking := assert.Of(flock.Shared(filepath.Join(d.Path(), lockName))).OK(t)
	assert.False(t, Held(d.Path()), "while another asks")
	assert.OK(t, asking.Close())
	assert.False(t, Held(t.TempDir()), "without a lock")
}

func TestOneWinsUnderContention(t *testing.T) {
	root := t.TempDir()
	var wg sync.WaitGroup
	won := make(chan *Dir, 16)
	for range cap(won) {
		wg.Go(func() {
			if d, err := Open(root, "acme", "ops", "f1", nil); err == nil {
				won <- d
			}
		})
	}
	wg.Wait()
	assert.Equal(t, len(won), 1, "hold the lock")
	(<-won).Close()
}

func TestModes(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "new", "state"))
	assert.OK(t, os.Chmod(d.Path(), 0o755))
	d.Close()
	d = open(t, filepath.Dir(filepath.Dir(filepath.Dir(d.Path()))))
	record(t, d)
	for path, want := range map[string]os.FileMode{d.Path(): 0o700, filepath.Join(d.Path(), "lock"): 0o600,
		filepath.Join(d.Path(), "mount.json"): 0o600} {
		assert.Equal(t, assert.Of(os.Stat(path)).OK(t).Mode().Perm(), want, path, "mode")
	}
}

// Each stands for a way to put state where an attacker can replace it.
func TestOpenRefuses(t *testing.T) {
	refused := func(code exit.Code, what, root, owner, slug, fp string) {
		t.Helper()
		d, err := Open(root, owner, slug, fp, nil)
		if err == nil {
			d.Close()
			t.Fatal("was not refused:", what)
		}
		assert.Equal(t, exit.From(err).Code, code, what, err)
	}
	root := t.TempDir()
	refused(exit.Failed, "a name that climbs", root, "..", "ops", "f")
	refused(exit.Failed, "a name with a slash", root, "acme", "a/b", "f")
	refused(exit.Failed, "an empty name", root, "acme", "ops", "")
	assert.OK(t, os.Symlink(t.TempDir(), filepath.Join(root, "link")))
	refused(exit.Denied, "a symbolic link in the place of a directory", root, "link", "ops", "f")
	assert.OK(t, os.Mkdir(filepath.Join(root, "open"), 0o700))
	assert.OK(t, os.Chmod(filepath.Join(root, "open"), 0o770))
	refused(exit.Denied, "an owner's directory that others may write", root, "open", "ops", "f")
	assert.OK(t, os.Chmod(root, 0o777))
	refused(exit.Denied, "a state directory that others may write", root, "acme", "ops", "f")
}

func TestCheckPrivate(t *testing.T) {
	dir := t.TempDir()
	assert.OK(t, os.WriteFile(dir+"/file", nil, 0o600))
	for path, code := range map[string]exit.Code{dir: exit.Done, dir + "/none": exit.Done, dir + "/file": exit.Denied} {
		err := CheckPrivate(path)
		assert.True(t, (err == nil) == (code == exit.Done) && (err == nil || exit.From(err).Code == code), path, "got", err)
	}
	if os.Geteuid() != 0 {
		return // nobody else gives a file away
	}
	assert.OK(t, os.Chown(dir, 4711, -1))
	assert.Contains(t, CheckPrivate(dir).Error(), "belongs to user 4711")
}

func TestListAndForget(t *testing.T) {
	root := filepath.Join(t.TempDir(), "odd [name]*")
	assert.Equal(t, len(assert.Of(List(root)).OK(t)), 0, "no state directory")
	d := open(t, root)
	record(t, d)
	assert.OK(t, d.SaveStatus([]byte(`{"x":1}`)))
	got := assert.Of(List(root)).OK(t)
	assert.Must(t, len(got) == 1 && got[0].Mountpoint == "/mnt/ws" && got[0].SocketPath() == d.SocketPath(), got)
	status, _, err := got[0].Status()
	assert.True(t, err == nil && string(status) == `{"x":1}`, "status: got", status, err)
	assert.True(t, Forget(got[0]) != nil, "the record of a living mount was forgotten")
	d.lock.Close() // as if the daemon had been killed
	assert.Is(t, Forget(got[0]), nil, "forget")
	got, _ = List(root)
	assert.True(t, len(got) == 0, "still listed:", got)
}

func TestAlive(t *testing.T) {
	r := Record{}
	assert.OK(t, r.Identify())
	assert.Must(t, r.Alive(), "this process is not alive")
	for name, change := range map[string]func(*Record){
		"a later process of the same number": func(r *Record) { r.StartTicks++ },
		"before a reboot":                    func(r *Record) { r.BootID = "other" },
		"no such process":                    func(r *Record) { r.PID = 1 << 30 },
	} {
		c := r
		change(&c)
		assert.False(t, c.Alive(), name, "counts as alive")
	}
}

// cat is a process that ends with its input, and its record.
func cat(t *testing.T) (cmd *exec.Cmd, in io.WriteCloser, out io.Reader, r Record) {
	t.Helper()
	cmd = exec.Command("cat")
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	assert.OK(t, errors.Join(inErr, outErr, cmd.Start()))
	ticks := assert.Of(startTicks(cmd.Process.Pid)).OK(t)
	return cmd, in, out, Record{PID: cmd.Process.Pid, StartTicks: ticks, BootID: bootID()}
}

func TestAZombieIsNotAlive(t *testing.T) {
	cmd, in, _, r := cat(t)
	assert.True(t, r.Alive(), "a running child is not alive")
	in.Close()
	var info unix.Siginfo
	assert.OK(t, unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)) // ended, not reaped
	assert.False(t, r.Alive(), "a child that has ended is alive")
	assert.OK(t, cmd.Wait())
}

func TestVolatile(t *testing.T) {
	name, is := Volatile("/dev/shm/not/there")
	assert.True(t, is && name == "tmpfs", "/dev/shm", name, is)
}

// Kill ends the process that the record means, and no other of its number.
func TestKill(t *testing.T) {
	cmd, in, out, r := cat(t)
	defer cmd.Process.Kill()
	another := r
	another.StartTicks++
	assert.Is(t, another.Kill(), nil, "another process")
	_, err := in.Write([]byte("alive"))
	_, readErr := io.ReadFull(out, make([]byte, 5))
	assert.OK(t, errors.Join(err, readErr), "a process that is not the daemon was killed")
	assert.OK(t, r.Kill())
	_ = cmd.Wait()
	assert.Equal(t, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), syscall.SIGKILL, "ended by")
	assert.Is(t, r.Kill(), nil, "a daemon that has ended")
}

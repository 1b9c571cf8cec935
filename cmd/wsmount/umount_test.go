package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// A daemon that is killed while it is asked hangs up before it is gone.
func TestUmountWhileTheDaemonDies(t *testing.T) {
	for _, tt := range []struct {
		name   string
		hangUp func(*net.UnixListener)
	}{
		{"reset", func(l *net.UnixListener) { c, _ := l.AcceptUnix(); unread(c); c.Close() }},
		{"end of file", func(l *net.UnixListener) { c, _ := l.Accept(); c.Read(make([]byte, 4096)); c.Close() }},
		{"refused", func(l *net.UnixListener) { l.Close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := mountNotes(t)
			pid := w.status().PID
			t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
			l := w.standIn()
			go func() {
				tt.hangUp(l)
				time.Sleep(50 * time.Millisecond) // it may be seen alive, and need not be
				syscall.Kill(pid, syscall.SIGKILL)
				l.Close() // as the end of the daemon does, with every other connection
			}()
			w.ok("umount", "mnt")
			assert.False(t, isMounted(w.path("mnt")), "the dead mount is left")
			w.ok(notes, "mnt")
		})
	}
}

// unread waits for a request, and leaves it unread.
func unread(c *net.UnixConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		return err != syscall.EAGAIN
	})
}

// A daemon that hangs up and goes on is ended by force, which does not wait for its death.
func TestForcedUmountWhenTheDaemonHangsUp(t *testing.T) {
	w := mountNotes(t)
	pid := w.status().PID
	l := w.standIn()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			c.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), hangs)
	defer cancel()
	var says strings.Builder
	code := run(ctx, []string{"--state-dir", w.path("state"), "umount", w.path("mnt"), "--force", "--timeout", hangs.String()}, io.Discard, &says)
	assert.Equal(t, code, exit.Done, "by force", says.String())
	assert.False(t, isMounted(w.path("mnt")) || alive(pid), "the mount or its daemon is left")
}

// standIn listens in the place of the daemon's control API.
func (w *world) standIn() *net.UnixListener {
	w.t.Helper()
	found, err := filepath.Glob(w.path("state/*/*/*/control.sock"))
	assert.Must(w.t, err == nil && len(found) == 1, found, err)
	dir, err := os.Open(filepath.Dir(found[0])) // its name may be too long for a socket
	assert.OK(w.t, err)
	defer dir.Close()
	assert.OK(w.t, os.Remove(found[0]))
	l := assert.Of(net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/control.sock", dir.Fd())})).OK(w.t)
	l.SetUnlinkOnClose(false)
	w.t.Cleanup(func() { l.Close() })
	return l
}

// A close that waits for the store keeps the mount in use, although its program
// has no descriptor any more that one could see.
func TestBusyWithAClose(t *testing.T) {
	w, r := mountFiles(t, "mode: canonical", "--patience", hangs.String())
	w.write("mnt/a", "1")
	r.cut(t)
	w.write("new", "22")
	writer := exec.Command("cp", w.path("new"), w.path("mnt/a"))
	assert.OK(t, writer.Start())
	eventually(t, "the close", func() bool {
		waits, _ := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", writer.Process.Pid))
		return len(w.status().OpenFiles) == 1 && strings.HasPrefix(string(waits), fmt.Sprint(syscall.SYS_CLOSE, " "))
	})
	o := w.run("umount", "mnt") // once: no program is seen, so that it waits for one that ends
	assert.True(t, o.code == exit.Failed && !strings.Contains(o.errOut, "no program") && strings.Contains(o.errOut, "is in use: 1 file is open"), "umount: got", o)
	r.connect(t)
	writer.Wait()
}

// otherNamespace starts a process in a mount namespace of its own, which has a copy of
// every mount of this world; those of tests beside it could not end as long as it has them.
func (w *world) otherNamespace() (pid int, end func()) {
	t := w.t
	t.Helper()
	tier.RequireRoot(t)
	others := slices.DeleteFunc(testrun.MountsBelow(testrun.Base()), func(at string) bool { return strings.HasPrefix(at, w.dir+"/") })
	cmd := exec.Command("unshare", append([]string{"-m", "--propagation", "private", "sh", "-c", `umount -i -l "$@"; echo && exec cat`, "sh"}, others...)...)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	assert.OK(t, cmd.Start())
	end = sync.OnceFunc(func() { in.Close(); cmd.Wait() })
	t.Cleanup(end)
	_, err := bufio.NewReader(out).ReadString('\n')
	tier.Require(t, "a mount namespace", err == nil)
	return cmd.Process.Pid, end
}

// A mount that another mount namespace has a copy of cannot end. It is unmounted
// all the same, and what is mounted in its place is asked from then on.
func TestUmountOfWhatAnotherNamespaceHas(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	first, second := w.workspace("first"), w.workspace("second")
	w.ok(first, "mnt")
	old := w.status().PID
	pid, end := w.otherNamespace()
	holder := fmt.Sprintf("cat (pid %d)", pid)

	assert.Contains(t, w.ok("umount", "mnt"), holder, "umount does not name")
	s := w.status()
	assert.True(t, s.State == control.Detached && len(s.HeldBy) == 1 && s.HeldBy[0].PID == pid, "status: got", s.State, "held by", s.HeldBy)
	assert.Contains(t, w.shown("mnt"), holder, "status")
	w.ok("umount", "mnt") // again: nothing is left to do
	w.mkdir("mnt2")
	for _, at := range []string{"mnt", "mnt2"} {
		w.refused(exit.Failed, "end that", first, at, "--if-not-mounted")
	}

	w.ok(second, "mnt")
	assert.Equal(t, w.status().Workspace, second, "status of the mount point is that of")
	dirs := assert.Of(filepath.Glob(w.path("state/acme/first/*"))).OK(t)
	assert.Must(t, len(dirs) == 1, dirs)
	ask := control.NewClient((&state.Record{Dir: dirs[0]}).SocketPath())
	_, err := ask.Unmount(t.Context(), control.UnmountRequest{Lazy: true})
	assert.True(t, err != nil && isMounted(w.path("mnt")), "the first daemon has taken away what is not its own", err)
	w.ok("event", "mnt", "turn-end")
	w.ok("umount", "mnt")
	assert.False(t, isMounted(w.path("mnt")), "the second mount is left")
	end()
	eventually(t, "the first daemon to end", func() bool { return !alive(old) })
	w.ok(first, "mnt2")
	w.ok("umount", "mnt2")
}

// A program that is ending is named with what it holds, whether it was waited for or
// did not come to its end.
func TestUmountNamesWhatIsEnding(t *testing.T) {
	ends := mountpoint.Holder{PID: 7, Name: "cat", Uses: []string{"open: notes"}, Exiting: true}
	lives := mountpoint.Holder{PID: 8, Name: "vi", Uses: []string{"open: plan"}}
	for _, tt := range []struct {
		name       string
		res        control.UnmountResult
		says, hint string
	}{
		{"waited for", control.UnmountResult{Unmounted: true, WaitedFor: []mountpoint.Holder{ends}}, "waited for a program that was ending: cat (pid 7)", ""},
		{"not ended", control.UnmountResult{Busy: true, Holders: []mountpoint.Holder{ends}}, "cat (pid 7), which is ending: open: notes", "this program is ending: try again"},
		{"a living one too", control.UnmountResult{Busy: true, Holders: []mountpoint.Holder{ends, lives}}, "vi (pid 8): open: plan", "end these programs (7, 8)"},
	} {
		var out strings.Builder
		err := reportUmount(&out, false, tt.res)
		if !strings.Contains(out.String(), tt.says) || (err != nil) != (tt.hint != "") || err != nil && !strings.Contains(exit.From(err).Advice, tt.hint) {
			t.Errorf("%s: got %q and %+v", tt.name, out.String(), exit.From(err))
		}
	}
}

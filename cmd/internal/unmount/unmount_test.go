package unmount

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/fs/proc"
	"github.com/wsmount/wsmount/integration/assert"
)

// codeOf is the exit code that an error, or none, becomes.
func codeOf(err error) exit.Code {
	if err == nil {
		return exit.Done
	}
	return exit.From(err).Code
}

// The daemon's exit code is seen by nobody, so umount must pass on what it says
// at the end, and only what this daemon says.
func TestLastWord(t *testing.T) {
	for status, want := range map[string]exit.Code{
		`{"pid": 7}`:                         exit.Done,
		`{"pid": 7, "notSafe": "two files"}`: exit.Unsafe,
		`{"pid": 8, "notSafe": "two files"}`: exit.Done, // another daemon's word
		`{`:                                  exit.Done,
	} {
		r := &state.Record{Dir: t.TempDir(), PID: 7}
		assert.OK(t, os.WriteFile(filepath.Join(r.Dir, "status.json"), []byte(status), 0o600))
		assert.Equal(t, codeOf(LastWord(r)), want, status)
	}
}

// A working copy that is locked after its daemon's end is passed over in silence only if
// the next mount has it; else nobody would hear of what is unsent in it.
func TestExportOfALockedCopy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "acme", "notes", "1")
	assert.OK(t, os.MkdirAll(filepath.Join(dir, state.CopyName, "names"), 0o700))
	lock := assert.Of(os.Create(filepath.Join(dir, state.CopyName, "lock"))).OK(t)
	defer lock.Close()
	assert.OK(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the time to wait for it is over
	gone := &state.Record{Dir: dir, PID: 1 << 30}
	next := *gone
	assert.OK(t, next.Identify())
	for holder, want := range map[*state.Record]exit.Code{gone: exit.Unsafe, &next: exit.Done} {
		b := assert.Of(json.Marshal(holder)).OK(t)
		assert.OK(t, os.WriteFile(filepath.Join(dir, "mount.json"), b, 0o600))
		err := Export(ctx, gone, []string{dir})
		assert.Equal(t, codeOf(err), want, "held by", holder.PID)
		assert.True(t, err == nil || strings.Contains(err.Error(), "is unmounted, but what it has not sent cannot be looked at"), err)
	}
	assert.Contains(t, waitForEnd(ctx, &next).Error(), fmt.Sprintf("is unmounted, but its daemon (pid %d) has not ended yet", os.Getpid()))
}

// A daemon that hangs up and goes on is not a dead one.
func TestMountOfADaemonThatHangsUp(t *testing.T) {
	r := &state.Record{Dir: t.TempDir(), Mountpoint: "/not/mounted"}
	assert.OK(t, r.Identify())
	daemon := exec.Command("sleep", "infinity")
	assert.OK(t, daemon.Start())
	t.Cleanup(func() { daemon.Process.Kill(); daemon.Wait() })
	r.PID = daemon.Process.Pid
	r.StartTicks = assert.Of(proc.Read(fmt.Sprintf("/proc/%d", r.PID))).OK(t).Started
	record := filepath.Join(r.Dir, "mount.json")
	assert.OK(t, os.WriteFile(record, assert.Of(json.Marshal(r)).OK(t), 0o600))
	t.Chdir(r.Dir) // whose name may be too long for a socket
	l := assert.Of(net.Listen("unix", filepath.Base(r.SocketPath()))).OK(t)
	defer l.Close()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			c.Close()
		}
	}()
	defer func(limit time.Duration) { deathLimit = limit }(deathLimit)
	deathLimit = 0 // it will not be gone
	res, err := Mount(t.Context(), r, control.UnmountRequest{}, AsLongAsItTries)
	assert.Must(t, codeOf(err) == exit.Unreachable, "the answer of a daemon that hangs up:", err)
	assert.Contains(t, err.Error(), "does not answer")
	assert.True(t, !res.Unmounted && r.Alive() && assert.ErrOf(os.Stat(record)) == nil, "the mount was taken from a living daemon", res)
}

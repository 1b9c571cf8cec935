package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

func TestMountUseUnmount(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	addr := w.workspace("notes")
	var m mounted
	w.asJSON(&m, addr, "mnt")
	assert.Must(t, m.Schema == "wsmount.mounted/v1" && m.Mountpoint == w.path("mnt") && m.PID != 0, m)
	w.write("mnt/sub/file", "hello")
	assert.Equal(t, w.read("notes/sub/file"), "hello", "in the store")
	s := w.status()
	assert.True(t, s.State == control.Ready && s.Workspace == addr && s.PID == m.PID && len(s.Parts) == 1 && s.Operations != 0, "status: got", s)
	assert.Of(os.ReadFile(fmt.Sprintf("/proc/%d/comm", m.PID))).Equal(t, []byte("wsmount\n"), "ps calls the daemon")
	p := s.Parts[0]
	assert.True(t, p.Provider == "local-fs" && p.Path == w.path("notes") && p.At == "/", "part", p)
	eventually(t, "the whole tree to be watched", func() bool { return w.status().Parts[0].Watch.State == "on" })
	assert.Contains(t, w.read("mnt/.wsmount/README"), "errors.log")
	w.ok("umount", "mnt")
	assert.True(t, !isMounted(w.path("mnt")) && !alive(m.PID), "umount returned before the daemon had ended")
	out := w.shown()
	assert.False(t, strings.Contains(out, addr), "still listed", out)
	w.refused(exit.Unresolvable, "no workspace is mounted", "umount", "mnt")
}

func TestMountRefusals(t *testing.T) {
	w := newWorld(t)
	addr := w.workspace("notes")
	w.mkdir("notes/inside")
	w.workspace("other")
	w.write("file", "")
	w.write("own.yaml", "search_path: []\n")
	w.write("bad/WORKSPACE.md", "---\nschema: workspace/v1\nid: \"@acme/bad\"\nprefx: 1\n---\n")
	w.write("remote/WORKSPACE.md", `---
schema: workspace/v1
id: "@acme/remote"
version: "1.0.0"
name: remote
owner: {type: user, id: a, slug: acme}
storage: {inline: {provider: elsewhere, config: {container: site}}}
---
`)
	tests := []struct {
		name string
		code exit.Code
		says string
		args []string
	}{
		{"no arguments", exit.Usage, "2 arguments are needed, 0 given", []string{"mount"}},
		{"one argument", exit.Usage, "2 arguments are needed, 1 given", []string{addr}},
		{"no such mount point", exit.Usage, "does not exist", []string{addr, "nowhere"}},
		{"a file as mount point", exit.Usage, "not a directory", []string{addr, "file"}},
		{"mount point inside the workspace", exit.Usage, "lies inside", []string{addr, "notes/inside"}},
		{"mount point above the workspace", exit.Usage, "inside the mount point", []string{addr, "."}},
		{"unknown address", exit.Unresolvable, "@acme/nots", []string{"@acme/nots", "mnt"}},
		{"not an address", exit.Unresolvable, "@acme", []string{"@acme", "mnt"}},
		{"invalid manifest", exit.Manifest, "and ", []string{"./bad", "mnt"}},
		{"a provider that is not built in", exit.Unresolvable, "storage_provider_unknown", []string{"./remote", "mnt"}},
		{"metrics for everybody", exit.Usage, "not a loopback address", []string{addr, "mnt", "--metrics-addr", "0.0.0.0:9"}},
		{"log level", exit.Usage, "unknown log level", []string{addr, "mnt", "--log-level", "loud"}},
		{"mount spec", exit.Usage, "did you mean source?", []string{addr, "mnt", "--mount", "at=/x,sorce=@a/b"}},
		{"two parts at one place", exit.Manifest, "/x", []string{addr, "mnt", "--mount", "at=/x,source=@acme/other", "--mount", "at=/x,source=@acme/other"}},
		{"a workspace in itself", exit.Unresolvable, "circle", []string{addr, "mnt", "--mount", "at=/x,source=" + addr}},
		{"a configuration that is not there", exit.Unresolvable, "none.yaml", []string{addr, "mnt", "--config", w.path("home/none.yaml")}},
		{"a configuration by a relative path", exit.Denied, "relative path", []string{addr, "mnt", "--config", "own.yaml"}},
	}
	for _, tt := range tests {
		w.refused(tt.code, tt.says, tt.args...)
	}
	w.ok("registry", "list", "--config", w.path("own.yaml")) // where it lies does not matter
	o := w.run(addr, "nowhere", "--json")
	assert.True(t, strings.Contains(o.out, `"schema": "wsmount.error/v1"`) && strings.Contains(o.out, `"exit": 2`), "--json: got", o.out)
}

// A flag that comes last does what it does when it comes first, where TestFlagsInEveryOrder
// has it.
func TestReadOnlyFlagComesLast(t *testing.T) {
	w := mountNotes(t, "--read-only")
	assert.Is(t, os.WriteFile(w.path("mnt/file"), nil, 0o644), syscall.EROFS)
	if s := w.status(); !s.ReadOnly || !strings.Contains(s.Parts[0].ReadOnly, "flag") {
		t.Errorf("status says %+v", s.Parts[0])
	}
	mounts := assert.Of(os.ReadFile("/proc/mounts")).OK(t)
	assert.Contains(t, string(mounts), w.path("mnt")+" fuse.wsmount ro,", "the mount's flags")
}

func TestSecondMount(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	addr, other := w.workspace("notes"), w.workspace("other")
	w.mkdir("mnt2")
	w.mount(addr, "mnt")
	w.refused(exit.Failed, w.path("mnt"), addr, "mnt2") // names the first
	w.refused(exit.Failed, "already mounted", addr, "mnt")
	w.refused(exit.Failed, "already mounted", other, "mnt", "--if-not-mounted")
	assert.Contains(t, w.ok(addr, "mnt", "--if-not-mounted", "--json"), `"already": true`, "--if-not-mounted")
	w.ok(addr, "mnt", "--if-not-mounted", "-f") // returns at once as well
	assert.Contains(t, w.run(addr, "mnt", "--if-not-mounted", "--read-only").errOut, "mounted read-write already", "another access")
	assert.Equal(t, w.run(addr, "mnt", "--if-not-mounted").errOut, "", "the same access")
	pid := w.status().PID
	stop(t, pid)
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGCONT) }) // also where the test ends here
	w.refused(exit.Unreachable, "does not answer", addr, "mnt", "--if-not-mounted")
	assert.OK(t, syscall.Kill(pid, syscall.SIGCONT))
	w.ok(addr, "mnt", "--if-not-mounted")
}

// Several that want the same at once all get it, and only when it is there.
func TestIfNotMountedWhileItStarts(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	addr := w.workspace("notes")
	w.write("notes/file", "x")
	t.Cleanup(func() { w.ok("umount", "mnt") })
	var all sync.WaitGroup
	var first atomic.Int32
	for range 6 {
		all.Go(func() {
			o := w.run(addr, "mnt", "--if-not-mounted", "--json")
			_, err := os.Stat(w.path("mnt/file"))
			assert.True(t, o.code == exit.Done && err == nil, "exit", o.code, o.errOut, err)
			if !strings.Contains(o.out, `"already": true`) {
				first.Add(1)
			}
		})
	}
	all.Wait()
	assert.Equal(t, first.Load(), 1, "mounted it")
}

// A full disk is no question of rights.
func TestFullStateDirectory(t *testing.T) {
	tier.RequireRoot(t)
	w := newWorld(t)
	addr := w.workspace("notes")
	w.mkdir("full")
	assert.OK(t, syscall.Mount("none", w.path("full"), "tmpfs", 0, "size=64k,mode=700"))
	t.Cleanup(func() { syscall.Unmount(w.path("full"), 0) })
	assert.Is(t, os.WriteFile(w.path("full/all"), make([]byte, 1<<20), 0o600), syscall.ENOSPC)
	w.refused(exit.Failed, "no space left", addr, "mnt", "--state-dir", "full")
}

func TestKilledDaemon(t *testing.T) {
	w := mountNotes(t)
	w.write("mnt/file", "kept")
	pid := w.killed()
	eventually(t, "the end of what the kernel believes", func() bool {
		return errors.Is(assert.ErrOf(os.Stat(w.path("mnt"))), syscall.ENOTCONN)
	})
	s := w.status()
	assert.True(t, s.State == control.Dead && s.PID == pid, "status of a dead mount", s.State, "pid", s.PID)
	assert.Contains(t, w.ok("status"), "dead", "the list does not say so")
	o := w.run(notes, "mnt")
	assert.Must(t, o.code == exit.Done && strings.Contains(o.errOut, "has been taken away"), "remount: exit", o.code, o.errOut)
	assert.Equal(t, w.read("mnt/file"), "kept", "after the remount")
	w.killed() // the kernel still has its attributes
	w.ok(notes, "mnt")
	w.killed()
	w.ok("umount", "mnt")
	assert.False(t, isMounted(w.path("mnt")), "umount left the dead mount")
}

func TestBusy(t *testing.T) {
	w := mountNotes(t)
	user := exec.Command("cat")
	user.Dir = w.path("mnt")
	in := assert.Of(user.StdinPipe()).OK(t)
	assert.OK(t, user.Start())
	defer user.Wait()
	defer in.Close()
	for _, more := range [][]string{nil, {"--timeout", "100ms"}} { // less than the daemon takes to answer
		o := w.run(append([]string{"umount", "mnt"}, more...)...)
		if o.code != exit.Failed || !strings.Contains(o.out, "cat (pid") || !strings.Contains(o.out, "working directory") || !strings.Contains(o.errOut, "is in use") {
			t.Errorf("umount %v: exit %d\n%s%s", more, o.code, o.out, o.errOut)
		}
	}
	assert.Equal(t, w.status().State, control.Ready, "after a refused umount the mount")
	w.ok("umount", "mnt", "--lazy")
	assert.False(t, isMounted(w.path("mnt")), "--lazy left it in sight")
	in.Close()
	user.Wait()
	eventually(t, "the daemon's end after the last user", func() bool { return !strings.Contains(w.shown(), "@acme/notes") })
}

// What a lazy unmount left to open files, --force ends; until then a mount of
// the workspace is refused with the way out.
func TestForceAfterLazy(t *testing.T) {
	w := mountNotes(t)
	pid := w.status().PID
	f := assert.Of(os.Create(w.path("mnt/held"))).OK(t)
	defer f.Close()
	w.ok("umount", "mnt", "--lazy")
	assert.Equal(t, w.status().State, control.Draining, "state after a lazy unmount with an open file")
	w.refused(exit.Failed, "--force", "umount", "mnt")
	w.refused(exit.Failed, "umount --force "+w.path("mnt"), notes, "mnt")
	w.ok("umount", "mnt", "--force")
	assert.False(t, alive(pid), "the daemon has not ended")
}

// A signal unmounts; a program that stays is cut off when the time is over, or
// at once by a second signal.
func TestSignals(t *testing.T) {
	tier.RequireFUSE(t)
	tests := []struct {
		name    string
		busy    bool
		timeout string
		signals []syscall.Signal
		code    exit.Code
		says    string
	}{
		{"terminate", false, "30s", []syscall.Signal{syscall.SIGTERM}, exit.Done, ""},
		{"interrupt", false, "30s", []syscall.Signal{syscall.SIGINT}, exit.Done, ""},
		{"the time is over", true, "300ms", []syscall.Signal{syscall.SIGTERM}, exit.Failed, "programs still used the mount and were cut off (1 seen)"},
		{"a second signal", true, "10m", []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM}, exit.Failed, "programs still used the mount and were cut off (1 seen)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			cmd := w.command(w.workspace("notes"), "mnt", "-f", "--stop-timeout", tt.timeout)
			var said strings.Builder
			cmd.Stderr = &said
			assert.OK(t, cmd.Start())
			eventually(t, "the mount", func() bool { return isMounted(w.path("mnt")) && w.run("status", "mnt").code == exit.Done })
			if tt.busy {
				f := assert.Of(os.Create(w.path("mnt/held"))).OK(t)
				defer f.Close()
			}
			for i, s := range tt.signals {
				if i > 0 {
					eventually(t, "stopping", func() bool { return w.status().State == control.Stopping })
				}
				cmd.Process.Signal(s)
			}
			cmd.Wait()
			assert.Equal(t, exit.Code(cmd.ProcessState.ExitCode()), tt.code, "exit")
			assert.Contains(t, said.String(), tt.says)
			assert.False(t, isMounted(w.path("mnt")), "still mounted")
		})
	}
}

// No command waits for a daemon that hangs, however long it may wait for one that does
// not, and umount --force ends it.
func TestHangingDaemon(t *testing.T) {
	w := mountNotes(t)
	pid := w.status().PID
	defer syscall.Kill(pid, syscall.SIGKILL)
	stop(t, pid)
	s := w.status()
	assert.True(t, s.State == control.NotResponding && len(s.Parts) == 1 && s.Parts[0].Provider == "local-fs", s)
	for _, args := range [][]string{
		{"umount", "mnt", "--timeout", hangs.String()},
		{"event", "mnt", "turn-end", "--timeout", hangs.String()},
		{"event", "mnt", "turn-end", "--no-wait"},
		{"log", "mnt"}, // which waits for as long as the history takes
	} {
		w.refused(exit.Unreachable, "is stopped", args...)
	}
	w.ok("umount", "mnt", "--force")
	assert.True(t, !isMounted(w.path("mnt")) && !alive(pid), "--force left the mount of a hanging daemon, or the daemon")
	w.ok(notes, "mnt") // its lock is free
	w.ok("umount", "mnt")
}

// A daemon whose mount was taken away is ending: the next mount does not wait for it for
// ever, and comes when it is gone.
func TestMountWhileTheLastOneEnds(t *testing.T) {
	w := mountNotes(t)
	pid := w.status().PID
	defer syscall.Kill(pid, syscall.SIGCONT)
	stop(t, pid)
	tier.Require(t, "root", syscall.Unmount(w.path("mnt"), syscall.MNT_DETACH) == nil)
	w.refused(exit.Failed, "mounted already", notes, "mnt")
	assert.OK(t, syscall.Kill(pid, syscall.SIGCONT))
	eventually(t, "the daemon's end", func() bool { return !alive(pid) })
	w.ok(notes, "mnt")
	got := w.status().PID
	assert.True(t, got != pid, "the daemon is still", got)
}

// Where there is no room to make the state directory, that is said.
func TestNewStateDirectoryOnAFullDisk(t *testing.T) {
	tier.RequireRoot(t) // to mount a disk
	w := newWorld(t)
	full := w.path("full")
	w.mkdir("full")
	assert.OK(t, syscall.Mount("none", full, "tmpfs", 0, "nr_inodes=1,mode=700"))
	defer syscall.Unmount(full, syscall.MNT_DETACH)
	w.refused(exit.Failed, "no space left on device", "mount", w.workspace("notes"), "mnt", "--state-dir", full+"/state")
}

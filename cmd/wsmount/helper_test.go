package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/launch"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

func TestHelperCall(t *testing.T) {
	tests := []struct {
		name, in, want string
		fake           bool
		namespace      string
		args           string // as for the same call without -N; "": as in
	}{
		{name: "plain", in: "mount @a/b /mnt", want: "mount @a/b /mnt"},
		{name: "as mount(8) calls", in: "mount @a/b /mnt -v -o rw,noexec -t wsmount", want: "mount @a/b /mnt -o=rw,noexec"},
		{name: "fake", in: "mount @a/b /mnt -f -n -o ro", want: "mount @a/b /mnt -o=ro", fake: true},
		{name: "sloppy", in: "mount @a/b /mnt -s -o quux", want: "mount @a/b /mnt -o=quux -o=sloppy"},
		{name: "letters in one word", in: "mount @a/b /mnt -sfnvoro", want: "mount @a/b /mnt -o=ro -o=sloppy", fake: true, args: "@a/b /mnt -s -f -n -v -o ro"},
		{name: "in a namespace", in: "mount @a/b /mnt -n -N /proc/1/ns/mnt -o ro", want: "mount @a/b /mnt -o=ro",
			namespace: "/proc/1/ns/mnt", args: "@a/b /mnt -n -o ro"},
		{name: "in one of a process", in: "umount /mnt -vN12", want: "umount /mnt", namespace: "12", args: "/mnt -v"},
		{name: "umount", in: "umount /mnt -n -r -v -t fuse.wsmount", want: "umount /mnt"},
		{name: "umount lazily", in: "umount /mnt -l", want: "umount /mnt --lazy"},
		{name: "umount by force", in: "umount -f /mnt", want: "umount /mnt --force"},
		{name: "both", in: "umount /mnt -fl", want: "umount /mnt --force", args: "/mnt -f -l"},
	}
	for _, tt := range tests {
		command, rest, _ := strings.Cut(tt.in, " ")
		got, err := readHelperCall(command, strings.Fields(rest))
		assert.True(t, err == nil && slices.Equal(got.words, strings.Fields(tt.want)) && got.fake == tt.fake && got.namespace == tt.namespace, tt.name, "got", got, err)
		if tt.args == "" {
			tt.args = rest
		}
		assert.Slice(t, got.args, strings.Fields(tt.args), tt.name, "again it would be")
	}
	for _, bad := range []string{"mount @a/b /mnt -l", "umount /mnt -o ro", "mount @a/b /mnt -o", "umount /mnt -N", "mount @a/b -:"} {
		words := strings.Fields(bad)
		assert.Equal(t, helperExit(assert.ErrOf(readHelperCall(words[0], words[1:]))), mountUsage, bad)
	}
}

func TestHelperNames(t *testing.T) {
	for name, want := range map[string]string{"/sbin/mount.wsmount": "mount", "mount.fuse.wsmount": "mount",
		"/sbin/umount.wsmount": "umount", "umount.fuse.wsmount": "umount", "/bin/wsmount": "", "mount": ""} {
		assert.Equal(t, helperCommand(name), want, name)
	}
}

// Every exit code of ours has one of mount(8), and some causes have another.
func TestHelperExit(t *testing.T) {
	for c := exit.Done + 1; !strings.HasPrefix(c.String(), "code-"); c++ {
		want := 32
		if c == exit.Usage {
			want = 1
		}
		assert.Equal(t, helperExit(silent(c)), want, c)
	}
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"done", nil, 0},
		{"any other error", io.EOF, 32},
		{"Ctrl-C", exit.New(exit.Failed, "x: %w", launch.ErrInterrupted), 8},
		{"a dead daemon", fmt.Errorf("x: %w", launch.ErrDied), 4},
		{"no memory", fmt.Errorf("launch: %w", syscall.ENOMEM), 2},
		{"no processes", &os.PathError{Op: "fork", Err: syscall.EAGAIN}, 2},
		{"no descriptors", exit.New(exit.Failed, "x: %w", syscall.EMFILE), 2},
	}
	for _, tt := range tests {
		assert.Equal(t, helperExit(tt.err), tt.want, tt.name)
	}
}

// helper prepares a run of the program under one of the names that mount(8) and
// umount(8) know, with an environment as bare as theirs.
func (w *world) helper(name string, args ...string) *exec.Cmd {
	w.t.Helper()
	link := w.path(name)
	err := os.Symlink(binary, link)
	assert.Must(w.t, err == nil || errors.Is(err, os.ErrExist), err)
	cmd := w.command(args...)
	cmd.Path, cmd.Args[0] = link, link
	return cmd
}

// ends runs it and checks the exit status and what it says.
func (w *world) ends(cmd *exec.Cmd, status int, says string) {
	w.t.Helper()
	out, _ := cmd.CombinedOutput()
	got := cmd.ProcessState.ExitCode()
	assert.True(w.t, got == status && strings.Contains(string(out), says), cmd.Args, "exit", got, "want", status, "and", says, out)
}

// The daemon in the background must still be told its options, and the mount
// table shows what mount(8) was told.
func TestHelpers(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	addr := w.workspace("notes")
	mnt := w.path("mnt")
	w.ends(w.helper("mount.wsmount", addr, mnt, "-f", "-o", "ro"), 0, "")
	w.ends(w.helper("mount.wsmount", addr, mnt, "-f", "-o", "quux"), 1, "unknown option -o quux")
	w.ends(w.helper("mount.wsmount", addr, mnt, "-n", "-o", "ro,noexec,nofail,user=joe,x-systemd.automount,log-level=debug", "-t", "wsmount"), 0, "")
	assert.Is(t, os.Mkdir(w.path("mnt/x"), 0o755), syscall.EROFS, "ro")
	mounts, err := os.ReadFile("/proc/mounts")
	assert.True(t, err == nil && strings.Contains(string(mounts), addr+" "+mnt+" fuse.wsmount ro,nosuid,nodev,noexec"), "the kernel's options are not there:", err)
	w.ends(w.helper("mount.fuse.wsmount", addr, mnt), 32, "mounted")
	w.ends(w.helper("umount.fuse.wsmount", mnt), 0, "")
	w.ends(w.helper("umount.wsmount", mnt), 32, "no workspace is mounted")
	w.ends(w.helper("mount.wsmount", addr, w.path("nowhere")), 1, "nowhere")
	w.ends(w.helper("mount.wsmount", "@acme/nobody", mnt), 32, "@acme/nobody")
}

// mount(8) takes HOME and PATH away, without which there is no state directory.
func TestHelperEnvironment(t *testing.T) {
	home, _ := os.UserHomeDir()
	t.Setenv("HOME", "")
	t.Setenv("PATH", "")
	fillEnvironment()
	if os.Getenv("HOME") != home || os.Getenv("PATH") != searchPath {
		t.Errorf("HOME=%s PATH=%s", os.Getenv("HOME"), os.Getenv("PATH"))
	}
	t.Setenv("HOME", "/kept")
	if fillEnvironment(); os.Getenv("HOME") != "/kept" {
		t.Errorf("HOME=%s", os.Getenv("HOME"))
	}
}

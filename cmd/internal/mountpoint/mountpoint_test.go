package mountpoint

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }

const sample = `22 28 0:21 / /proc rw,nosuid shared:5 - proc proc rw
28 1 253:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 28 0:50 / /mnt/a\040b rw,nosuid,nodev shared:7 master:2 - fuse.wsmount @acme/a rw,user_id=0
41 40 0:51 /sub /mnt/a\040b/data ro - tmpfs tmpfs rw
42 28 0:52 / /mnt/sshfs rw - fuse.sshfs host: rw
43 28 0:53 / /mnt/a\040b rw - fuse.wsmount @acme/b rw
44 28 253:0 /home/ann/Vault /srv/bind rw - ext4 /dev/vda rw
`

func table(t *testing.T) Table {
	t.Helper()
	return assert.Of(parseTable(strings.NewReader(sample))).OK(t)
}

func TestTable(t *testing.T) {
	tab := table(t)
	assert.Must(t, len(tab) == 7, len(tab), "mounts")
	top, ok := tab.At("/mnt/a b")
	assert.True(t, ok && top.Source == "@acme/b" && top.Ours() && top.Connection() == "53" && top.ID == 43, "the topmost of two mounts: got", top)
	_, ok = tab.At("/mnt")
	assert.False(t, ok, "/mnt is no mount point")
	m, _ := tab.Around("/mnt/a b/data/x")
	assert.True(t, m.Type == "tmpfs" && m.Root == "/sub" && m.Options == "ro", "around a nested path: got", m)
	m, _ = tab.Around("/mnt/a bc")
	assert.True(t, m.Path == "/", "a sibling that begins alike: got", m)
	below := tab.Below("/mnt/a b")
	assert.True(t, len(below) == 1 && below[0].Type == "tmpfs", "below", below)
	m, _ = tab.At("/mnt/sshfs")
	assert.True(t, m.FUSE() && !m.Ours(), "another's FUSE mount: got", m)
	for path, want := range map[string]string{"/srv/bind/Diary": "/home/ann/Vault/Diary", "/srv/bind": "/home/ann/Vault", "/home/ann/Vault/x": "/srv/bind/x", "/home/ann": "", "/mnt/sshfs/x": ""} {
		assert.Equal(t, strings.Join(tab.Names(path), " "), want, path)
	}
}

func TestResolve(t *testing.T) {
	dir := assert.Of(filepath.EvalSymlinks(t.TempDir())).OK(t)
	mkdir(t, dir+"/real/deep")
	mkdir(t, dir+"/mounted")
	link(t, "real", dir+"/rel")
	link(t, dir+"/mounted", dir+"/abs")
	link(t, "loop", dir+"/loop")
	link(t, "/nowhere", dir+"/mounted/inside") // a link inside the mount must not be asked
	tab := Table{{Path: "/", Type: "ext4"}, {Path: dir + "/mounted", Type: FSType}}
	tests := []struct{ name, in, want string }{
		{"plain", "/real/deep", "/real/deep"},
		{"relative link", "/rel/deep", "/real/deep"},
		{"absolute link to a mount", "/abs", "/mounted"},
		{"nothing inside a mount is asked", "/abs/inside/x", "/mounted/inside/x"},
		{"dots climb from the real place", "/rel/deep/../../mounted", "/mounted"},
		{"what does not exist stays", "/real/no/such", "/real/no/such"},
	}
	for _, tt := range tests {
		assert.Of(tab.Resolve(dir+tt.in)).Equal(t, dir+tt.want, tt.name)
	}
	assert.Is(t, assert.ErrOf(tab.Resolve(dir+"/loop/x")), errTooManyLinks, "a loop")
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	assert.OK(t, os.WriteFile(dir+"/file", nil, 0o600))
	mkdir(t, dir+"/dir")
	link(t, "dir", dir+"/link")
	for _, path := range []string{"/dir", "/link"} {
		got, stale, err := Check(dir + path)
		assert.True(t, err == nil && !stale && filepath.Base(got) == "dir", path, got, stale, err)
	}
	for _, path := range []string{"/none", "/file"} {
		_, _, err := Check(dir + path)
		e := exit.From(err)
		assert.True(t, e != nil && e.Code == exit.Usage && e.Advice != "", path, e)
	}
}

// A mount inside its own source, or above it, would serve itself.
func TestApart(t *testing.T) {
	dir := t.TempDir()
	mkdir(t, dir+"/ws/sub")
	mkdir(t, dir+"/ws-other")
	link(t, "ws", dir+"/alias")
	tests := []struct {
		name, mountpoint, source string
		refuse                   bool
	}{
		{"beside", "/ws-other", "/ws", false},
		{"the same", "/ws", "/ws", true},
		{"inside", "/ws/sub", "/ws", true},
		{"above", "/", "/ws/sub", true},
		{"inside, by another name", "/ws/sub", "/alias", true},
	}
	for _, tt := range tests {
		real := assert.Of(filepath.EvalSymlinks(dir + tt.mountpoint)).OK(t)
		assert.Equal(t, Apart(real, dir+tt.source) != nil, tt.refuse, tt.name)
	}
}

// Holders looks at /proc of a child that uses a directory of the root file
// system, seen as if it were a mount of its own.
func TestHolders(t *testing.T) {
	dir := assert.Of(filepath.EvalSymlinks(t.TempDir())).OK(t)
	mkdir(t, dir+"/sub")
	assert.OK(t, os.WriteFile(dir+"/notes", nil, 0o600))
	tab := assert.Of(ReadTable()).OK(t)
	m, ok := tab.Around(dir)
	assert.Must(t, ok, "no mount around the temporary directory")
	m.Path = dir // its number and device stay, so that open files match by mount id
	cmd := exec.Command("cat")
	cmd.Dir = dir + "/sub"
	f := assert.Of(os.Open(dir + "/notes")).OK(t)
	cmd.ExtraFiles = []*os.File{f}
	in := assert.Of(cmd.StdinPipe()).OK(t)
	assert.OK(t, cmd.Start())
	f.Close()
	defer cmd.Wait()
	defer in.Close()
	found, _, _ := Holders(m)
	for _, h := range found {
		if h.PID != cmd.Process.Pid {
			continue
		}
		got := h.String()
		assert.True(t, strings.Contains(got, "working directory: sub") && strings.Contains(got, "open: notes"), got)
		return
	}
	t.Errorf("process %d is not among %v", cmd.Process.Pid, found)
}

func TestSameDevice(t *testing.T) {
	for _, tt := range []struct {
		hex, dec string
		want     bool
	}{{"00:35", "0:53", true}, {"fd:00", "253:0", true}, {"00:35", "0:35", false}, {"", "0:0", false}} {
		assert.Equal(t, sameDevice(tt.hex, tt.dec), tt.want, tt.hex, "and", tt.dec)
	}
}

func TestUnmountErrors(t *testing.T) {
	assert.Is(t, Unmount(t.TempDir(), false), ErrNotMounted)
	for said, want := range map[string]error{
		"fusermount3: failed to unmount /x: Device or resource busy": ErrBusy,
		"fusermount3: entry for /x not found in /etc/mtab":           ErrNotMounted,
	} {
		assert.Is(t, helperError("/x", said, errors.New("exit status 1")), want, said)
	}
}

// What is in use stays mounted, unless it is asked to go all the same.
func TestUnmountBusy(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
		tier.RequireRoot(t) // to mount something
		t.Fatal(err)
	}
	f := assert.Of(os.Create(dir + "/f")).OK(t)
	defer f.Close()
	assert.Is(t, Unmount(dir, false), ErrBusy)
	assert.OK(t, assert.ErrOf(os.Stat(dir+"/f")), "what is in use")
	assert.OK(t, Unmount(dir, true))
	assert.Is(t, Unmount(dir, false), ErrNotMounted)
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	assert.OK(t, os.MkdirAll(path, 0o700))
}

func link(t *testing.T, target, path string) {
	t.Helper()
	assert.OK(t, os.Symlink(target, path))
}

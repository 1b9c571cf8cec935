package integration

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/tier"
)

// pulls is how many pulls what programs hold of a mount has to survive.
var pulls = tier.Pick(20, 100)

// quietly is a store from which nothing comes but by an event.
var quietly = copyFlavour{name: "store", sync: stored}

// What a sandbox mounts inside the tree stays mounted while others change the
// directory that it lies in, and the file that it was made from.
func TestCopyMountsInside(t *testing.T) {
	t.Parallel()
	tier.RequireRoot(t)
	c := quietly.mount(t)
	mkdirAll(t, c.Dir+"/sandbox/tmp")
	write(t, c.Dir+"/sandbox/config", "version 0")
	c.mustSettle()
	outside := filepath.Join(t.TempDir(), "bound")
	write(t, outside, "")
	mountInside(t, "tmpfs", c.Dir+"/sandbox/tmp", "tmpfs", 0)
	mountInside(t, c.Dir+"/sandbox/config", outside, "", unix.MS_BIND)
	write(t, c.Dir+"/sandbox/tmp/file", "of the sandbox")
	for i := range pulls {
		c.tamper("sandbox/config", fmt.Appendf(nil, "version %d", i+1))
		c.tamper("sandbox/beside", fmt.Append(nil, i))
		c.tamper(fmt.Sprintf("sandbox/tmp/hidden-%d", i), []byte("under the mount"))
		assert.OK(t, c.pullNow())
		assert.Of(os.ReadFile(c.Dir+"/sandbox/tmp/file")).Equal(t, []byte("of the sandbox"), "pull", i, "the tmpfs")
		// The bound file is the one that was bound, or the newest: never an error.
		got := assert.Of(os.ReadFile(outside)).OK(t)
		assert.Must(t, strings.HasPrefix(string(got), "version "), "pull", i, "the bound file", got)
		want := fmt.Sprintf("version %d", i+1)
		assert.Of(os.ReadFile(c.Dir+"/sandbox/config")).Equal(t, []byte(want), "pull", i)
	}
}

func mountInside(t *testing.T, source, target, kind string, flags uintptr) {
	t.Helper()
	assert.OK(t, unix.Mount(source, target, kind, flags, ""))
	t.Cleanup(func() { unmountInside(t, target) })
}

// unmountInside unmounts what a test has mounted, once nothing has it open: a program that
// another test starts in this moment has all our files open until it runs.
func unmountInside(t *testing.T, target string) {
	t.Helper()
	var err error
	harness.Eventually(t, "nothing has "+target+" open", func() bool {
		err = unix.Unmount(target, 0)
		return !errors.Is(err, unix.EBUSY)
	})
	assert.OK(t, err, target)
}

// Programs that read, list and stat while others replace, remove and rename
// what they look at see one version or the other, and never ESTALE.
func TestCopyNoStale(t *testing.T) {
	t.Parallel()
	for _, f := range []copyFlavour{quietly, canonicalStore, repository} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			c := f.mount(t)
			mkdirAll(t, c.Dir+"/d")
			for i := range 4 {
				write(t, fmt.Sprintf("%s/d/f%d", c.Dir, i), strings.Repeat("0", 100_000))
			}
			c.mustSettle()
			var stop atomic.Bool
			var readers sync.WaitGroup
			var reads [4]atomic.Int64
			for i := range reads {
				readers.Go(func() {
					for path := fmt.Sprintf("%s/d/f%d", c.Dir, i); !stop.Load(); reads[i].Add(1) {
						if err := useFile(path); err != nil {
							t.Errorf("%s: %v", path, err)
							return
						}
					}
				})
			}
			for round := range tier.Pick(8, 20) {
				for i := range 4 {
					c.tamper(fmt.Sprintf("d/f%d", i), []byte(strings.Repeat(string(rune('a'+round%26)), 100_000)))
				}
				assert.Is(t, c.pullNow(), nil)
				// Everybody gets to see it: of two pulls in one open the kernel
				// asks again for the first only.
				for i := range reads {
					seen := reads[i].Load()
					harness.Eventually(t, "everybody reads on", func() bool { return reads[i].Load() >= seen+2 || t.Failed() })
				}
				if f.name == canonicalStore.name && round%5 == 0 {
					waitContent(t, c.Dir+"/d/f0", strings.Repeat(string(rune('a'+round%26)), 100_000))
				}
			}
			stop.Store(true)
			readers.Wait()
		})
	}
}

// useFile does what programs do to a file that exists all the time.
func useFile(path string) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	got, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(got) != 100_000 || strings.Trim(string(got), string(got[0])) != "" {
		return fmt.Errorf("parts of several versions, or of one: %d bytes", len(got))
	}
	var x [100]byte
	if _, err := unix.Getxattr(path, "user.none", x[:]); !errors.Is(err, unix.ENODATA) {
		return fmt.Errorf("getxattr: %w", err)
	}
	return nil
}

func waitContent(t *testing.T, path, want string) {
	t.Helper()
	harness.Eventually(t, path+" shows what another wrote", func() bool {
		got, err := os.ReadFile(path)
		return err == nil && string(got) == want
	})
}

// A program that watches a directory of the mount sees the files that a pull
// brought or replaced there.
func TestCopyInotify(t *testing.T) {
	t.Parallel()
	c := quietly.mount(t)
	mkdirAll(t, c.Dir+"/watched")
	write(t, c.Dir+"/watched/old", "one")
	write(t, c.Dir+"/watched/gone", "two")
	c.mustSettle()
	fd := assert.Of(unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)).OK(t)
	defer unix.Close(fd)
	assert.OK(t, assert.ErrOf(unix.InotifyAddWatch(fd, c.Dir+"/watched", unix.IN_MODIFY|unix.IN_ATTRIB|unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVE)))
	c.tamper("watched/old", []byte("two"))
	c.tamper("watched/new", []byte("three"))
	c.tamper("watched/gone", nil)
	assert.OK(t, c.pullNow())
	modified := func(name string) string { return fmt.Sprintf("%x %s", unix.IN_MODIFY, name) }
	var events []string
	seen := func(event string) bool {
		events = append(events, inotifyEvents(fd)...)
		return slices.Contains(events, event)
	}
	harness.Eventually(t, "the watcher sees both files", func() bool { return seen(modified("old")) && seen(modified("new")) })
	assert.Of(c.unsaved()).Equal(t, "", "what a nudge has changed")
	mkdirAll(t, c.Dir+"/watched/mark")
	mark := fmt.Sprintf("%x mark", unix.IN_CREATE|unix.IN_ISDIR)
	harness.Eventually(t, "the watcher sees the mark", func() bool { return seen(mark) })
	slices.Sort(events)
	want := []string{modified("new"), modified("old"), mark}
	slices.Sort(want)
	assert.Slice(t, events, want, "the watcher saw")
	for name, want := range map[string]string{"old": "two", "new": "three"} {
		assert.Of(os.ReadFile(c.Dir+"/watched/"+name)).Equal(t, []byte(want), name)
	}
}

// inotifyEvents are the events that have come: what happened, and to which name.
func inotifyEvents(fd int) (events []string) {
	buf := make([]byte, 1<<16)
	n, _ := unix.Read(fd, buf)
	for at := 0; at+unix.SizeofInotifyEvent <= n; {
		mask, size := binary.NativeEndian.Uint32(buf[at+4:]), int(binary.NativeEndian.Uint32(buf[at+12:]))
		at += unix.SizeofInotifyEvent
		events = append(events, fmt.Sprintf("%x %s", mask, strings.TrimRight(string(buf[at:at+size]), "\x00")))
		at += size
	}
	return events
}

// The kernel reads content that is here by itself, as root; what is written
// goes through the daemon, which must see it, and so does all of an ordinary
// user's.
func TestCopyIOModes(t *testing.T) {
	t.Parallel()
	for _, user := range []bool{false, true} {
		f, reading := quietly, "passthrough"
		if user {
			f, reading = quietly.asUser(), "cached"
		} else if os.Geteuid() != 0 {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			c := f.mount(t)
			if !user && !c.Status().Passthrough.On {
				reading = "cached" // the state lies on something that the kernel does not stack on
				t.Log(c.Status().Passthrough.Reason)
			}
			c.sh("printf content > $1/read; printf content > $1/write")
			c.mustSettle()
			c.tamper("remote", make([]byte, 32<<20))
			c.must(c.pullNow())
			for _, tc := range []struct{ name, mode, open string }{
				{"here, for reading", reading, "exec 3<$1/read"},
				{"here, for writing", "cached", "exec 3<>$1/write"},
				{"not here, for reading", "cached", "exec 3<$1/remote"},
			} {
				t.Run(tc.name, func(t *testing.T) {
					path := tc.open[strings.LastIndex(tc.open, "/")+1:]
					c.whileOpen(tc.open, func() {
						for _, o := range c.Status().OpenFiles {
							if strings.HasSuffix(o.Path, path) {
								assert.Equal(t, o.IOMode, tc.mode, path, "io mode")
								return
							}
						}
						t.Errorf("status does not list %s", path)
					})
				})
			}
		})
	}
}

// sh runs a script as the world's user; $1 is the mount.
func (c *workingCopy) sh(script string) {
	c.t.Helper()
	out, err := c.w.Command(c.t.Context(), "sh", "-c", "set -e\n"+script, "sh", c.Dir).CombinedOutput()
	assert.OK(c.t, err, script, out)
}

// whileOpen does something while a process of the world's user has a file open.
func (c *workingCopy) whileOpen(open string, do func()) {
	c.t.Helper()
	cmd := c.w.Command(c.t.Context(), "sh", "-c", "set -e\n"+open+"\necho open; read line", "sh", c.Dir)
	in, err := cmd.StdinPipe()
	c.must(err)
	out, err := cmd.StdoutPipe()
	c.must(err)
	c.must(cmd.Start())
	line := make([]byte, 5)
	_, err = out.Read(line)
	assert.Must(c.t, err == nil && string(line) == "open\n", open, line, err)
	do()
	in.Close()
	_ = cmd.Wait() // read ends with the input
}

func (c *workingCopy) must(err error) {
	c.t.Helper()
	assert.OK(c.t, err)
}

// mustSettle is settle.
func (c *workingCopy) mustSettle() {
	c.t.Helper()
	c.must(c.settle())
}

// The process that tells watchers of pulls ends with the daemon, also when that
// is killed, and keeps no mount busy.
func TestCopyInotifyHelperEnds(t *testing.T) {
	t.Parallel()
	for _, kill := range []bool{false, true} {
		c := quietly.mount(t)
		if _, err := os.ReadDir(c.Dir); err != nil { // who has not looked sees nothing new
			t.Fatal(err)
		}
		c.tamper("new", []byte("one"))
		assert.OK(t, c.pullNow())
		var helper string
		harness.Eventually(t, "there is a helper", func() bool {
			tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", c.PID))
			for _, task := range tasks {
				children, _ := os.ReadFile(task)
				for _, pid := range strings.Fields(string(children)) {
					if strings.HasPrefix(commandOf(pid), "wsmount-nudge\x00") {
						helper = pid
					}
				}
			}
			return helper != ""
		})
		if kill {
			c.Kill()
		} else {
			c.Stop()
		}
		harness.Eventually(t, "the helper has ended", func() bool { return commandOf(helper) == "" })
		c.Start()
	}
}

// commandOf is the command line of a process, "" when it has ended.
func commandOf(pid string) string {
	b, _ := os.ReadFile("/proc/" + pid + "/cmdline")
	return string(b)
}

// What a sandbox writes to a file that it has bind-mounted, and that others have
// changed since, is a conflict like any other to who ends the turn.
func TestCopyConflictOfABoundFile(t *testing.T) {
	t.Parallel()
	tier.RequireRoot(t)
	for policy, left := range map[string]string{"split-conflicts": "theirs", "last-writer-wins": "ours"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			c := copyFlavour{name: "store", sync: stored + ", conflict: {policy: " + policy + "}"}.mount(t)
			write(t, c.Dir+"/config", "one")
			c.mustSettle()
			outside := filepath.Join(t.TempDir(), "bound")
			write(t, outside, "")
			mountInside(t, c.Dir+"/config", outside, "", unix.MS_BIND)
			c.tamper("config", []byte("theirs"))
			assert.OK(t, c.pullNow())
			write(t, outside, "ours")
			r := c.w.Run("event", c.Dir, "turn-end")
			assert.True(t, r.Code == 8 && strings.Contains(r.Out, ", 1 conflict,"), "turn-end:", r, "want 1 conflict and exit 8")
			assert.Of(os.ReadFile(c.Dir+"/config")).Equal(t, []byte(left))
			assert.Equal(t, c.w.Run("event", c.Dir, "turn-end").Code, 0, "the next turn")
		})
	}
}

// A directory that was removed while a program is in it, and comes back because
// others have put something into it, is a directory like any other; the program
// stays in the one that was removed, as on a local disk.
func TestCopyDirectoryComesBack(t *testing.T) {
	t.Parallel()
	c := copyFlavour{name: "store", sync: "mode: pull-push, pull: {on: turn-start}, commit: {on: per-turn}"}.mount(t)
	mkdirAll(t, c.Dir+"/a/b")
	for _, path := range []string{"/kept", "/a/f", "/a/b/f"} {
		write(t, c.Dir+path, "ours")
	}
	c.must(c.event("turn-end"))
	held := []*os.File{openDir(t, c.Dir+"/a"), openDir(t, c.Dir+"/a/b")}
	c.must(os.RemoveAll(c.Dir + "/a"))
	c.tamper("a/b/theirs", []byte("theirs"))
	c.must(c.event("turn-end")) // what it deletes is refused
	for _, dir := range held {
		isRemoved(t, dir)
	}
	assert.Of(os.ReadFile(c.Dir+"/a/b/theirs")).Equal(t, []byte("theirs"))
	write(t, c.Dir+"/a/b/f", "new")
	c.must(os.Mkdir(c.Dir+"/a/c", 0o755))
	for _, dir := range []string{"/a", "/a/b"} {
		assert.Equal(t, len(assert.Of(os.ReadDir(c.Dir+dir)).OK(t)), 2, dir, "has")
	}
	for _, dir := range held {
		isRemoved(t, dir)
	}
	c.must(c.event("turn-end"))
	assert.Of(c.unsaved()).Equal(t, "", "unsaved")
}

func openDir(t *testing.T, path string) *os.File {
	t.Helper()
	f := assert.Of(os.Open(path)).OK(t)
	t.Cleanup(func() { f.Close() })
	return f
}

// isRemoved checks that an open directory is one that was removed.
func isRemoved(t *testing.T, dir *os.File) {
	t.Helper()
	for _, name := range []string{"b", "f", "theirs"} {
		var st unix.Stat_t
		assert.Is(t, unix.Fstatat(int(dir.Fd()), name, &st, 0), unix.ENOENT, name, "in the removed", dir.Name())
	}
	assert.Is(t, unix.Mkdirat(int(dir.Fd()), "new", 0o755), unix.ENOENT, "mkdir in the removed", dir.Name())
	if names, err := dir.Readdirnames(-1); len(names) > 0 || err != nil && !errors.Is(err, unix.ENOENT) {
		t.Errorf("the removed %s lists %q, %v", dir.Name(), names, err)
	}
}

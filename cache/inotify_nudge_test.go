package cache

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// watchEnv makes this test binary serve a mount for TestWatchersSeePulls.
const watchEnv = "WSMOUNT_CACHE_TEST_WATCH"

// A real watcher in the mount: of a pull the kernel tells it nothing, and of
// each file that is nudged one IN_MODIFY. The nudge is no change.
func TestWatchersSeePulls(t *testing.T) {
	if mountpoint := os.Getenv(watchEnv); mountpoint != "" {
		serveWatched(t, mountpoint)
		return
	}
	tier.RequireRoot(t)
	tier.RequireFUSE(t)
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestWatchersSeePulls$")
	child.Env = append(os.Environ(), watchEnv+"="+dir)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	assert.OK(t, err)
	out, err := child.StdoutPipe()
	assert.OK(t, err)
	assert.OK(t, child.Start())
	lines := bufio.NewScanner(out)
	until := func(end string) (got []string) {
		for lines.Scan() && lines.Text() != end {
			got = append(got, lines.Text())
		}
		return got
	}
	until("ready")
	defer func() {
		in.Close()
		until("")
		child.Wait()
	}()
	for _, name := range []string{"f", "gone"} {
		_, err := os.ReadFile(filepath.Join(dir, "d", name))
		assert.OK(t, err)
	}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	assert.OK(t, err)
	defer unix.Close(watch)
	_, err = unix.InotifyAddWatch(watch, filepath.Join(dir, "d"), unix.IN_MODIFY|unix.IN_CREATE|unix.IN_DELETE|unix.IN_ATTRIB|unix.IN_MOVE)
	assert.OK(t, err)

	fmt.Fprintln(in, "pull")
	pulled := until("pulled")
	assert.OK(t, os.WriteFile(filepath.Join(dir, "d", "mark"), nil, 0o644))
	assert.Equal(t, len(eventsUntil(t, watch, "mark")), 0, "the kernel tells of a pull: ...; nudging is not needed")
	slices.Sort(pulled)
	assert.Slice(t, pulled, []string{"d/f", "d/new"}, "pulled")
	fmt.Fprintln(in, "queued")
	before := until("told")
	for _, path := range pulled {
		assert.OK(t, fs.Nudge(dir, path))
	}
	fmt.Fprintln(in, "queued")
	assert.Slice(t, until("told"), before, "names that differ")
	assert.OK(t, os.WriteFile(filepath.Join(dir, "d", "mark2"), nil, 0o644))
	want := []string{fmt.Sprintf("%x f", unix.IN_MODIFY), fmt.Sprintf("%x new", unix.IN_MODIFY)}
	assert.Slice(t, eventsUntil(t, watch, "mark2"), want, "the watcher")
	if data, err := os.ReadFile(filepath.Join(dir, "d", "f")); string(data) != "two!" {
		t.Errorf("%q, %v", data, err)
	}
	if err := fs.Nudge(dir, "../x"); err == nil {
		t.Error("a path that leads out is nudged")
	}
}

// eventsUntil reads events up to the creation of a name, and those of names
// like it left out.
func eventsUntil(t *testing.T, watch int, mark string) (all []string) {
	t.Helper()
	buf := make([]byte, 1<<14)
	for {
		n, err := unix.Read(watch, buf)
		assert.OK(t, err)
		for rest := buf[:n]; len(rest) > 0; {
			size := binary.NativeEndian.Uint32(rest[12:])
			mask := binary.NativeEndian.Uint32(rest[4:])
			name := strings.TrimRight(string(rest[16:16+size]), "\x00")
			rest = rest[16+size:]
			if name == mark {
				return all
			}
			if !strings.HasPrefix(name, "mark") {
				all = append(all, fmt.Sprintf("%x %s", mask, name))
			}
		}
	}
}

func serveWatched(t *testing.T, mountpoint string) {
	w := newScene(t, holding("d/f", "one", "d/gone", "two"), held(SplitConflicts), func(_ *world, o *Options) {
		o.Pulled = func(path string) { fmt.Println(path) }
		o.Owner = nil
	})
	s, err := fs.Serve(mountpoint, []fs.Part{{Name: "@acme/test", Volume: w.v}}, fs.Options{})
	w.ok(err)
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "pull":
			w.tamper("d/f", "two!")
			w.tamper("d/new", "three")
			w.gonePath("d/gone")
			w.pull()
			fmt.Println("pulled")
		case "queued":
			fmt.Println(w.v.Status().Queued)
			fmt.Println("told")
		}
	}
	for s.Unmount() != nil {
		time.Sleep(20 * time.Millisecond) // the test is on its way out
	}
	s.Wait()
	w.gone = true // the server has closed it
}

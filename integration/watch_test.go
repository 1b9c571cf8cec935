package integration

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// noticed waits until a change shows, some times.
func noticed(t *testing.T, what string, change func(i int), shows func(i int) bool) {
	t.Helper()
	for i := range 5 {
		change(i)
		harness.Eventually(t, fmt.Sprintf("%s %d", what, i), func() bool { return shows(i) })
	}
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

func reads(path, want string) bool {
	got, err := os.ReadFile(path)
	return err == nil && string(got) == want
}

// Changes by others show through the mount at once, also where the kernel had
// remembered a name, its absence, attributes or content.
func TestWatch(t *testing.T) {
	t.Parallel()
	m, behind := flavours[0].mount(t)
	for i := range 5 {
		mkdirAll(t, fmt.Sprintf("%s/d%d", behind, i))
		write(t, fmt.Sprintf("%s/d%d/f", behind, i), "old")
	}
	in := func(dir, format string, i int) string { return dir + "/" + fmt.Sprintf(format, i, i) }
	noticed(t, "new file after a miss", func(i int) {
		if exists(in(m.Dir, "d%d/new%d", i)) {
			t.Fatal("there is a file already")
		}
		write(t, in(behind, "d%d/new%d", i), "x")
	}, func(i int) bool { return reads(in(m.Dir, "d%d/new%d", i), "x") })
	noticed(t, "removed file", func(i int) {
		checkErr(t, "remove", os.Remove(in(behind, "d%d/new%d", i)), nil)
	}, func(i int) bool { return !exists(in(m.Dir, "d%d/new%d", i)) })
	noticed(t, "new content", func(i int) {
		checkContent(t, fmt.Sprintf("%s/d%d/f", m.Dir, i), "old")
		write(t, fmt.Sprintf("%s/d%d/f", behind, i), "rewritten")
	}, func(i int) bool { return reads(fmt.Sprintf("%s/d%d/f", m.Dir, i), "rewritten") })
	noticed(t, "replaced file", func(i int) {
		write(t, behind+"/tmp", "replaced")
		checkErr(t, "rename", os.Rename(behind+"/tmp", fmt.Sprintf("%s/d%d/f", behind, i)), nil)
	}, func(i int) bool { return reads(fmt.Sprintf("%s/d%d/f", m.Dir, i), "replaced") })
	noticed(t, "mode", func(i int) {
		checkErr(t, "chmod", os.Chmod(fmt.Sprintf("%s/d%d/f", behind, i), 0o600), nil)
	}, func(i int) bool {
		info, err := os.Stat(fmt.Sprintf("%s/d%d/f", m.Dir, i))
		return err == nil && info.Mode().Perm() == 0o600
	})
	assert.Equal(t, m.Status().Parts[0].Watch.State, "on", "watch")
}

// A new directory is watched as soon as it is there, with all that is in it.
func TestWatchDirectories(t *testing.T) {
	t.Parallel()
	m, behind := flavours[0].mount(t)
	noticed(t, "directory with a file", func(i int) {
		mkdirAll(t, fmt.Sprintf("%s/n%d/a/b", behind, i))
		write(t, fmt.Sprintf("%s/n%d/a/b/f", behind, i), "deep")
	}, func(i int) bool { return reads(fmt.Sprintf("%s/n%d/a/b/f", m.Dir, i), "deep") })
	noticed(t, "change in a new directory", func(i int) {
		write(t, fmt.Sprintf("%s/n%d/a/b/f", behind, i), "changed")
	}, func(i int) bool { return reads(fmt.Sprintf("%s/n%d/a/b/f", m.Dir, i), "changed") })
	noticed(t, "renamed directory", func(i int) {
		checkErr(t, "rename", os.Rename(fmt.Sprintf("%s/n%d", behind, i), fmt.Sprintf("%s/r%d", behind, i)), nil)
	}, func(i int) bool {
		return reads(fmt.Sprintf("%s/r%d/a/b/f", m.Dir, i), "changed") && !exists(fmt.Sprintf("%s/n%d", m.Dir, i))
	})
}

// Each change of content is one event on the lifecycle bus, whoever made it.
func TestWatchEvents(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{})
	ws := w.Workspace("@acme/x", "watch")
	m := w.Mount(ws)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := w.Command(ctx, harness.Binary(), "event", m.Dir, "--follow", "--json")
	out, err := cmd.StdoutPipe()
	checkErr(t, "pipe", err, nil)
	checkErr(t, "start", cmd.Start(), nil)
	lines := make(chan string, 100)
	go func() {
		for sc := bufio.NewScanner(out); sc.Scan(); {
			lines <- sc.Text()
		}
		close(lines)
	}()
	// The follower is listening once it reports a change made after it started.
	harness.Eventually(t, "the follower listens", func() bool {
		write(t, ws+"/probe", time.Now().String())
		return hears(lines, "write", "probe", 100*time.Millisecond)
	})
	for name, dir := range map[string]string{"outside": ws, "inside": m.Dir} {
		write(t, dir+"/"+name, "x")
		assert.True(t, hears(lines, "write", name, harness.Hangs), "no write event for", name)
		checkErr(t, "remove", os.Remove(dir+"/"+name), nil)
		assert.True(t, hears(lines, "delete", name, harness.Hangs), "no delete event for", name)
	}
	cancel()
	for range lines { // until the follower has ended
	}
	cmd.Wait()
}

// hears waits for an event's line.
func hears(lines <-chan string, name, path string, limit time.Duration) bool {
	for end := time.After(limit); ; {
		select {
		case line, ok := <-lines:
			if !ok || strings.Contains(line, name) && strings.Contains(line, path) {
				return ok
			}
		case <-end:
			return false
		}
	}
}

// Without the watch a change shows when the kernel has forgotten.
func TestCanonicalTTL(t *testing.T) {
	t.Parallel()
	m, behind := flavours[1].mount(t)
	if exists(m.Dir + "/new") {
		t.Fatal("there is a file already")
	}
	write(t, behind+"/new", "x")
	harness.Eventually(t, "a new file", func() bool { return reads(m.Dir+"/new", "x") })
	write(t, behind+"/new", "rewritten")
	harness.Eventually(t, "new content", func() bool { return reads(m.Dir+"/new", "rewritten") })
	checkErr(t, "remove", os.Remove(behind+"/new"), nil)
	harness.Eventually(t, "a removed file", func() bool {
		_, err := os.Stat(m.Dir + "/new")
		return errors.Is(err, fs.ErrNotExist)
	})
}

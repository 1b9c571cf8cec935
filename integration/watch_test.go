package integration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

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
		assert.Must(t, !exists(in(m.Dir, "d%d/new%d", i)), "there is a file already")
		write(t, in(behind, "d%d/new%d", i), "x")
	}, func(i int) bool { return reads(in(m.Dir, "d%d/new%d", i), "x") })
	noticed(t, "removed file", func(i int) {
		assert.OK(t, os.Remove(in(behind, "d%d/new%d", i)), "remove")
	}, func(i int) bool { return !exists(in(m.Dir, "d%d/new%d", i)) })
	noticed(t, "new content", func(i int) {
		checkContent(t, fmt.Sprintf("%s/d%d/f", m.Dir, i), "old")
		write(t, fmt.Sprintf("%s/d%d/f", behind, i), "rewritten")
	}, func(i int) bool { return reads(fmt.Sprintf("%s/d%d/f", m.Dir, i), "rewritten") })
	noticed(t, "replaced file", func(i int) {
		write(t, behind+"/tmp", "replaced")
		assert.OK(t, os.Rename(behind+"/tmp", fmt.Sprintf("%s/d%d/f", behind, i)), "rename")
	}, func(i int) bool { return reads(fmt.Sprintf("%s/d%d/f", m.Dir, i), "replaced") })
	noticed(t, "mode", func(i int) {
		assert.Is(t, os.Chmod(fmt.Sprintf("%s/d%d/f", behind, i), 0o600), nil, "chmod")
	}, func(i int) bool {
		info, err := os.Stat(fmt.Sprintf("%s/d%d/f", m.Dir, i))
		return err == nil && info.Mode().Perm() == 0o600
	})
	assert.Equal(t, m.Status().Parts[0].Watch.State, "on", "watch")
}

// Without the watch a change shows when the kernel has forgotten.
func TestCanonicalTTL(t *testing.T) {
	t.Parallel()
	m, behind := flavours[1].mount(t)
	assert.Must(t, !exists(m.Dir+"/new"), "there is a file already")
	write(t, behind+"/new", "x")
	harness.Eventually(t, "a new file", func() bool { return reads(m.Dir+"/new", "x") })
	write(t, behind+"/new", "rewritten")
	harness.Eventually(t, "new content", func() bool { return reads(m.Dir+"/new", "rewritten") })
	assert.OK(t, os.Remove(behind+"/new"), "remove")
	harness.Eventually(t, "a removed file", func() bool {
		_, err := os.Stat(m.Dir + "/new")
		return errors.Is(err, fs.ErrNotExist)
	})
}

package integration

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// script runs one of the project's in a world, and returns what it says.
func script(t *testing.T, w *harness.World, name string, args []string, env ...string) string {
	t.Helper()
	path := assert.Of(filepath.Abs(name)).OK(t)
	cmd := w.Command(t.Context(), path, args...)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	assert.OK(t, err, name, string(out))
	return string(out)
}

// within are the files and links in a directory.
func within(t *testing.T, dir string) (names []string) {
	t.Helper()
	assert.OK(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, strings.TrimPrefix(name, dir))
		}
		return err
	}))
	return names
}

// What `make install` puts where tools look for it, and that `make uninstall` takes it away.
func TestInstall(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{})
	dest := w.Mkdir("dest", 0o755)
	script(t, w, "tools/install.sh", []string{harness.Binary()}, "DESTDIR="+dest, "PREFIX=/opt/ws")
	installed := within(t, dest)
	for _, name := range []string{"bin/wsmount", "share/man/man1/wsmount.1.gz", "share/man/man5/wsmount.yaml.5.gz", "share/man/man5/wsmount-manifest.5.gz",
		"share/bash-completion/completions/wsmount", "share/zsh/site-functions/_wsmount", "share/fish/vendor_completions.d/wsmount.fish",
		"lib/systemd/system/wsmount@.service", "share/doc/wsmount/examples/compose.yaml"} {
		assert.True(t, slices.Contains(installed, "/opt/ws/"+name), name, installed)
	}
	for _, name := range []string{"mount.wsmount", "mount.fuse.wsmount", "umount.wsmount", "umount.fuse.wsmount"} {
		to, err := os.Readlink(filepath.Join(dest, "sbin", name))
		assert.True(t, err == nil && to == "/opt/ws/bin/wsmount", name, to, err)
	}
	script(t, w, "tools/install.sh", []string{harness.Binary()}, "DESTDIR="+dest, "PREFIX=/opt/ws", "REMOVE=1")
	assert.Slice(t, within(t, dest), nil, "after it was removed")
}

// What the quickstart shows works, and its last line leaves nothing of it.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{})
	before := within(t, w.Dir)
	said := script(t, w, "example/quickstart.sh", []string{harness.Binary()}, "HOME="+w.Mkdir("home/me", 0o755))
	assert.Contains(t, said, "./style/page.md\n")
	var commands []string
	for line := range strings.Lines(said) {
		if command, is := strings.CutPrefix(line, "    "); is && !strings.HasPrefix(command, ".") {
			commands = append(commands, command)
		}
	}
	out, err := w.Command(t.Context(), "sh", "-ec", strings.Join(commands, "")).CombinedOutput()
	assert.OK(t, err, string(out))
	assert.Contains(t, string(out), "hello\n@example/handbook at ")
	assert.Slice(t, within(t, w.Dir), before, "after its last line")
}

package cache

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// lateNotes is a notifier whose notes have not reached the kernel yet.
type lateNotes struct{ nobody }

// Who opens a file reads all of the version that the open found, also where the
// kernel still believes in the size of the one before: half of a version is none
// that anybody wrote.
func TestOpenKnowsTheSizeOfItsVersion(t *testing.T) {
	tier.RequireFUSE(t)
	const theirs = "theirs, which is longer"
	w := newWorld(t, holding("f", "short"), func(_ *world, o *Options) { o.Owner, o.Policy.TTL = nil, time.Hour })
	dir := t.TempDir()
	s, err := fs.Serve(dir, []fs.Part{{Name: "@acme/test", Volume: w.v}}, fs.Options{})
	w.ok(err)
	t.Cleanup(func() {
		w.ok(s.Unmount())
		s.Wait()
		w.gone = true // the server has closed it
	})
	w.v.Bind(lateNotes{})
	path := filepath.Join(dir, "f")
	if _, err := os.Stat(filepath.Join(dir, "@acme/test")); err == nil {
		path = filepath.Join(dir, "@acme/test/f")
	}
	// Another process opens it: one that opens a file of its own mount may wait for itself.
	shell := func(script string) string {
		t.Helper()
		out, err := exec.Command("sh", "-c", script, "sh", path).CombinedOutput()
		assert.OK(t, err, script, out)
		return string(out)
	}
	before := shell(`stat -c %s "$1"`)
	w.tamper("f", theirs)
	if got := shell(`cat <>"$1"`); before != "5\n" || got != theirs {
		t.Errorf("size %q, read %q, want 5 and %q", before, got, theirs)
	}
}

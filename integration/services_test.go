package integration

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// A service has the objects of a bucket, of which those of the workspace are below team/ws.
type service interface {
	Put(key, content string, metadata map[string]string)
	Keys() []string
}

// keepsATree: what is written through a workspace is the same for whoever mounts it anywhere,
// after renames and deletions too, also where it is only shown; what is excluded is not there.
func (b *bucketStage) keepsATree(s service, workspace, shown string, flags ...string) {
	t := b.t
	t.Helper()
	m := b.w.Mount(workspace)
	b.fill(m.Dir)
	assert.OK(t, os.Rename(filepath.Join(m.Dir, "d1"), filepath.Join(m.Dir, "moved")))
	assert.OK(t, os.RemoveAll(filepath.Join(m.Dir, "d2")))
	assert.OK(t, os.Chmod(filepath.Join(m.Dir, "run"), 0o700))
	want := b.lines(m.Dir)
	assert.OK(t, os.WriteFile(filepath.Join(m.Dir, "own.tmp"), []byte("stays here"), 0o644))
	m.Stop()
	keys := s.Keys()
	if !slices.Contains(keys, "team/ws/run") || slices.Contains(keys, "team/ws/own.tmp") {
		t.Errorf("objects %q", keys)
	}
	assert.OK(t, os.RemoveAll(b.w.Path("state", "acme"))) // a machine that was never here
	m.Start()
	b.same("on another machine", m.Dir, want)

	reader := b.w.Mount(shown, flags...)
	b.same("to be read", reader.Dir, want)
	checkErr(t, "write", os.WriteFile(filepath.Join(reader.Dir, "run"), []byte("x"), 0o644), syscall.EROFS)
}

// hasAnotherWriter: what another program does is seen, and not overwritten unseen.
func (b *bucketStage) hasAnotherWriter(s service, workspace string) {
	t := b.t
	t.Helper()
	s.Put("team/ws/plan", "base", nil)
	path := filepath.Join(b.w.Mount(workspace).Dir, "plan")
	checkContent(t, path, "base")
	s.Put("team/ws/plan", "next", nil)
	harness.Eventually(t, "the change is there", func() bool {
		content, _ := os.ReadFile(path)
		return string(content) == "next"
	})
	replaceMeanwhile(t, path, "ours", func() { s.Put("team/ws/plan", "theirs at last", nil) })
	harness.Eventually(t, "both versions are there", func() bool {
		var got []string
		copies, _ := filepath.Glob(path + "*")
		for _, one := range copies {
			content, _ := os.ReadFile(one)
			got = append(got, string(content))
		}
		slices.Sort(got)
		return slices.Equal(got, []string{"ours", "theirs at last"})
	})
}

package crash

import (
	"fmt"
	"os"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// After a kill with many changed files the mount is back, with all of them.
func TestRecovery(t *testing.T) {
	t.Parallel()
	const each = 250 // in a directory
	files := tier.Pick(500, 10_000)
	s := newStage(t, syncAsked)
	s.mount()
	for i := range files {
		if i%each == 0 {
			assert.OK(t, os.Mkdir(fmt.Sprint(s.m.Dir, "/d", i/each), 0o755))
		}
		assert.OK(t, os.WriteFile(fmt.Sprintf("%s/d%d/%d", s.m.Dir, i/each, i), fmt.Appendf(nil, "file %d", i), 0o644))
	}
	want := treeLines(t, s.m.Dir)
	s.m.Kill()
	s.m.Start()
	got := treeLines(t, s.m.Dir)
	assert.Must(t, len(got) == len(want), len(got), "entries, and there were", len(want))
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %s, want %s", got[i], want[i])
		}
	}
	s.w.MustRun("commit", s.m.Dir)
	s.settle()
	s.converged()
}

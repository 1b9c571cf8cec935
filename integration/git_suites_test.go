package integration

import (
	"os"
	"testing"

	"github.com/wsmount/wsmount/integration/posix"
	"github.com/wsmount/wsmount/integration/tier"
)

// A repository's tree is a file system like any other: the POSIX suites hold in it,
// and what they leave can be committed.
func TestGitSuites(t *testing.T) {
	t.Parallel()
	g := newGitStage(t)
	g.seed()
	g.workspace("suites", "commit: {on: write, batch_window_ms: 500}, push: {on: manual}")
	var flags []string
	if os.Geteuid() == 0 {
		flags = append(flags, "--allow-other")
	}
	c := &workingCopy{Mount: g.w.Mount("@acme/suites", flags...), t: t, w: g.w}
	t.Cleanup(func() {
		g.w.MustRun("commit", "--confirm", c.Dir)
		c.Stop()
		g.sound()
	})
	c.suites(t, &posix.Options{Without: tier.Pick(posix.Long, []string{"readdir"})})
}

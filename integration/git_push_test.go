package integration

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// What is committed while a push is under way is pushed by the unmount, or is listed
// as unsaved if the server refuses it.
func TestGitCommitDuringAPush(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, then string // what the server's hook does from the second push on
		refused    bool
	}{
		{"taken", "exit 0", false},
		{"refused", "echo 'no second push' >&2; exit 1", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGitStage(t)
			g.seed()
			g.workspace("site", "pull: {on: manual}, commit: {on: each-write, batch_window_ms: 100}, push: {on: per-commit}")
			entered, open := g.holdPush(c.then)
			m := g.w.Mount("@acme/site")
			g.check(os.WriteFile(m.Dir+"/one", []byte("one\n"), 0o644))
			entered()
			g.check(os.WriteFile(m.Dir+"/two", []byte("two\n"), 0o644))
			harness.Eventually(t, "the second commit is made", func() bool { return copyOf(m, "/").UnpushedCommits == 2 })
			open()
			if c.refused {
				harness.Eventually(t, "status says that the second push is refused", func() bool {
					return contains(g.w.MustRun("status", m.Dir), "no second push")
				})
			}
			r := g.w.Run("umount", m.Dir)
			m.WaitGone()
			assert.Of(g.repo.Try("show", "main:one")).Equal(t, "one\n", "the first commit at the server")
			two, err := g.repo.Try("show", "main:two")
			unsaved := g.w.MustRun("recover")
			switch {
			case c.refused && (r.Code == 0 || err == nil || !contains(r.Err, "no second push") || !contains(unsaved, "@acme/site", "1 commit,", "no second push")):
				t.Errorf("refused: umount ends with %d, the server has %q, %v\n%s\nrecover lists\n%s", r.Code, two, err, r.Err, unsaved)
			case !c.refused && (r.Code != 0 || two != "two\n" || contains(unsaved, "@acme/site")):
				t.Errorf("taken: umount ends with %d, the server has %q, %v\n%s\nrecover lists\n%s", r.Code, two, err, r.Err, unsaved)
			}
		})
	}
}

// holdPush has the server's hook wait in the first push until open is called; entered
// returns when it waits. then is what the hook does in any later push.
func (g *gitStage) holdPush(then string) (entered, open func()) {
	g.t.Helper()
	dir := g.w.Mkdir("hook", 0o755)
	for _, fifo := range []string{"/in", "/out"} {
		g.check(syscall.Mkfifo(dir+fifo, 0o600))
	}
	hook := fmt.Sprintf("#!/bin/sh\nmkdir '%[1]s/first' 2>/dev/null || { %[2]s; }\necho >'%[1]s/in'\nread -r _ <'%[1]s/out'\n", dir, then)
	g.check(os.WriteFile(g.repo.Dir+"/hooks/pre-receive", []byte(hook), 0o755))
	entered = func() {
		g.t.Helper()
		_, err := os.ReadFile(dir + "/in") // which waits for the hook
		g.check(err)
	}
	g.t.Cleanup(func() { // of a test that ended before: the hook goes on
		if f, err := os.OpenFile(dir+"/out", os.O_RDWR, 0); err == nil {
			_, _ = f.WriteString("\n")
			_ = f.Close()
		}
	})
	return entered, func() {
		g.t.Helper()
		g.check(os.WriteFile(dir+"/out", []byte("\n"), 0o600))
	}
}

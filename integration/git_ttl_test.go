package integration

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// Further looks at what others have pushed, each of which finds it at once.
var looksAtAPush = map[string]func(dir string, n int) error{
	"stat": func(dir string, n int) error {
		i, err := os.Stat(dir + "/f")
		if err == nil && i.Size() != int64(n) {
			err = fmt.Errorf("size %d, want %d", i.Size(), n)
		}
		return err
	},
	"stat of a new name": func(dir string, n int) error {
		_, err := os.Stat(fmt.Sprintf("%s/d/%d", dir, n))
		return err
	},
	"readdir": func(dir string, n int) error {
		names, err := os.ReadDir(dir + "/d")
		if err == nil && len(names) != n {
			err = fmt.Errorf("%d names, want %d", len(names), n)
		}
		return err
	},
	"open": func(dir string, n int) error {
		content, err := os.ReadFile(dir + "/f")
		if err == nil && len(content) != n {
			err = fmt.Errorf("%q, want %d bytes", content, n)
		}
		return err
	},
}

// pushes has others push the nth state, which looksAtAPush knows.
func (g *gitStage) pushes(n int) {
	g.t.Helper()
	g.other.Write(map[string]string{"f": strings.Repeat("x", n), fmt.Sprintf("d/%d", n): ""})
	g.other.Commit("main", fmt.Sprintf("state %d", n))
}

// fetches are the questions for what the branches are at, since the last call.
func (g *gitStage) fetches() (n int) {
	for _, r := range g.server.Requests() {
		if strings.Contains(r, "/info/refs") && strings.HasSuffix(r, "service=git-upload-pack") {
			n++
		}
	}
	return n
}

// The first look after the TTL shows what others have pushed, also where the kernel had
// looked before.
func TestGitFirstLookAfterTheTTL(t *testing.T) {
	t.Parallel()
	g := newGitStage(t)
	g.pushes(1)
	g.workspace("site", "pull: {on: workspace-open, ttl_seconds: 1}")
	m := g.w.Mount("@acme/site")
	n := 1
	for _, what := range []string{"stat", "stat of a new name", "readdir", "open"} {
		for _, look := range looksAtAPush {
			assert.OK(t, look(m.Dir, n))
		}
		_, err := os.Stat(fmt.Sprintf("%s/d/%d", m.Dir, n+1))
		assert.True(t, os.IsNotExist(err), "the next name is not there")
		n++
		g.pushes(n)
		time.Sleep(believed) // nothing can be told to expire earlier
		assert.OK(t, looksAtAPush[what](m.Dir, n), "after the TTL")
	}
}

// All looks share the question, and within the TTL there is no other: the branch that the
// mount had before is asked about once.
func TestGitLooksShareAQuestion(t *testing.T) {
	t.Parallel()
	g := newGitStage(t)
	g.pushes(1)
	g.workspace("site", "pull: {on: turn-start, ttl_seconds: 3600}")
	m := g.w.Mount("@acme/site")
	m.Stop()
	g.pushes(2)
	g.fetches()
	m.Start()
	harness.Eventually(t, "the server has answered", func() bool { return !copyOf(m, "/").Stale }) // a mount does not wait long for it
	var all sync.WaitGroup
	for what, look := range looksAtAPush {
		for range 4 {
			all.Go(func() { assert.Is(t, look(m.Dir, 2), nil, what) })
		}
	}
	all.Wait()
	assert.Equal(t, g.fetches(), 1, "questions of all looks")
	g.pushes(3)
	g.fetches()
	for what, look := range looksAtAPush {
		assert.OK(t, look(m.Dir, 2), what+" within the TTL")
	}
	assert.Equal(t, g.fetches(), 0, "questions within the TTL")
}

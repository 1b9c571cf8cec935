package integration

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// A bloblessStage is a gitStage whose server filters, and can be away.
type bloblessStage struct {
	*gitStage
	away atomic.Bool
}

const bloblessDirs, bloblessFiles = 30, 10

// newBloblessStage has a repository with more directories than are to be asked for one by one.
func newBloblessStage(t *testing.T, mode string) *bloblessStage {
	t.Helper()
	g := &bloblessStage{gitStage: newGitStage(t)}
	g.repo.Filter()
	g.server.Hook(func(w http.ResponseWriter, _ *http.Request) bool {
		if g.away.Load() {
			http.Error(w, "nobody is here", http.StatusServiceUnavailable)
		}
		return g.away.Load()
	})
	files := map[string]string{".gitattributes": "*.txt merge=union\n"}
	for i := range bloblessDirs * bloblessFiles {
		files[fmt.Sprintf("d%02d/f%04d.txt", i/bloblessFiles, i)] = fmt.Sprintf("file %d\n", i)
	}
	g.other.Write(files)
	g.other.Commit("main", "begin")
	config := g.read(g.w.Path("config/wsmount/config.yaml"))
	g.w.Write("config/wsmount/config.yaml", strings.Replace(config, "github: {", "github: { clone: "+mode+",", 1), 0o600)
	g.workspace("less", "pull: {on: turn-start}, commit: {on: manual}, push: {on: per-commit}")
	g.server.Requests()
	return g
}

// packs are the requests for packs since somebody asked last.
func (g *bloblessStage) packs() int {
	return len(slices.DeleteFunc(g.server.Requests(), func(r string) bool {
		return !strings.HasPrefix(r, "POST ") || !strings.HasSuffix(r, "/git-upload-pack")
	}))
}

// A mount of a large repository is there before its content is, all of which comes in
// few requests, and then none is needed any more.
func TestGitBlobless(t *testing.T) {
	t.Parallel()
	g := newBloblessStage(t, "auto")
	m := g.w.Mount("@acme/less")
	harness.Eventually(t, "the clone is whole", func() bool { return m.Status().Parts[0].WorkingCopy.Clone.Kind == "full" })
	// How many are asked for together is a matter of time; the provider's tests count them.
	n := g.packs()
	assert.True(t, n < bloblessDirs, n, "requests brought", bloblessDirs, "directories")
	g.same("after the clone", g.lines(m.Dir), g.fresh())
	assert.Equal(t, g.packs(), 0, "requests for what is here")
	m.Stop()
	m = g.w.Mount("@acme/less", "--patience", "1s") // the first look asks a server that is away
	g.away.Store(true)
	assert.Equal(t, len(g.lines(m.Dir)), bloblessDirs*bloblessFiles+1, "files without the server")
	assert.Equal(t, g.programs(m.Dir, "status", "--porcelain"), "", "git status")
	g.away.Store(false)
}

// What is not here comes when somebody looks, and what cannot come is EIO, with a
// reason; what is here stays readable, and work goes on around it.
func TestGitBloblessAway(t *testing.T) {
	t.Parallel()
	g := newBloblessStage(t, "blobless")
	m := g.w.Mount("@acme/less")
	harness.Eventually(t, "all is missing", func() bool {
		s := m.Status().Parts[0].WorkingCopy.Clone
		return s.Kind == "blobless" && s.Missing > bloblessDirs*bloblessFiles-20
	})
	g.packs()
	first, err := os.ReadFile(m.Dir + "/d03/f0035.txt")
	g.check(err)
	n := g.packs()
	assert.True(t, string(first) == "file 35\n" && n >= 1 && n < bloblessFiles, n, "requests brought", first, "and what lies beside it")
	m.Stop()
	m = g.w.Mount("@acme/less", "--patience", "1s") // for a server that is away
	g.away.Store(true)
	log := m.Dir + "/.wsmount/errors.log"
	harness.Eventually(t, "what the server said is told", func() bool { // the patience may end before it said so
		assert.Is(t, assert.ErrOf(os.ReadDir(m.Dir+"/d07")), syscall.EIO, "what cannot come")
		return contains(g.w.MustRun("status", m.Dir), "503") && copyOf(m, "/").Clone.Error != "" && contains(g.read(log), "503")
	})
	other, err := os.ReadFile(m.Dir + "/d03/f0036.txt")
	assert.True(t, string(other) == "file 36\n" && err == nil, "what is here:", other, err)
	g.check(os.WriteFile(m.Dir+"/d03/f0035.txt", []byte("mine\n"), 0o644))
	assert.Equal(t, g.programs(m.Dir, "status", "--porcelain"), " M d03/f0035.txt\n", "git status")
	out, err := (&gitserver.Repo{Dir: m.Dir}).Try("show", "HEAD:d07/f0070.txt")
	assert.True(t, err != nil && strings.Contains(err.Error(), "content-that-has-not-come-yet"), "git shows", out, err)
	m.Kill()
	m.Start()
	g.check(os.WriteFile(m.Dir+"/d03/new.txt", []byte("new\n"), 0o644))
	g.away.Store(false)
	harness.Eventually(t, "a commit with the server back", func() bool { return g.w.Run("commit", m.Dir).Code == 0 })
	harness.Eventually(t, "what was written gets there", func() bool { return slices.Contains(g.fresh(), "100644 d03/f0035.txt mine\n") })
	m.Stop()
	m = g.w.Mount("@acme/less") // and now it waits as long as the machine needs
	g.same("after the server is back", g.lines(m.Dir), g.fresh())
	g.repo.Git("fsck", "--strict", "--full")
}

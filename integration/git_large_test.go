package integration

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/tier"
)

// A largeStage is a gitStage whose server has large files, and whose other clone is
// one of the program git-lfs.
type largeStage struct {
	*gitStage
	lfs *gitserver.LFS
}

// newLargeStage has the host grant the API, and the storage beside it if that is
// wanted.
func newLargeStage(t *testing.T, storage bool) *largeStage {
	t.Helper()
	tier.RequireTools(t, "git", "git-lfs")
	g := &largeStage{gitStage: newGitStage(t)}
	g.lfs = g.server.StartLFS(t)
	if storage {
		config := g.read(g.w.Path("config/wsmount/config.yaml"))
		g.w.Write("config/wsmount/config.yaml", strings.Replace(config, "allow_endpoints: [", fmt.Sprintf("allow_endpoints: [ \"%s 127.0.0.1\",", g.lfs.Storage), 1), 0o600)
	}
	g.other = &gitserver.Repo{}
	*g.other = *g.repo.Clone(g.w.Path("lfs"))
	g.server.Require(gitToken)
	g.other.Git("remote", "set-url", "origin", strings.Replace(g.repo.URL, "://", "://bob:"+gitToken+"@", 1))
	g.other.Git("lfs", "install", "--local")
	g.other.Git("lfs", "track", "*.bin")
	return g
}

// random is content that nothing compresses, the same for a seed.
func random(seed uint64, size int) string {
	b := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = r.Read(b) // never fails
	return string(b)
}

// seed is a first commit that git-lfs makes.
func (g *largeStage) seed() {
	g.t.Helper()
	g.other.Write(map[string]string{"large.bin": random(1, 3<<20+17), "dir/small.bin": "small", "dir/gone.bin": random(2, 100_000), "text": "text\n", "empty.bin": "",
		"kept.bin": random(3, 5000)})
	g.other.Commit("main", "begin")
	got := g.repo.Git("show", "main:dir/small.bin")
	assert.Must(g.t, strings.HasPrefix(got, "version https://git-lfs"), "git-lfs has made", got)
}

// onlyPointers checks that the branch has no content that is meant for LFS, and that
// git-lfs finds all of it sound.
func (g *largeStage) onlyPointers() {
	g.t.Helper()
	for _, path := range strings.Fields(g.repo.Git("ls-tree", "-r", "--name-only", "main")) {
		blob := g.repo.Git("show", "main:"+path)
		if strings.HasSuffix(path, ".bin") && blob != "" && !strings.HasPrefix(blob, "version https://git-lfs.github.com/spec/v1\n") {
			g.t.Errorf("git has %d bytes as %s", len(blob), path)
		}
	}
	g.fresh()
	g.other.Git("lfs", "fsck")
}

// finds checks what git finds changed in a mount.
func (g *largeStage) finds(m *harness.Mount, what, want string) {
	g.t.Helper()
	assert.Equal(g.t, g.programs(m.Dir, "status", "--porcelain"), want, what, "git status says")
}

// findsToo is finds where the user of the mount has set up git-lfs or has not.
func (g *largeStage) findsToo(m *harness.Mount, what, want string) {
	g.t.Helper()
	global := "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\tprocess = git-lfs filter-process\n\trequired = true\n"
	for _, config := range []string{"", global} {
		g.w.Write("home/.gitconfig", config, 0o600)
		g.finds(m, what, want)
	}
	g.w.Write("home/.gitconfig", "", 0o600)
}

// What git-lfs has put into a repository is read in a mount, and what is written in a
// mount is there for git-lfs, through renames and a pull.
func TestGitLarge(t *testing.T) {
	t.Parallel()
	g := newLargeStage(t, true)
	g.seed()
	g.workspace("large", "pull: {on: turn-start}, commit: {on: manual}, push: {on: per-commit}")
	g.lfs.Requests()
	m := g.w.Mount("@acme/large")
	info, err := os.Stat(m.Dir + "/large.bin")
	g.check(err)
	if asked := g.lfs.Requests(); info.Size() != 3<<20+17 || slices.ContainsFunc(asked, func(r string) bool { return strings.HasPrefix(r, "GET") }) {
		t.Errorf("the size is %d, for which was asked %q", info.Size(), asked)
	}
	g.finds(m, "after the clone", "")
	g.same("after the clone", g.lines(m.Dir), g.fresh())
	g.finds(m, "after everything was read", "")

	f, err := os.OpenFile(m.Dir+"/large.bin", os.O_RDWR, 0)
	g.check(err)
	_, err = f.WriteAt([]byte("in the middle"), 2<<20)
	g.check(err)
	g.check(f.Close())
	g.findsToo(m, "after a change", " M large.bin\n")
	g.check(os.WriteFile(m.Dir+"/dir/new.bin", []byte(random(4, 1<<20)), 0o755))
	g.check(os.WriteFile(m.Dir+"/copy.bin", []byte("small"), 0o644))
	g.check(os.Rename(m.Dir+"/kept.bin", m.Dir+"/dir/moved.bin"))
	g.check(os.Rename(m.Dir+"/text", m.Dir+"/text.bin"))
	g.check(os.Remove(m.Dir + "/dir/gone.bin"))
	g.w.MustRun("commit", m.Dir)
	g.arrives(m, "what was changed here")
	g.onlyPointers()
	g.finds(m, "after a commit", "")

	g.other.Write(map[string]string{"large.bin": random(5, 1<<20), "theirs.bin": random(6, 1<<16)})
	g.other.Commit("main", "theirs")
	g.event(m, "turn-start")
	g.same("after a pull", g.lines(m.Dir), g.fresh())
	g.findsToo(m, "after a pull", "")
	m.Stop()
	g.sound()
}

// A conflict in LFS is resolved like another, no push goes without its content, which
// outlives a kill before it, and what no commit needs any more is not kept.
func TestGitLargeIsOutOfStep(t *testing.T) {
	t.Parallel()
	g := newLargeStage(t, true)
	g.other.Write(map[string]string{"dir/small.bin": "a\nb\nc\n"})
	g.other.Commit("main", "begin")
	g.workspace("large", "pull: {on: turn-start, ttl_seconds: 3600}, commit: {on: manual}, push: {on: per-commit}")
	m := g.w.Mount("@acme/large")
	g.same("before all", g.lines(m.Dir), g.fresh()) // no further look asks the server
	g.other.Write(map[string]string{"dir/small.bin": "a\nb\nc\ntheirs\n"})
	g.other.Commit("main", "text in LFS")
	const ours = "ours\na\nb\nc\n"
	g.check(os.WriteFile(m.Dir+"/dir/small.bin", []byte(ours), 0o644))
	g.w.MustRun("commit", "--no-wait", m.Dir)
	g.w.Run("push", m.Dir) // finds theirs first
	if said := g.w.MustRun("conflicts", "list", m.Dir); !strings.Contains(said, "dir/small.bin") || g.read(m.Dir+"/dir/small.bin") != ours {
		t.Errorf("conflicts says\n%s\nand the file\n%s", said, g.read(m.Dir+"/dir/small.bin"))
	}
	g.w.MustRun("conflicts", "resolve", "--theirs", m.Dir, "dir/small.bin")
	g.event(m, "turn-end")
	g.arrives(m, "what was resolved")

	g.lfs.Fail(func(r *http.Request) *gitserver.Answer {
		if r.Method == http.MethodPut {
			return &gitserver.Answer{Status: http.StatusServiceUnavailable}
		}
		return nil
	})
	before := g.repo.Git("rev-parse", "main")
	g.check(os.WriteFile(m.Dir+"/unsent.bin", []byte(random(7, 1<<20)), 0o644))
	want := g.lines(m.Dir)
	g.w.MustRun("commit", "--no-wait", m.Dir)
	r := g.w.Run("push", "--timeout", "1s", m.Dir)
	assert.True(t, r.Code != 0 && strings.Contains(g.programs(m.Dir, "status", "-sb"), "ahead 1"), "a push without its content answers", r.Code, r.Out, r.Err)
	m.Kill()
	g.lfs.Fail(nil)
	assert.Equal(t, g.repo.Git("rev-parse", "main"), before, "the branch went on without its content")
	m.Start()
	g.same("after a kill", g.lines(m.Dir), want)
	g.w.MustRun("push", m.Dir)
	g.arrives(m, "what was not sent before the kill")
	g.onlyPointers()
	m.Stop()
	g.sound()
	kept, err := filepath.Glob(g.w.Path("state", "acme", "*", "*", "git", "wsmount", "lfs", "*"))
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(ours))); err != nil || len(kept) != 1 || filepath.Base(kept[0]) != want {
		t.Errorf("objects are kept %q, %v, want %s of the commit that was taken back", kept, err, want)
	}
}

// What goes through LFS may be larger than what goes into git: there it is held back
// until an attribute says otherwise.
func TestGitLargerThanGitTakes(t *testing.T) {
	t.Parallel()
	g := newLargeStage(t, true)
	g.seed()
	g.workspace("large", "pull: {on: turn-start}, commit: {on: manual}, push: {on: per-commit}")
	m := g.w.Mount("@acme/large")
	g.check(os.WriteFile(m.Dir+"/set.raw", []byte("set.raw"), 0o644))
	g.check(os.Truncate(m.Dir+"/set.raw", 101<<20))
	for range 2 {
		r := g.w.Run("commit", m.Dir)
		assert.True(t, r.Code == 7 && contains(r.Out+r.Err, "1 held back"), "a commit answers", r.Code, r.Out, r.Err)
	}
	assert.Equal(t, strings.Count(g.read(m.Dir+"/.wsmount/errors.log"), "set.raw"), 1, "lines of errors.log of what is held back")
	g.check(os.WriteFile(m.Dir+"/.gitattributes", []byte(g.read(m.Dir+"/.gitattributes")+"*.raw filter=lfs\n"), 0o644))
	g.w.MustRun("commit", m.Dir)
	harness.Eventually(t, "it is at the server", func() bool {
		got, err := g.repo.Try("show", "main:set.raw")
		return err == nil && strings.HasSuffix(got, "size 105906176\n")
	})
	m.Stop()
}

// Content that does not come is an I/O error, whose reason is told; the rest of the
// tree is as it is.
func TestGitLargeDoesNotCome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		granted bool
		says    string
	}{"the storage is not granted": {false, "allow_endpoints"}, "the object is not there": {true, "Object does not exist"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newLargeStage(t, c.granted)
			g.seed()
			if c.granted {
				g.lfs.Drop("small")
			}
			g.workspace("large", "pull: {on: turn-start}, commit: {on: manual}, push: {on: per-commit}")
			m := g.w.Mount("@acme/large")
			assert.Is(t, assert.ErrOf(os.ReadFile(m.Dir+"/dir/small.bin")), syscall.EIO, "content that does not come")
			said := g.read(m.Dir + "/.wsmount/errors.log")
			assert.True(t, contains(said, "dir/small.bin", c.says), "errors.log says", said)
			assert.Equal(t, g.read(m.Dir+"/text"), "text\n", "another file")
			if got, err := os.ReadFile(m.Dir + "/large.bin"); c.granted && (string(got) != random(1, 3<<20+17) || err != nil) {
				t.Errorf("another file in LFS: %d bytes, %v\n%s", len(got), err, g.read(m.Dir+"/.wsmount/errors.log"))
			}
		})
	}
}

// Where the server has no LFS the pointers are shown, and what should go to LFS is held
// back with the reason.
func TestGitLargeNotOffered(t *testing.T) {
	t.Parallel()
	g := newLargeStage(t, true)
	g.seed()
	g.server.StopLFS()
	g.workspace("large", "pull: {on: turn-start}, commit: {on: manual}, push: {on: per-commit}")
	m := g.w.Mount("@acme/large")
	assert.Equal(t, g.read(m.Dir+"/dir/small.bin"), g.repo.Git("show", "main:dir/small.bin"), "a pointer")
	g.finds(m, "after the clone", "")
	g.check(os.WriteFile(m.Dir+"/new.bin", []byte("content"), 0o644))
	g.check(os.WriteFile(m.Dir+"/text", []byte("changed\n"), 0o644))
	g.check(os.Rename(m.Dir+"/kept.bin", m.Dir+"/moved.bin"))
	r := g.w.Run("commit", m.Dir)
	assert.True(t, r.Code == 7 && contains(r.Out+r.Err, "1 held back"), "a commit answers", r.Code, r.Out, r.Err)
	g.w.MustRun("push", m.Dir)
	assert.Equal(t, g.repo.Git("show", "--format=", "--name-status", "main"), "R100\tkept.bin\tmoved.bin\nM\ttext\n", "the commit")
	said := strings.Join(strings.Fields(g.w.MustRun("status", m.Dir)), " ")
	assert.True(t, contains(said, "new.bin", "which the server does not offer"), "status says", said)
	g.check(os.Remove(m.Dir + "/new.bin"))
	m.Stop()
}

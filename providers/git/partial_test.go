package git_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git"
	"github.com/wsmount/wsmount/providers/providertest"
)

// filtering is a repository at a server that filters, and what was asked of it.
type filtering struct {
	*testing.T
	server      *gitserver.Server
	repo, other *gitserver.Repo
	dir         string // of the clone

	mu    sync.Mutex
	asked []ask
	away  bool
	hold  map[bool]chan struct{} // what filters, or does not, waits until it is closed; nil: none does
	begun chan struct{}          // gets a token for each that waits
}

// ask is a request for a pack.
type ask struct {
	wants  []string
	filter bool
}

func newFiltering(t *testing.T, files map[string]string) *filtering {
	t.Helper()
	s := &filtering{T: t, dir: place(t), begun: make(chan struct{}, 100)}
	s.server = gitserver.Start(t)
	s.repo = s.server.Create(t, "acme/r")
	s.repo.Filter()
	s.other = s.repo.Clone(filepath.Join(t.TempDir(), "other"))
	s.push(files)
	s.server.Hook(s.see)
	return s
}

func (s *filtering) push(files map[string]string) {
	s.Helper()
	s.other.Write(files)
	s.other.Commit("main", "more")
}

// see notes what a request wants, and fails it while the server is away.
func (s *filtering) see(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/git-upload-pack") {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.away {
			http.Error(w, "nobody is here", http.StatusServiceUnavailable)
		}
		return s.away
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.Header.Get("Content-Encoding") == "gzip" {
		if z, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, _ = io.ReadAll(z)
		}
	}
	var a ask
	for line := range strings.Lines(string(body)) {
		if _, want, is := strings.Cut(line, "want "); is && len(want) >= 40 {
			a.wants = append(a.wants, want[:40])
		}
		a.filter = a.filter || strings.Contains(line, "filter blob:none")
	}
	s.mu.Lock()
	s.asked = append(s.asked, a)
	hold, away := s.hold[a.filter], s.away
	s.mu.Unlock()
	if hold != nil {
		s.begun <- struct{}{}
		<-hold
	}
	if away {
		http.Error(w, "nobody is here", http.StatusServiceUnavailable)
	}
	return away
}

// holding has requests wait, those that filter or those for contents, until release is
// called.
func (s *filtering) holding(filter bool) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold == nil {
		s.hold = map[bool]chan struct{}{}
	}
	hold := make(chan struct{})
	s.hold[filter] = hold
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(hold)
		s.hold[filter] = nil
	}
}

// requests are those for packs since the last call.
func (s *filtering) requests() []ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.asked
	s.asked = nil
	return was
}

func (s *filtering) leave(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// open opens the clone.
func (s *filtering) open(mode string, change ...func(*git.Options)) *git.Provider {
	s.Helper()
	return clone(s.T, s.repo.URL, append([]func(*git.Options){in(s.dir), func(o *git.Options) { o.Clone = mode }}, change...)...)
}

// sound has git look at what a clone has: what is missing is promised.
func (s *filtering) sound() {
	s.Helper()
	s.repo.Git("--git-dir", s.dir, "fsck", "--strict", "--full", "--connectivity-only")
	s.repo.Git("--git-dir", s.dir, "fsck", "--strict", "--full")
}

// lacks are the objects that a clone is without.
func (s *filtering) lacks() []string {
	s.Helper()
	out := s.repo.Git("--git-dir", s.dir, "rev-list", "--objects", "--all", "--missing=print")
	var missing []string
	for line := range strings.Lines(out) {
		if id, is := strings.CutPrefix(line, "?"); is {
			missing = append(missing, strings.TrimSpace(id))
		}
	}
	return missing
}

// whole waits until nothing is missing any more.
func whole(t *testing.T, p *git.Provider) {
	t.Helper()
	await(t, p, func(c providers.CloneState) bool { return c.Kind == git.CloneFull })
}

// await waits for what a clone says of itself.
func await(t *testing.T, p *git.Provider, good func(providers.CloneState) bool) {
	t.Helper()
	assert.Must(t, assert.Await(func() bool { return good(p.Clone()) }), "the clone is", p.Clone())
}

// many are files in directories.
func many(dirs, each int) map[string]string {
	files := map[string]string{"top": "at the top\n"}
	for d := range dirs {
		for f := range each {
			files[fmt.Sprintf("d%02d/f%03d", d, f)] = fmt.Sprintf("file %d of %d\n", f, d)
		}
	}
	return files
}

func list(t *testing.T, p providers.Provider, dir string) (all []providers.Info) {
	t.Helper()
	for info, err := range providers.All(t.Context(), p, at(dir), providers.ListOptions{}) {
		assert.OK(t, err)
		all = append(all, info)
	}
	return all
}

// A clone is there with commits and trees. A directory that somebody looks at comes in
// one request, and what has come is asked for no more.
func TestBlobless(t *testing.T) {
	t.Parallel()
	s := newFiltering(t, many(10, 30))
	p := s.open(git.CloneBlobless)
	got := s.requests()
	assert.True(t, len(got) == 1 && got[0].filter, "the clone asked for", got)
	assert.Equal(t, len(s.lacks()), 301, "objects are missing")
	s.sound()
	if got := list(t, p, "d03"); len(got) != 30 || got[7].Size != int64(len("file 7 of 3\n")) {
		t.Errorf("a directory has %d entries: %+v", len(got), got)
	}
	reads(t, p, "d03/f007", "file 7 of 3\n")
	got = s.requests()
	assert.True(t, len(got) == 1 && len(got[0].wants) == 30 && !got[0].filter, "a directory was asked for by", got)
	if got := p.Clone(); got.Kind != git.CloneBlobless || got.Missing > 301 || got.Error != "" {
		t.Errorf("the clone is %+v", got)
	}
	s.sound()
	p = reopen(t, p, s.repo.URL, s.dir)
	reads(t, p, "d03/f008", "file 8 of 3\n")
	assert.OK(t, p.Close())
}

// Of a server that does not filter, or where the host says so, all comes at once.
func TestNotBlobless(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, mode string
		filters    bool
	}{{"forced", git.CloneFull, true}, {"server", git.CloneBlobless, false}, {"auto", git.CloneAuto, false}} {
		t.Run(c.name, func(t *testing.T) {
			s := newFiltering(t, many(2, 3))
			if !c.filters {
				s.repo.Git("config", "uploadpack.allowFilter", "false")
			}
			p := s.open(c.mode)
			if got := s.requests(); len(got) != 1 || got[0].filter || p.Clone().Kind != git.CloneFull {
				t.Errorf("the clone asked for %+v and is %+v", got, p.Clone())
			}
			s.leave(true)
			reads(t, p, "d01/f001", "file 1 of 1\n")
			assert.OK(t, p.Close())
		})
	}
}

// However many wait for a content, it is asked for once.
func TestBloblessSingleFlight(t *testing.T) {
	t.Parallel()
	s := newFiltering(t, many(2, 5))
	p := s.open(git.CloneBlobless)
	s.requests()
	release := s.holding(false)
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			got, _, err := providers.Fetch(t.Context(), p, at("d01/f003"), providers.ReadOptions{})
			assert.True(t, string(got) == "file 3 of 1\n" && err == nil, got, err)
		})
	}
	<-s.begun
	release()
	work.Wait()
	assert.Equal(t, len(s.requests()), 1, "asked for by")
	assert.OK(t, p.Close())
}

// What cannot come is an error with a reason, which the clone tells too, and what is
// here can be read. When the server is back, it comes.
func TestBloblessAway(t *testing.T) {
	t.Parallel()
	s := newFiltering(t, many(2, 5))
	p := s.open(git.CloneBlobless)
	list(t, p, "d00")
	s.leave(true)
	reads(t, p, "d00/f001", "file 1 of 0\n")
	_, err := p.List(t.Context(), at("d01"), providers.ListOptions{})
	assert.Is(t, err, providers.ErrUnavailable, "a directory")
	if !strings.Contains(err.Error(), "(503): ") || !strings.HasSuffix(err.Error(), " answers \"Service Unavailable\"") || p.Clone().Error == "" || p.Clone().Failing.IsZero() {
		t.Errorf("%v; the clone is %+v", err, p.Clone())
	}
	s.sound()
	s.leave(false)
	reads(t, p, "d01/f001", "file 1 of 1\n")
	assert.Equal(t, p.Clone().Error, "", "the clone")
	assert.OK(t, p.Close())
}

// A repository that is gone does not look like a file that is gone.
func TestBloblessGone(t *testing.T) {
	t.Parallel()
	s := newFiltering(t, many(2, 5))
	p := s.open(git.CloneBlobless)
	assert.OK(t, os.Rename(s.repo.Dir, s.repo.Dir+".gone"))
	assert.Is(t, assert.ErrOf(p.Stat(t.Context(), at("d01/f001"))), providers.ErrUnavailable, "a file")
	assert.OK(t, p.Close())
}

// All comes in few requests, each content once, that of the history too, and then the
// clone is like any other.
func TestBloblessFills(t *testing.T) {
	t.Parallel()
	s := newFiltering(t, many(40, 60))
	old := strings.TrimSpace(s.repo.Git("rev-parse", "main"))
	s.push(map[string]string{"top": "new\n", "d00/f000": "new too\n"})
	p := s.open(git.CloneAuto)
	whole(t, p)
	got := s.requests()
	asked := map[string]int{}
	for _, a := range got[1:] {
		for _, want := range a.wants {
			asked[want]++
		}
	}
	for want, n := range asked {
		assert.True(t, n <= 1, want, "was asked for", n)
	}
	assert.True(t, len(got) <= 6 && len(asked) == 2403, len(asked), "contents in", len(got), "requests")
	s.leave(true)
	missing := s.lacks()
	assert.True(t, len(missing) == 0, "missing", missing)
	s.sound()
	past := assert.Of(p.At(t.Context(), providers.Revision(old))).OK(t)
	reads(t, past, "d00/f000", "file 0 of 0\n")
	s.leave(false)
	p = reopen(t, p, s.repo.URL, s.dir)
	s.push(map[string]string{"top": "newer\n"})
	to := assert.Of(p.Fetch(t.Context())).OK(t)
	got = s.requests()
	assert.True(t, len(got) == 1 && !got[0].filter, "a pull of a whole clone asked for", got)
	assert.OK(t, p.Adopt(t.Context(), mustHead(t, p), to))
	s.leave(true)
	reads(t, p, "top", "newer\n")
	assert.OK(t, p.Close())
}

func mustHead(t *testing.T, p *git.Provider) providers.Revision {
	t.Helper()
	return assert.Of(p.Head(t.Context())).OK(t)
}

// A clone that gets whole while a pull is under way is not, before what that brings is
// here too.
func TestBloblessFillsDuringPull(t *testing.T) {
	t.Parallel()
	s := newFiltering(t, many(20, 60))
	contents := s.holding(false)
	p := s.open(git.CloneAuto)
	<-s.begun
	s.push(map[string]string{"d03/f003": "theirs\n"})
	pull := s.holding(true)
	pulled := make(chan error)
	go func() {
		_, err := p.Fetch(t.Context())
		pulled <- err
	}()
	<-s.begun
	contents()
	await(t, p, func(c providers.CloneState) bool { return c.Missing == 0 })
	assert.Equal(t, p.Clone().Kind, git.CloneBlobless, "while a pull is under way the clone")
	pull()
	assert.OK(t, <-pulled)
	whole(t, p)
	s.leave(true)
	missing := s.lacks()
	assert.True(t, len(missing) == 0, "missing", missing)
	assert.OK(t, p.Close())
}

// A small repository is whole when the clone is there.
func TestBloblessSmall(t *testing.T) {
	t.Parallel()
	s := newFiltering(t, many(3, 10))
	p := s.open(git.CloneAuto)
	s.leave(true)
	reads(t, p, "d02/f009", "file 9 of 2\n")
	assert.OK(t, p.Close())
}

// What is not here can be renamed, committed around and pushed, and none of that asks
// for it.
func TestBloblessPush(t *testing.T) {
	t.Parallel()
	s := newFiltering(t, many(5, 20))
	p := s.open(git.CloneBlobless)
	list(t, p, "d01")
	s.requests()
	from := list(t, p, "")
	s.requests()
	assert.Must(t, len(from) == 6, len(from), "entries")
	_, err := p.Commit(t.Context(), providers.ChangeSet{Changes: []providers.Change{
		{Locator: at("moved"), From: at("d03"), Dir: true, If: providers.IfAbsent()}, {Locator: at("d03"), Delete: true, Dir: true},
		{Locator: at("d01/f001"), Body: providers.String("mine\n"), If: providers.Unconditional()},
	}})
	assert.OK(t, err)
	assert.OK(t, assert.ErrOf(p.Push(t.Context(), providers.PushOptions{})))
	for _, a := range s.requests() {
		assert.True(t, a.filter, "asked for", a)
	}
	assert.Equal(t, s.repo.Git("show", "main:moved/f004"), "file 4 of 3\n", "the server")
	s.repo.Git("fsck", "--strict", "--full")
	s.sound()
	assert.OK(t, p.Close())
}

// Others' changes of what is not here are merged with ours.
func TestBloblessRebase(t *testing.T) {
	t.Parallel()
	lines := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	files := many(3, 4)
	files["d01/text"] = lines
	s := newFiltering(t, files)
	p := s.open(git.CloneBlobless)
	base := mustHead(t, p)
	write(t, p, "d01/text", strings.Replace(lines, "9", "nine", 1))
	ours := mustHead(t, p)
	s.push(map[string]string{"d01/text": strings.Replace(lines, "1", "one", 1), "d02/f000": "theirs\n"})
	theirs := assert.Of(p.Fetch(t.Context())).OK(t)
	got := s.requests()
	assert.True(t, got[len(got)-1].filter, "a pull asked for", got)
	both := func(base, a, b []byte, _ bool) ([]byte, bool) {
		return []byte(strings.Replace(string(a), "9", "nine", 1)), bytes.Contains(b, []byte("nine")) && string(base) == lines
	}
	to := assert.Of(p.Rebase(t.Context(), base, ours, theirs, both)).OK(t)
	diffs := assert.Of(p.Differences(t.Context(), ours, to)).OK(t)
	assert.OK(t, p.Adopt(t.Context(), ours, to))
	assert.Equal(t, len(diffs), 2, "the difference is", diffs)
	reads(t, p, "d01/text", "one\n2\n3\n4\n5\n6\n7\n8\nnine\n")
	assert.OK(t, assert.ErrOf(p.Push(t.Context(), providers.PushOptions{})))
	s.repo.Git("fsck", "--strict", "--full")
	s.sound()
	assert.OK(t, p.Close())
}

// What others have changed comes in one request, as far as it is to be shown.
func TestBloblessPull(t *testing.T) {
	t.Parallel()
	s := newFiltering(t, many(4, 30))
	p := s.open(git.CloneBlobless)
	from := mustHead(t, p)
	changed := map[string]string{}
	for f := range 20 {
		changed[fmt.Sprintf("d02/f%03d", f)] = fmt.Sprint("theirs ", f)
	}
	s.push(changed)
	to := assert.Of(p.Fetch(t.Context())).OK(t)
	got := s.requests()
	assert.True(t, len(got) == 2 && got[1].filter, "a pull asked for", got)
	diffs := assert.Of(p.Differences(t.Context(), from, to)).OK(t)
	got = s.requests()
	assert.True(t, len(diffs) == 20 && len(got) == 1 && len(got[0].wants) == 40, len(diffs), "differences, for which were asked", got)
	s.sound()
	assert.OK(t, p.Close())
}

// A clone of what another has lent that is without contents is one itself, unless it is
// to be full.
func TestBloblessShared(t *testing.T) {
	t.Parallel()
	s := newFiltering(t, many(4, 10))
	root := place(t)
	made := func(name, mode string) *git.Provider {
		s.dir = filepath.Join(root, name)
		return s.open(mode, func(o *git.Options) { o.Shared = filepath.Join(root, "shared") })
	}
	a := made("a", git.CloneBlobless)
	s.requests()
	b := made("b", git.CloneBlobless)
	got := s.requests()
	assert.True(t, len(got) == 0 && b.Clone().Kind == git.CloneBlobless, "the second clone asked for", got)
	reads(t, b, "d02/f003", "file 3 of 2\n")
	s.sound()
	c := made("c", git.CloneFull)
	assert.Equal(t, c.Clone().Kind, git.CloneFull, "the third clone is", c.Clone())
	d := made("d", git.CloneBlobless)
	assert.Equal(t, d.Clone().Kind, git.CloneFull, "a clone of what a full one lent is", d.Clone())
	s.leave(true)
	reads(t, c, "d03/f009", "file 9 of 3\n")
	reads(t, d, "d03/f009", "file 9 of 3\n")
	for _, p := range []*git.Provider{a, b, c, d} {
		assert.OK(t, p.Close())
	}
}

// However many clones share, each content is asked for once, and there once.
func TestBloblessTurns(t *testing.T) {
	t.Parallel()
	s := newFiltering(t, many(30, 60))
	root := place(t)
	clones := make([]*git.Provider, 4)
	for i := range clones {
		s.dir = filepath.Join(root, fmt.Sprint("clone", i))
		clones[i] = s.open(git.CloneAuto, func(o *git.Options) { o.Shared = filepath.Join(root, "shared") })
	}
	for _, p := range clones {
		whole(t, p)
	}
	asked := map[string]int{}
	for _, a := range s.requests() {
		for _, want := range a.wants {
			asked[want]++
		}
	}
	for want, n := range asked {
		assert.Must(t, n <= 1, want, "was asked for", n)
	}
	assert.Equal(t, len(asked), 1802, "objects were asked for")
	s.leave(true)
	for i, p := range clones {
		reads(t, p, "d29/f059", "file 59 of 29\n")
		s.dir = filepath.Join(root, fmt.Sprint("clone", i))
		s.sound()
		assert.OK(t, p.Close())
	}
	s.leave(false)
	s.dir = filepath.Join(root, "late")
	late := s.open(git.CloneFull, func(o *git.Options) { o.Shared = filepath.Join(root, "shared") })
	got := s.requests()
	assert.True(t, len(got) == 0, "a full clone asked for", got)
	reads(t, late, "d29/f059", "file 59 of 29\n")
	assert.OK(t, late.Close())
}

// Over SSH contents come as well.
func TestBloblessOverSSH(t *testing.T) {
	t.Parallel()
	s := newFiltering(t, many(30, 40))
	ssh := newSSHStageOf(t, s.server)
	p := clone(t, ssh.url("acme/r"), in(s.dir), ssh.over)
	s.comeLater(p)
}

// comeLater reads all of a clone of 30 directories of 40 files, whose contents come as
// they are read.
func (s *filtering) comeLater(p *git.Provider) {
	t := s.T
	t.Helper()
	assert.Equal(t, len(list(t, p, "d07")), 40, "entries")
	whole(t, p)
	marks := found(t, s.dir, "objects/pack/*.promisor")
	assert.True(t, len(marks) >= 2, len(marks), "packs are promised")
	missing := s.lacks()
	assert.True(t, len(missing) == 0, "missing", missing)
	s.sound()
	assert.OK(t, p.Close())
}

// The contract holds for clones without contents, wherever it asks for what was not
// made by the clone itself.
func TestContractBlobless(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	n := 0
	old := []string{"past/at", "push/not-fast-forward", "sync/adopt", "sync/merge", "differences/", "rebase/line", "rebase/merge", "branches/goes-on-from-another"}
	providertest.RunCloneVariant(t, old, func(ct providertest.T) providertest.Clones {
		n++
		repo := server.Create(t, fmt.Sprint("r", n))
		repo.Filter()
		less := func(o *git.Options) { o.Clone = []string{git.CloneBlobless, git.CloneAuto}[n%2] }
		return providertest.Clones{
			A: clone(ct, repo.URL, less), B: clone(ct, repo.URL, less), Drop: dropping(repo),
		}
	})
}

// Closing ends what waits.
func TestBloblessClose(t *testing.T) {
	t.Parallel()
	s := newFiltering(t, many(2, 5))
	p := s.open(git.CloneBlobless)
	release := s.holding(false)
	ended := make(chan error)
	go func() {
		_, err := p.Stat(t.Context(), at("d01/f003"))
		ended <- err
	}()
	<-s.begun
	assert.OK(t, p.Close())
	err := <-ended
	assert.True(t, err != nil, "it was read after all")
	release()
}

// lists looks at one directory after another, and says which, until this process is
// killed.
func lists(t *testing.T, url, dir string) {
	p := assert.Of(git.Open(t.Context(), git.Options{URL: url, Dir: dir, Clone: git.CloneBlobless})).OK(t)
	for d := 0; ; d++ {
		name := fmt.Sprintf("d%02d", d%40)
		list(t, p, name)
		fmt.Println("listed", name)
	}
}

// Whenever a process is killed, what it had brought is here, and git finds nothing
// wrong.
func TestBloblessKilled(t *testing.T) {
	if dir := os.Getenv("GIT_TEST_DIR"); dir != "" {
		lists(t, os.Getenv("GIT_TEST_URL"), dir)
	}
	t.Parallel()
	s := newFiltering(t, many(40, 10))
	listed := map[string]bool{}
	kills, reaper := tier.Pick(3, 8), newReaper(t)
	for run := range kills {
		child := exec.Command(os.Args[0], "-test.run=^TestBloblessKilled$")
		child.Env = append(os.Environ(), "GIT_TEST_URL="+s.repo.URL, "GIT_TEST_DIR="+s.dir)
		out := assert.Of(child.StdoutPipe()).OK(t)
		assert.OK(t, child.Start())
		lines := bufio.NewScanner(out)
		for n := len(listed) + reaper.upTo(4, run); lines.Scan(); n-- {
			if _, name, is := strings.Cut(lines.Text(), "listed "); is {
				listed[name] = true
			}
			if n == 0 {
				time.AfterFunc(reaper.moment(), func() { child.Process.Kill() })
			}
		}
		_ = child.Wait()
		s.sound()
		p := s.open(git.CloneBlobless)
		s.requests()
		for name := range listed {
			assert.Equal(t, len(list(t, p, name)), 10, "run", run, name, "has entries")
		}
		got := s.requests()
		assert.True(t, len(got) == 0, "run", run, "what was listed is asked for again", got)
		assert.OK(t, p.Close())
	}
	assert.True(t, len(listed) >= kills, len(listed), "directories before", kills, "kills")
}

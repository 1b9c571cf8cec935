package git_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git"
)

// sharing are clones of one repository that share a directory, which is on the file
// system of theirs.
type sharing struct {
	*testing.T
	server      *gitserver.Server
	repo, other *gitserver.Repo
	dir         string
	clones      int
}

func newSharing(t *testing.T) *sharing {
	t.Helper()
	s := &sharing{T: t, dir: place(t)}
	s.server, s.repo, s.other = seeded(t)
	return s
}

// clone makes another clone and says how many packs were asked for.
func (s *sharing) clone(change ...func(*git.Options)) (p *git.Provider, dir string, fetched int) {
	s.Helper()
	s.clones++
	dir = filepath.Join(s.dir, "clone"+strings.Repeat("i", s.clones))
	s.server.Requests()
	p = clone(s.T, s.repo.URL, append([]func(*git.Options){in(dir), func(o *git.Options) { o.Shared = filepath.Join(s.dir, "shared") }}, change...)...)
	for _, r := range s.server.Requests() {
		if strings.HasPrefix(r, "POST ") && strings.HasSuffix(r, "/git-upload-pack") {
			fetched++
		}
	}
	s.whole(dir)
	return p, dir, fetched
}

// whole has git look at all that a clone has.
func (s *sharing) whole(dir string) {
	s.Helper()
	out := s.repo.Git("--git-dir", dir, "fsck", "--strict", "--full")
	assert.False(s, strings.Contains(out, "missing"), "a clone is not whole:", out)
}

func (s *sharing) push(files map[string]string) {
	s.Helper()
	s.other.Write(files)
	s.other.Commit("main", "more")
}

// A second clone asks for no pack, and a later one for what is new only. Each is
// whole by itself, and lives on without what is shared.
func TestSharedPacks(t *testing.T) {
	s := newSharing(t)
	first, _, n := s.clone()
	assert.Equal(t, n, 1, "the first clone asked for packs")
	second, _, n := s.clone()
	assert.Equal(t, n, 0, "the second clone asked for packs")
	reads(t, second, "dir/b", "two\n")
	write(t, second, "mine", "here")
	assert.Is(t, assert.ErrOf(first.Stat(t.Context(), at("mine"))), providers.ErrNotExist, "what one clone committed, another has")
	s.push(map[string]string{"a": "new\n"})
	_, third, n := s.clone()
	assert.Equal(t, n, 1, "the third clone asked for packs")
	assert.OK(t, os.RemoveAll(filepath.Join(s.dir, "shared")))
	s.whole(third)
	reads(t, second, "mine", "here")
	_, _, n = s.clone()
	assert.Equal(t, n, 1, "packs asked for without what was shared")
}

// What is shared does not grow without end, and is no pile of small packs.
func TestSharedIsBounded(t *testing.T) {
	s := newSharing(t)
	for i := range 17 {
		s.push(map[string]string{"a": strings.Repeat("x", i+1)})
		p, _, n := s.clone()
		assert.Equal(t, n, 1, "clone", i, "asked for packs")
		assert.OK(t, p.Close())
	}
	packs := found(t, filepath.Join(s.dir, "shared"), "*/pack-*.pack")
	assert.True(t, len(packs) <= 16, len(packs), "packs are shared")
}

// One pack is asked for, however many clones are begun at once.
func TestSharedAtOnce(t *testing.T) {
	s := newSharing(t)
	s.server.Requests()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			p, err := git.Open(t.Context(), git.Options{URL: s.repo.URL, Dir: filepath.Join(s.dir, "at-once", string(rune('a'+i))), Shared: filepath.Join(s.dir, "shared")})
			if err != nil {
				t.Error(err)
				return
			}
			defer p.Close()
			_, _, err = providers.Fetch(t.Context(), p, at("a"), providers.ReadOptions{})
			assert.True(t, err == nil, err)
		})
	}
	wg.Wait()
	packs := 0
	for _, r := range s.server.Requests() {
		if strings.HasPrefix(r, "POST ") {
			packs++
		}
	}
	assert.Equal(t, packs, 1, "packs were asked for")
}

// Nobody gets by sharing what the server would not send him: not who may not ask,
// and not what a forced push took away.
func TestSharedIsNoWayIn(t *testing.T) {
	s := newSharing(t)
	s.push(map[string]string{"secret": "s3cr3t-content"})
	s.clone()
	secret := strings.TrimSpace(s.repo.Git("rev-parse", "main:secret"))

	s.server.Require("token")
	_, err := git.Open(t.Context(), git.Options{URL: s.repo.URL, Dir: filepath.Join(s.dir, "denied"), Shared: filepath.Join(s.dir, "shared")})
	assert.Is(t, err, providers.ErrUnauthenticated, "a clone without credentials")
	s.server.Require("")

	s.other.Git("reset", "-q", "--hard", "HEAD~1")
	s.other.Write(map[string]string{"instead": "of it\n"})
	s.other.Git("add", "-A")
	s.other.Git("commit", "-q", "-m", "instead")
	s.other.Git("push", "-q", "--force", "origin", "HEAD:main")
	p, dir, _ := s.clone()
	reads(t, p, "instead", "of it\n")
	out, err := s.repo.Try("--git-dir", dir, "cat-file", "-p", secret)
	assert.True(t, err != nil, "a clone has what was taken away:", out)
}

// What is damaged, or cannot be used, is not taken, and costs no more than asking.
func TestSharedIsDamaged(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string){
		"a pack":   func(t *testing.T, dir string) { flip(t, dir, "*/pack-*.pack") },
		"an index": func(t *testing.T, dir string) { flip(t, dir, "*/pack-*.idx") },
		"the list": func(t *testing.T, dir string) { flip(t, dir, "*/lent.json") },
		"a pack is gone": func(t *testing.T, dir string) {
			for _, name := range found(t, dir, "*/pack-*.pack") {
				assert.OK(t, os.Remove(name))
			}
		},
		"no directory": func(t *testing.T, dir string) {
			assert.OK(t, os.RemoveAll(dir))
			assert.OK(t, os.WriteFile(dir, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSharing(t)
			s.T = t
			s.clone()
			damage(t, filepath.Join(s.dir, "shared"))
			p, _, n := s.clone()
			if n != 1 && (name != "the list" || n > 2) { // the list may name a commit that never was
				t.Errorf("%d packs were asked for", n)
			}
			reads(t, p, "a", "one\n")
		})
	}
}

func found(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	assert.OK(t, err)
	assert.Must(t, len(names) != 0, "there is no", pattern)
	return names
}

// flip changes a byte in the middle of files, which others have too, in a copy.
func flip(t *testing.T, dir, pattern string) {
	t.Helper()
	for _, name := range found(t, dir, pattern) {
		b := assert.Of(os.ReadFile(name)).OK(t)
		b[len(b)/2] ^= 0x40
		assert.OK(t, os.Remove(name))
		assert.OK(t, os.WriteFile(name, b, 0o600))
	}
}

// Who gives up waiting for another's clone asks for all himself.
func TestSharedWaitEnds(t *testing.T) {
	s := newSharing(t)
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.server.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			once.Do(func() { close(held); <-release })
		}
		return false
	})
	slow := make(chan error, 1)
	go func() {
		p, err := git.Open(context.Background(), git.Options{URL: s.repo.URL, Dir: filepath.Join(s.dir, "slow"), Shared: filepath.Join(s.dir, "shared")})
		if err == nil {
			err = p.Close()
		}
		slow <- err
	}()
	<-held
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := git.Open(ctx, git.Options{URL: s.repo.URL, Dir: filepath.Join(s.dir, "given up"), Shared: filepath.Join(s.dir, "shared")})
	assert.Is(t, err, context.Canceled, "a clone that is given up")
	close(release)
	assert.OK(t, <-slow)
}

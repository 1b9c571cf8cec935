package cache

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// host is a working copy of those that share a store.
type host struct {
	volTree
	t    assert.T
	name string
}

func newHost(t assert.T, p providers.Provider, name, state string, around providers.Around) *host {
	t.Helper()
	o := Options{StateDir: state, Provider: "memory", Patience: guard, strict: true,
		pause: atOnce}
	o.Policy.Commit, o.Policy.NoWait = DueAsked, true
	v := assert.Of(Open(context.Background(), providers.Wrap(p, providers.WrapOptions{Around: around}), o)).OK(t)
	return &host{volTree{v}, t, name}
}

// put writes a file and says what it had before, if it was there.
func (h *host) put(path, content string) (old string, err error) {
	old, _ = h.get(path)
	return old, asKernel(func() error { return h.volTree.put(path, content, syscall.O_TRUNC) })
}

// get reads a file; again when it has moved on.
func (h *host) get(path string) (content string, err error) {
	err = asKernel(func() error {
		f, err := h.open(path, syscall.O_RDONLY)
		if err != nil {
			return err
		}
		defer f.close()
		content, err = f.read()
		return err
	})
	return content, err
}

// all are its files.
func (h *host) all() (lines []string) {
	for _, line := range h.volTree.all() {
		if _, entry, _ := strings.Cut(line, " "); !strings.HasSuffix(entry, "/") {
			lines = append(lines, entry)
		}
	}
	return sorted(lines)
}

// Two hosts and a stranger change one tree at random, with answers that get
// lost. When all is said, both see what the store has, and every content that
// was closed and that nobody chose to replace or delete is in it.
func TestNothingIsLostBetweenHosts(t *testing.T) {
	for _, c := range []struct {
		name  string
		store func() store
	}{
		{"all abilities", func() store { return one(providers.Capabilities{}) }},
		{"flat", func() store {
			return one(providers.Capabilities{EmptyDirs: true,
				Abilities: providers.AbilityMove | providers.AbilityCopy | providers.AbilityCommit | providers.AbilityAttr})
		}},
		{"clones", clones},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tier.Check(t, func(r *rapid.T) { runHosts(r, c.store()) })
		})
	}
}

// store is what the hosts share.
type store struct {
	open   func() providers.Provider // as a host sees it
	now    func() providers.Provider // as it is
	tamper func(path, content string) error
	push   bool
}

// one store, that all hosts reach.
func one(without providers.Capabilities) store {
	p := memory.New(memory.Options{PageSize: 3, Without: without})
	return store{
		open:   func() providers.Provider { return p },
		now:    func() providers.Provider { return p },
		tamper: func(path, content string) error { return p.Tamper(at(path), []byte(content)) },
	}
}

// clones of one repository.
func clones() store {
	r := memoryrepo.NewRemote(nil)
	clone := func() providers.Provider { return memoryrepo.NewRepository(r, "", memory.Options{PageSize: 3}) }
	return store{open: clone, now: clone, push: true,
		tamper: func(path, content string) error { return r.Tamper("", at(path), []byte(content)) }}
}

type hosts struct {
	store
	r      *rapid.T
	all    []*host
	owed   map[string]bool // contents that must be somewhere in the end
	number int
}

func runHosts(r *rapid.T, shared store) {
	s := &hosts{store: shared, r: r, owed: map[string]bool{}}
	for _, path := range []string{"x/1", "x/2", "y/1", "1"} {
		s.ok(s.tamper(path, s.content("start")))
	}
	lost := rapid.SliceOfN(rapid.Bool(), 8, 8).Draw(r, "lost answers")
	for i := range 2 {
		dir := assert.Of(os.MkdirTemp("", "hosts")).OK(r)
		defer os.RemoveAll(dir)
		h := newHost(r, s.open(), fmt.Sprint("host", i), dir, losing(lost))
		defer h.v.Close()
		h.all()
		s.all = append(s.all, h)
	}
	r.Repeat(s.actions())
	s.end()
}

// losing loses answers of changes by a pattern.
func losing(pattern []bool) providers.Around {
	var n atomic.Int64
	return func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
		err := next(ctx)
		if !c.Method.Mutates() || err != nil {
			return err
		}
		if i := int(n.Add(1)); pattern[i%len(pattern)] && i%3 == 0 {
			return providers.ErrUnavailable
		}
		return nil
	}
}

// content is new and owed to somebody.
func (s *hosts) content(who string) string {
	s.number++
	c := fmt.Sprintf("%s-%d", who, s.number)
	s.owed[c] = true
	return c
}

var (
	somePaths = []string{"1", "2", "x", "x/1", "x/2", "y/1", "y/2", "x/z/1", "y/z/1"}
	someDirs  = []string{"x", "y", "x/z", "y/z", "2"}
)

func (s *hosts) actions() map[string]func(*rapid.T) {
	one := func(r *rapid.T) *host { return s.all[rapid.IntRange(0, len(s.all)-1).Draw(r, "host")] }
	path := func(r *rapid.T, label string) string { return rapid.SampledFrom(somePaths).Draw(r, label) }
	return map[string]func(*rapid.T){
		"put": func(r *rapid.T) {
			h, p, c := one(r), path(r, "path"), s.content("put")
			old, err := h.put(p, c)
			if delete(s.owed, old); err != nil {
				delete(s.owed, c)
			}
		},
		"unlink": func(r *rapid.T) {
			h, p := one(r), path(r, "path")
			old, err := h.get(p)
			if err == nil && h.unlink(p) == nil {
				delete(s.owed, old)
			}
		},
		"mkdir": func(r *rapid.T) { _ = one(r).mkdir(rapid.SampledFrom(someDirs).Draw(r, "dir")) },
		"rename": func(r *rapid.T) {
			h, from, to := one(r), path(r, "from"), path(r, "to")
			old, _ := h.get(to)
			if from != to && h.rename(from, to) == nil {
				delete(s.owed, old)
			}
		},
		"rmdir": func(r *rapid.T) { _ = one(r).rmdir(rapid.SampledFrom(someDirs).Draw(r, "dir")) },
		"stranger": func(r *rapid.T) {
			p := path(r, "path")
			now := s.now()
			info, err := now.Stat(context.Background(), at(p))
			if err == nil && info.Kind == providers.KindDir {
				return
			}
			old, _, _ := providers.Fetch(context.Background(), now, at(p), providers.ReadOptions{})
			c := s.content("stranger")
			if s.tamper(p, c) != nil {
				delete(s.owed, c)
				return
			}
			delete(s.owed, string(old))
		},
		"pull": func(r *rapid.T) {
			_, err := one(r).v.Pull(context.Background(), PullOptions{})
			s.settledOr(err)
		},
		"commit": func(r *rapid.T) {
			s.send(one(r))
		},
		"": func(r *rapid.T) {
			for _, h := range s.all {
				locked := h.v.lock()
				err := locked.Check()
				locked.unlock()
				s.ok(err)
				forgetAll(h.v) // nothing else is told to keep what was looked up
			}
		},
	}
}

func (s *hosts) send(h *host) {
	_, err := h.v.Commit(context.Background(), CommitOptions{})
	s.settledOr(err)
	if s.push {
		_, err = h.v.Push(context.Background(), providers.PushOptions{})
		s.settledOr(err)
	}
}

func (s *hosts) settledOr(err error) {
	for _, h := range s.all {
		if len(h.v.Status().Halted) > 0 {
			_, err := h.v.Confirm(context.Background())
			s.ok(err)
			return
		}
	}
	s.ok(err)
}

func (s *hosts) ok(err error) {
	if err != nil {
		for _, h := range s.all {
			s.explain(h)
		}
		s.r.Logf("the store has\n\t%s", strings.Join(listBackend(s.now()), "\n\t"))
		s.r.Fatalf("%v", err)
	}
}

// end lets all come to rest and compares.
func (s *hosts) end() {
	for round := 0; ; round++ {
		quiet := true
		for _, h := range s.all {
			s.send(h)
		}
		for _, h := range s.all {
			report, err := h.v.Pull(context.Background(), PullOptions{})
			s.settledOr(err)
			wantLevel(h.t, h.v)
			quiet = quiet && h.v.Status().Queued == 0 && report.Changed+report.Deleted == 0
		}
		if quiet {
			break
		}
		if round == 12 {
			for _, h := range s.all {
				s.explain(h)
			}
			s.r.Fatalf("the hosts do not come to rest")
		}
	}
	there := map[string]bool{}
	var lines []string
	for _, line := range listBackend(s.now()) {
		if path, content, ok := strings.Cut(line, ": "); ok {
			there[content] = true
			lines = append(lines, path+": "+content)
		}
	}
	slices.Sort(lines)
	for _, h := range s.all {
		got := h.all()
		assert.Must(s.r, slices.Equal(got, lines), h.name, "sees", strings.Join(got, "\n\t"), "the store has", strings.Join(lines, "\n\t"))
	}
	for c := range s.owed {
		assert.Must(s.r, there[c], c, "is lost; the store has", strings.Join(lines, "\n\t"))
	}
}

func (s *hosts) explain(h *host) {
	locked := h.v.lock()
	defer locked.unlock()
	locked.Dirty(0, func(seq uint64, l table.Link) bool {
		rec, _ := locked.Name(l.Dir, l.Name)
		at, _ := locked.LocalPath(l)
		home, _ := locked.RemotePath(l)
		s.r.Logf("%s: %d %v (%v here, %v there): ino %d base %+v attempt %+v held %+v", h.name, seq, l, at, home, rec.Ino, rec.Remote, rec.Attempt, rec.Held)
		if n := locked.Inode(rec.Ino); n != nil {
			s.r.Logf("      %+v", n)
		}
		if t := h.v.send.Jobs().Of(locked.View, l); t != nil {
			s.r.Logf("      task %d %v", t.State, t.Err)
		}
		return true
	})
}

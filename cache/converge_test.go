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
	"time"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// Two hosts on one store make the same conflict copies, in whatever order they
// come to it.
func TestHostsConverge(t *testing.T) {
	p := memory.New(memory.Options{})
	a := newHost(t, p, "a", t.TempDir(), nil)
	b := newHost(t, p, "b", t.TempDir(), nil)
	a.put("f", "0")
	a.sync()
	b.sync()
	a.put("f", "from a")
	b.put("f", "from b")
	a.sync()
	b.sync() // finds the conflict
	b.sync() // sends the copy
	a.sync()
	want := []string{"f.conflict-" + short("from b") + ": from b", "f: from a"}
	for _, h := range []*host{a, b} {
		assert.Slice(t, h.all(), want, h.name)
	}
}

// host is a working copy with errors that end a property's run.
type host struct {
	t    assert.T
	name string
	v    *Volume
}

func newHost(t assert.T, p providers.Provider, name, state string, around providers.Around) *host {
	t.Helper()
	if around != nil {
		p = providers.Wrap(p, providers.WrapOptions{Around: around})
	}
	o := Options{StateDir: state, Provider: "memory", Patience: guard, strict: true,
		pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	o.Policy.Commit, o.Policy.NoWait = DueAsked, true
	v, err := Open(context.Background(), p, o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return &host{t: t, name: name, v: v}
}

func (h *host) ok(err error) {
	h.t.Helper()
	assert.OK(h.t, err, h.name)
}

// sync sends what differs and brings what others did.
func (h *host) sync() {
	h.t.Helper()
	_, err := h.v.Commit(context.Background(), CommitOptions{})
	h.ok(err)
	_, err = h.v.Pull(context.Background(), PullOptions{})
	h.ok(err)
	wantLevel(h.t, h.v)
}

func (h *host) walk(path string) (fs.Ino, bool) {
	h.t.Helper()
	ino := fs.RootIno
	for _, name := range at(path).Parts() {
		e, err := h.v.Lookup(me, ino, name)
		if err != nil || e.Ino == 0 {
			return 0, false
		}
		h.v.Forget(e.Ino, 1) // nothing else is told to keep what was looked up
		ino = e.Ino
	}
	return ino, true
}

// put writes a file and says what it had before, if it was there.
func (h *host) put(path, content string) (old string, err error) {
	h.t.Helper()
	old, _ = h.get(path)
	dir, ok := h.walk(at(path).Parent().String())
	if !ok {
		return "", syscall.ENOENT
	}
	_, o, err := h.v.Create(me, dir, at(path).Name(), syscall.O_RDWR|syscall.O_TRUNC, 0o644)
	if err != nil {
		return "", err
	}
	_, err = o.File.Write(me, []byte(content), 0)
	h.ok(err)
	h.ok(o.File.Flush(me))
	o.File.Release()
	return old, nil
}

// get reads a file; again when it has moved on.
func (h *host) get(path string) (string, error) {
	h.t.Helper()
	for try := 0; ; try++ {
		ino, ok := h.walk(path)
		if !ok {
			return "", syscall.ENOENT
		}
		o, err := h.v.Open(me, ino, syscall.O_RDONLY)
		if fs.Errno(err) == syscall.ESTALE && try < 4 {
			continue
		}
		if err != nil {
			return "", err
		}
		d, err := o.File.Read(me, make([]byte, 1<<12), 0)
		o.File.Release()
		if fs.Errno(err) == syscall.ESTALE && try < 4 {
			continue
		}
		return string(d.Bytes), err
	}
}

func (h *host) all() (lines []string) {
	h.t.Helper()
	h.each("", func(path, content string) { lines = append(lines, path+": "+content) })
	return sorted(lines)
}

func (h *host) each(dir string, visit func(path, content string)) {
	h.t.Helper()
	ino, _ := h.walk(dir)
	d, err := h.v.OpenDir(me, ino)
	h.ok(err)
	defer d.Release()
	for {
		e, more, err := d.Next(me)
		h.ok(err)
		if !more {
			return
		}
		path := strings.TrimPrefix(dir+"/"+e.Name, "/")
		switch {
		case e.Name == "." || e.Name == "..":
		case e.Mode&syscall.S_IFMT == syscall.S_IFDIR:
			h.each(path, visit)
		default:
			content, err := h.get(path)
			h.ok(err)
			visit(path, content)
		}
	}
}

func (h *host) dirty() int {
	locked := h.v.lock()
	defer locked.unlock()
	return locked.table.DirtyCount()
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
			rapid.Check(t, func(r *rapid.T) { runHosts(r, c.store()) })
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
	r := memory.NewRemote(nil)
	clone := func() providers.Provider { return memory.NewRepository(r, memory.Options{PageSize: 3}) }
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
		dir, err := os.MkdirTemp("", "hosts")
		assert.OK(r, err)
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
			dir, ok := h.walk(at(p).Parent().String())
			if err == nil && ok && h.v.Unlink(me, dir, at(p).Name()) == nil {
				delete(s.owed, old)
			}
		},
		"mkdir": func(r *rapid.T) {
			h, p := one(r), rapid.SampledFrom(someDirs).Draw(r, "dir")
			if dir, ok := h.walk(at(p).Parent().String()); ok {
				h.v.Mkdir(me, dir, at(p).Name(), 0o755)
			}
		},
		"rename": func(r *rapid.T) {
			h, from, to := one(r), path(r, "from"), path(r, "to")
			old, _ := h.get(to)
			d1, ok1 := h.walk(at(from).Parent().String())
			d2, ok2 := h.walk(at(to).Parent().String())
			if ok1 && ok2 && from != to && h.v.Rename(me, d1, at(from).Name(), d2, at(to).Name(), 0) == nil {
				delete(s.owed, old)
			}
		},
		"rmdir": func(r *rapid.T) {
			h, p := one(r), rapid.SampledFrom(someDirs).Draw(r, "dir")
			if dir, ok := h.walk(at(p).Parent().String()); ok {
				h.v.Rmdir(me, dir, at(p).Name())
			}
		},
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
				err := locked.table.Check()
				locked.unlock()
				h.ok(err)
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
		if len(h.v.MassDeletes()) > 0 {
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
			quiet = quiet && h.dirty() == 0 && report.Changed+report.Deleted == 0
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
		if got := h.all(); !slices.Equal(got, lines) {
			s.r.Fatalf("%s sees\n\t%s\nthe store has\n\t%s", h.name, strings.Join(got, "\n\t"), strings.Join(lines, "\n\t"))
		}
	}
	for c := range s.owed {
		if !there[c] {
			s.r.Fatalf("%q is lost; the store has\n\t%s", c, strings.Join(lines, "\n\t"))
		}
	}
}

func (s *hosts) explain(h *host) {
	locked := h.v.lock()
	defer locked.unlock()
	locked.table.Dirty(0, func(seq uint64, l table.Link) bool {
		rec, _ := locked.table.Name(l.Dir, l.Name)
		at, _ := locked.LocalPath(l)
		home, _ := locked.RemotePath(l)
		s.r.Logf("%s: %d %v (%v here, %v there): ino %d base %+v attempt %+v held %+v", h.name, seq, l, at, home, rec.Ino, rec.Remote, rec.Attempt, rec.Held)
		if n := locked.table.Inode(rec.Ino); n != nil {
			s.r.Logf("      %+v", n)
		}
		if t := h.v.engine.jobs.of[l]; t != nil {
			s.r.Logf("      task %d %v", t.state, t.err)
		}
		return true
	})
}

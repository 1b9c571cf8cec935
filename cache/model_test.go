package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// The working copy against a plain directory: random operations give the same
// errors and the same tree, and in the end the backend has that tree. Listings,
// fetches, lost answers, clean ends and kills happen on the way.
func TestModel(t *testing.T) {
	for _, b := range modelBackends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel() // some of them wait for a listing to be due
			tier.Check(t, func(r *rapid.T) { runModel(r, t, b) })
		})
	}
}

type modelBackend struct {
	name   string
	hide   providers.Ability
	policy Policy
	less   providers.Capabilities // what it is without
	clone  bool                   // of a remote, to which others push too
}

// asBucket is what a store of objects is without.
var asBucket = providers.Capabilities{EmptyDirs: true, UniqueVersions: true,
	Attributes: providers.AttrMode | providers.AttrOwner | providers.AttrModTime | providers.AttrXattrs,
	Abilities:  providers.AbilityMove | providers.AbilityAttr | providers.AbilityCommit}

// asKeys is what a store of objects is without whose listings tell little, and that
// keeps attributes and empty directories all the same.
var asKeys = providers.Capabilities{UniqueVersions: true, ListComplete: true,
	Abilities: providers.AbilityMove | providers.AbilityCommit}

// modelBackends are stores of less and less ability, and policies.
var modelBackends = []modelBackend{
	{name: "moves"},
	{name: "copies", hide: providers.AbilityMove},
	{name: "neither", hide: providers.AbilityMove | providers.AbilityCopy | providers.AbilityAttr},
	{name: "gathered", policy: Policy{NoWait: true, Window: time.Millisecond}},
	{name: "asked", hide: providers.AbilityMove, policy: Policy{NoWait: true, Commit: DueAsked}},
	{name: "asked sets", policy: Policy{NoWait: true, Commit: DueAsked, Atomic: true}},
	{name: "asked clone", clone: true, policy: Policy{NoWait: true, Commit: DueAsked}},
	{name: "bucket", less: asBucket},
	{name: "gathered bucket", less: asBucket, policy: Policy{NoWait: true, Window: time.Millisecond}},
	{name: "refreshed", policy: Policy{TTL: time.Millisecond}},
	{name: "refreshed later", policy: Policy{TTL: 10 * time.Millisecond, NoWait: true, Window: 5 * time.Millisecond}},
	{name: "refreshed bucket", less: asBucket, policy: Policy{TTL: time.Millisecond, NoWait: true, Window: time.Millisecond}},
	{name: "keys", less: asKeys},
	{name: "refreshed keys", less: asKeys, policy: Policy{TTL: time.Millisecond, NoWait: true, Window: time.Millisecond}},
	{name: "flat sets", less: providers.Capabilities{EmptyDirs: true}, policy: Policy{NoWait: true, Window: time.Millisecond, Atomic: true}},
	{name: "sets", policy: Policy{NoWait: true, Window: time.Millisecond, Atomic: true}},
	{name: "clone", clone: true, policy: Policy{NoWait: true, Window: time.Millisecond, Push: true}},
}

// modelTree is a tree that operations are done to.
type modelTree interface {
	put(path, content string, flags int) error
	truncate(path string, size int) error
	rename(from, to string) error
	exchange(a, b string) error
	unlink(path string) error
	mkdir(path string) error
	rmdir(path string) error
	link(from, to string) error
	symlink(path, target string) error
	chmod(path string, mode uint32) error
	mkfifo(path string) error
	open(path string, flags int) (modelFile, error)
	all() []string // a line for each entry
}

type modelFile interface {
	write(content string, off int) error
	read() (string, error)
	close() error
}

var modelStart = []string{"a/a: start", "a/b/c: deep", "b/x: other", "c: top"}

// make is a backend with the tree of the start, and how others change it.
func (b modelBackend) make() (providers.Provider, func(path, content string)) {
	p := memory.New(memory.Options{PageSize: 2, Without: b.less, ImpliedDirs: b.less == asKeys, DearCopy: b.less == asKeys})
	remote := memoryrepo.NewRemote(nil)
	tamper := func(path, content string) {
		if b.clone {
			remote.Tamper("", at(path), []byte(content))
			return
		}
		p.Tamper(at(path), []byte(content))
	}
	for _, line := range modelStart {
		path, content, _ := strings.Cut(line, ": ")
		tamper(path, content)
	}
	if b.clone {
		return memoryrepo.NewRepository(remote, "", memory.Options{PageSize: 2}), tamper
	}
	return p, tamper
}

func runModel(r *rapid.T, t *testing.T, b modelBackend) {
	plain := diskTree{t.TempDir()}
	p, tamper := b.make()
	for _, line := range modelStart {
		path, content, _ := strings.Cut(line, ": ")
		os.MkdirAll(filepath.Dir(plain.at(path)), 0o755)
		os.WriteFile(plain.at(path), []byte(content), 0o644)
	}
	lost := rapid.SliceOfN(rapid.Bool(), 8, 8).Draw(r, "lost answers")
	m := &model{r: r, t: t, plain: plain, tamper: tamper,
		p: providers.Wrap(p, providers.WrapOptions{Hide: b.hide, Around: dawdle(rapid.Uint64().Draw(r, "pauses"), loseAnswers(lost))}),
		o: Options{StateDir: t.TempDir(), Umask: 0o022, Policy: b.policy, strict: true, far: 1,
			pause: atOnce}}
	m.start()
	defer func() {
		m.closeAll()
		m.pulls.Wait()
		m.v().Close()
		os.RemoveAll(m.o.StateDir) // there are thousands of these
		os.RemoveAll(plain.dir)
	}()
	r.Repeat(m.actions())
	m.closeAll()
	m.pulls.Wait()
	m.sameTree(r)
	if b.policy.Commit == DueAsked {
		report, err := m.v().Commit(context.Background(), CommitOptions{})
		assert.Must(r, err == nil && len(report.HeldBack) == 0, report, err)
	}
	assert.OK(r, m.v().sent.Names(me))
	m.clean(r)
	m.sameBackend(p)
	m.sameTree(r)
}

// start opens the working copy, for the first time or again.
func (m *model) start() {
	var p providers.Provider
	p, m.dead = mortal(m.p)
	v := assert.Of(Open(context.Background(), p, m.o)).OK(m.r)
	m.ours = volTree{v}
}

func (m *model) v() *Volume { return m.ours.(volTree).v }

// check asks the table whether all that hangs together does.
func (m *model) check() {
	wantLevel(m.r, m.v())
	locked := m.v().lock()
	defer locked.unlock()
	assert.OK(m.r, locked.Check())
}

// remount ends the working copy cleanly, with all files closed.
func (m *model) remount(t *rapid.T) {
	m.closeAll()
	m.pulls.Wait()
	m.check()
	assert.OK(t, m.v().Close())
	m.start()
}

// kill goes on with the state as a SIGKILL would leave it: what was written to
// open files is there.
func (m *model) kill(*rapid.T) {
	for _, f := range m.open {
		f[0].close()
	}
	m.open = nil
	old := m.v()
	m.dead.Store(true)
	dir := copyState(m.t, old)
	old.stop()
	m.pulls.Wait()
	old.Close() // its last request may have reached the backend
	os.RemoveAll(m.o.StateDir)
	m.o.StateDir = dir
	m.start()
}

// clean waits until the backend has everything.
func (m *model) clean(t *rapid.T) {
	for end := time.Now().Add(guard); m.v().Status().Queued > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the backend does not get all: %+v", m.v().Status())
		}
	}
}

// loseAnswers has changes fail, before they are done or when they are, by a repeated
// pattern.
func loseAnswers(pattern []bool) providers.Around {
	var calls atomic.Int64
	return func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
		if !c.Method.Mutates() || c.Method == providers.MethodClose {
			return next(ctx)
		}
		n := int(calls.Add(1))
		fails := &providers.Error{Op: c.Method, Locator: c.Locator, Kind: providers.ErrUnavailable}
		if pattern[n%len(pattern)] && n%3 == 1 {
			return fails
		}
		err := next(ctx)
		if err == nil && pattern[n%len(pattern)] && n%3 == 0 {
			return fails
		}
		return err
	}
}

// dawdle has calls take a while, now and then, so that others get in between.
func dawdle(seed uint64, next providers.Around) providers.Around {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 0))
	pause := func() {
		mu.Lock()
		n, d := r.IntN(8), r.IntN(300)
		mu.Unlock()
		if n > 4 {
			time.Sleep(time.Duration(d) * time.Microsecond)
		}
	}
	return func(ctx context.Context, c *providers.Call, do func(context.Context) error) error {
		pause()
		defer pause()
		return next(ctx, c, do)
	}
}

type model struct {
	r           *rapid.T
	t           *testing.T
	p           providers.Provider
	o           Options
	dead        *atomic.Bool
	plain, ours modelTree
	tamper      func(path, content string)
	open        [][2]modelFile
	pulls       sync.WaitGroup
}

// strangers is a directory that only others change.
const strangers = "z"

// others change something that is no concern of the model's.
func (m *model) others(t *rapid.T) {
	path := strangers + "/" + rapid.SampledFrom([]string{"a", "b/c"}).Draw(t, "name")
	m.tamper(path, rapid.StringMatching(`[a-z]{1,2}`).Draw(t, "content"))
}

// not is what is not in a directory.
func not(dir string, lines []string) []string {
	in := regexp.MustCompile(`^([0-9]+,[0-9]+ )?` + dir + `/`)
	return slices.DeleteFunc(lines, in.MatchString)
}

// pull looks whether others changed something while everything else goes on.
func (m *model) pull(*rapid.T) {
	v := m.v()
	m.pulls.Go(func() {
		_, err := v.Pull(context.Background(), PullOptions{})
		assert.True(m.t, err == nil || v.ctx.Err() != nil, "pull", err)
	})
}

// commit sends what differs; where it fails that differs still.
func (m *model) commit(*rapid.T) { _, _ = m.v().Commit(context.Background(), CommitOptions{}) }

var modelPath = rapid.Custom(func(t *rapid.T) string {
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3).Draw(t, "names")
	return strings.Join(names, "/")
})

// both does an operation to both trees.
func (m *model) both(what string, do func(modelTree) error) {
	want, got := errnoOf(do(m.plain)), errnoOf(do(m.ours))
	assert.Must(m.r, got == want, what, "got", got, "want", want)
}

func errnoOf(err error) syscall.Errno { return fs.Errno(err) }

func (m *model) actions() map[string]func(*rapid.T) {
	on := func(do func(tree modelTree, path string) error) func(*rapid.T) {
		return func(t *rapid.T) {
			path := modelPath.Draw(t, "path")
			m.both(path, func(tree modelTree) error { return do(tree, path) })
		}
	}
	two := func(do func(tree modelTree, from, to string) error) func(*rapid.T) {
		return func(t *rapid.T) {
			from, to := modelPath.Draw(t, "from"), modelPath.Draw(t, "to")
			m.both(from+" to "+to, func(tree modelTree) error { return do(tree, from, to) })
		}
	}
	return map[string]func(*rapid.T){
		"":       m.sameTree,
		"again":  m.remount,
		"kill":   m.kill,
		"pull":   m.pull,
		"commit": m.commit,
		"look":   m.pull,
		"others": m.others,
		"put":    m.put,
		"open":   m.openOne,
		"write":  m.writeOpen,
		"close":  m.closeOne,
		"cut":    on(func(tree modelTree, p string) error { return tree.truncate(p, 2) }),
		"grow":   on(func(tree modelTree, p string) error { return tree.truncate(p, 9) }),
		"unlink": on(modelTree.unlink),
		"mkdir":  on(modelTree.mkdir),
		"rmdir":  on(modelTree.rmdir),
		"chmod":  on(func(tree modelTree, p string) error { return tree.chmod(p, 0o640) }),
		"sym":    on(func(tree modelTree, p string) error { return tree.symlink(p, "nowhere") }),
		"fifo":   on(modelTree.mkfifo),
		"rename": two(modelTree.rename),
		"move":   two(modelTree.rename),
		"link":   two(modelTree.link),
		"swap":   two(modelTree.exchange),
	}
}

func (m *model) put(t *rapid.T) {
	path := modelPath.Draw(t, "path")
	content := rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "content")
	flags := rapid.SampledFrom([]int{0, unix.O_TRUNC, unix.O_APPEND, unix.O_EXCL}).Draw(t, "flags")
	m.both("put "+path, func(tree modelTree) error { return tree.put(path, content, flags) })
}

func (m *model) openOne(t *rapid.T) {
	path := modelPath.Draw(t, "path")
	a, want := m.plain.open(path, unix.O_RDWR)
	b, got := m.ours.open(path, unix.O_RDWR)
	assert.Must(t, errnoOf(want) == errnoOf(got), "open", path, "got", got, "want", want)
	if got == nil {
		m.open = append(m.open, [2]modelFile{a, b})
	}
}

func (m *model) writeOpen(t *rapid.T) {
	if len(m.open) == 0 {
		t.Skip()
	}
	f := rapid.SampledFrom(m.open).Draw(t, "file")
	content, off := rapid.StringMatching(`[A-Z]{1,4}`).Draw(t, "content"), rapid.IntRange(0, 12).Draw(t, "off")
	for _, file := range f {
		assert.OK(t, file.write(content, off))
	}
	want := assert.Of(f[0].read()).OK(t)
	got := assert.Of(f[1].read()).OK(t)
	assert.Equal(t, got, want, "the open file has")
}

func (m *model) closeOne(t *rapid.T) {
	if len(m.open) == 0 {
		t.Skip()
	}
	i := rapid.IntRange(0, len(m.open)-1).Draw(t, "file")
	f := m.open[i]
	m.open = slices.Delete(m.open, i, i+1)
	for _, file := range f {
		assert.OK(t, file.close())
	}
}

func (m *model) closeAll() {
	for _, f := range m.open {
		f[0].close()
		f[1].close()
	}
	m.open = nil
}

func (m *model) sameTree(t *rapid.T) {
	for _, problem := range m.ours.(volTree).v.Status().Problems {
		t.Fatalf("problem: %s %s: %v", problem.Op, problem.Path, problem.Err)
	}
	want, got := m.plain.all(), not(strangers, m.ours.all())
	assert.Must(t, slices.Equal(got, want), "got", strings.Join(got, "\n\t"), "want", strings.Join(want, "\n\t"))
}

// sameBackend compares names and content, which is what the backend has.
func (m *model) sameBackend(p providers.Provider) {
	var want []string
	for _, line := range m.plain.all() {
		mode, rest, _ := strings.Cut(line, " ")
		if !strings.HasPrefix(mode, "10644,") && !strings.HasPrefix(mode, "10640,") { // pipes stay here
			want = append(want, rest)
		}
	}
	if !p.Capabilities().EmptyDirs {
		all := strings.Join(want, "\n")
		want = slices.DeleteFunc(want, func(l string) bool {
			dir := strings.HasSuffix(l, "/")
			return dir && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(l)+`.*[^/]$`).MatchString(all)
		})
	}
	got := not(strangers, sorted(listBackend(p)))
	assert.Must(m.r, slices.Equal(got, sorted(want)), "the backend has", strings.Join(got, "\n\t"), "want", strings.Join(want, "\n\t"))
}

// inWords is an entry's line.
func inWords(mode uint32, nlink uint64, path, content string) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return fmt.Sprintf("%o,%d %s/", mode, nlink, path)
	case unix.S_IFLNK:
		return fmt.Sprintf("%o,%d %s -> %s", mode, nlink, path, content)
	}
	return fmt.Sprintf("%o,%d %s: %s", mode, nlink, path, content)
}

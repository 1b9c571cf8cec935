package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// world is a working copy, the store behind it, and the faults between them.
type world struct {
	*testing.T
	v      *Volume
	p      *memory.Provider
	repo   providers.Provider // stands in for p; nil: p does
	faults *providertest.Faults
	o      Options
	gone   bool                                        // v was left as a killed process would, or closed
	wrap   func(providers.Provider) providers.Provider // around the faults; nil: nothing
	dead   *atomic.Bool                                // v asks the backend nothing more
	first  *atomic.Pointer[providers.Around]           // see intercept
}

// newWorld opens a working copy; change may replace options and put things
// into the store first. When the test ends the working copy is closed, and its
// table must make sense.
func newWorld(t *testing.T, change ...func(*world, *Options)) *world {
	t.Helper()
	w := &world{T: t, p: memory.New(memory.Options{PageSize: 3}), faults: providertest.NewFaults(t)}
	w.o = Options{StateDir: t.TempDir(), Provider: "memory", Patience: guard, strict: true, far: time.Hour,
		pause: atOnce} // retries come at once
	for _, c := range change {
		c(w, &w.o)
	}
	w.start()
	t.Cleanup(w.stop)
	return w
}

// start opens the working copy, for the first time or again.
func (w *world) start() {
	w.Helper()
	p := w.faults.Wrap(w.remote())
	if w.wrap != nil {
		p = w.wrap(p)
	}
	p, w.dead = mortal(p)
	first := &atomic.Pointer[providers.Around]{}
	p = providers.Wrap(p, providers.WrapOptions{Around: func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
		if f := first.Load(); f != nil {
			return (*f)(ctx, c, next)
		}
		return next(ctx)
	}})
	v := assert.Of(Open(context.Background(), p, w.o)).OK(w)
	w.v, w.gone, w.first = v, false, first
}

// intercept has f see the calls of the working copy before all else, from now on and until
// that is opened again.
func (w *world) intercept(f providers.Around) {
	if inner := w.first.Load(); inner != nil {
		outer := f
		f = func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
			return outer(ctx, c, func(ctx context.Context) error { return (*inner)(ctx, c, next) })
		}
	}
	w.first.Store(&f)
}

// atOnce is a pause that is none.
func atOnce(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// remote is what the working copy stands on.
func (w *world) remote() providers.Provider {
	if w.repo != nil {
		return w.repo
	}
	return w.p
}

// mortal is a provider for one process: once that is dead it sends no more
// requests.
func mortal(p providers.Provider) (providers.Provider, *atomic.Bool) {
	dead := &atomic.Bool{}
	return providers.Wrap(p, providers.WrapOptions{
		Around: func(ctx context.Context, _ *providers.Call, next func(context.Context) error) error {
			if !dead.Load() {
				return next(ctx)
			}
			if done := ctx.Done(); done != nil { // Close has none
				<-done
			}
			return context.Canceled
		}}), dead
}

// stop closes it.
func (w *world) stop() {
	w.Helper()
	if w.gone {
		return
	}
	w.gone = true
	wantLevel(w, w.v)
	w.check()
	w.v.Close()
}

// check asks the table whether all that hangs together does.
func (w *world) check() {
	w.Helper()
	locked := w.v.lock()
	defer locked.unlock()
	assert.Is(w, locked.Check(), nil, "the table")
}

// again ends the working copy cleanly and opens it anew.
func (w *world) again() {
	w.Helper()
	w.stop()
	w.start()
}

// killed goes on with a copy of the state as it is now, as after a SIGKILL; the
// old working copy is out of the game.
func (w *world) killed() {
	w.Helper()
	w.dead.Store(true)
	dir := copyState(w.T, w.v)
	old := w.v
	old.stop()
	w.T.Cleanup(func() { old.Close() })
	w.o.StateDir = dir
	w.start()
}

// holding puts files into the store before the working copy opens.
func holding(files ...string) func(*world, *Options) {
	return func(w *world, _ *Options) {
		for i := 0; i < len(files); i += 2 {
			w.tamper(files[i], files[i+1])
		}
	}
}

// guard is how long something may take that is quick on a machine with nothing else to
// do: only what hangs takes longer.
const guard = assert.Hangs

// impatient has nobody wait for long. It is for bubbles of synctest, where time passes
// only when nothing goes on, however busy the machine is.
func impatient(_ *world, o *Options) { o.Patience = 300 * time.Millisecond }

func at(path string) providers.Locator { return providers.MustLocator(path) }

// tamper is another writer.
func (w *world) tamper(path, content string) {
	w.Helper()
	w.ok(w.p.Tamper(at(path), []byte(content)))
}

func (w *world) ok(err error) {
	w.Helper()
	assert.OK(w, err)
}

func (w *world) is(err, want error) {
	w.Helper()
	assert.Must(w, errors.Is(err, want), "got error", err, "want", want)
}

var me = &fs.Op{UID: 7, GID: 8, Umask: 0o022}

// walk gives the inode of a path, 0 when there is none.
func (w *world) walk(path string) fs.Ino {
	w.Helper()
	ino := fs.RootIno
	for _, name := range at(path).Parts() {
		e := assert.Of(w.v.Lookup(me, ino, name)).OK(w)
		if e.Ino == 0 {
			return 0
		}
		ino = e.Ino
	}
	return ino
}

func (w *world) dirOf(path string) (fs.Ino, string) {
	w.Helper()
	return w.walk(at(path).Parent().String()), at(path).Name()
}

func (w *world) open(path string, flags uint32) fs.Opened {
	w.Helper()
	return w.openIno(w.walk(path), flags)
}

func (w *world) openIno(ino fs.Ino, flags uint32) fs.Opened {
	w.Helper()
	o := assert.Of(w.v.Open(me, ino, flags)).OK(w)
	return o
}

func (w *world) attr(path string) fs.Attr {
	w.Helper()
	a := assert.Of(w.v.Attr(me, w.walk(path), nil)).OK(w)
	return a
}

func (w *world) setAttr(path string, a *fs.SetAttr) {
	w.Helper()
	w.ok(assert.ErrOf(w.v.SetAttr(me, w.walk(path), nil, a)))
}

// create makes and opens a file.
func (w *world) create(path string) fs.Opened {
	w.Helper()
	dir, name := w.dirOf(path)
	_, o, err := w.v.Create(me, dir, name, syscall.O_RDWR, 0o666)
	w.ok(err)
	return o
}

func (w *world) write(o fs.Opened, content string, off int64) {
	w.Helper()
	n := assert.Of(o.File.Write(me, []byte(content), off)).OK(w)
	assert.Must(w, n == len(content), "wrote", n, "bytes of", len(content))
}

// shut is close(2) of the last descriptor.
func (w *world) shut(o fs.Opened) error {
	w.Helper()
	err := o.File.Flush(me)
	o.File.Release()
	return err
}

// writeLast writes, and closes the last descriptor.
func (w *world) writeLast(o fs.Opened, content string, off int64) {
	w.Helper()
	w.write(o, content, off)
	w.ok(w.shut(o))
}

// put is open with O_CREAT|O_TRUNC, write, close.
func (w *world) put(path, content string) error {
	w.Helper()
	dir, name := w.dirOf(path)
	_, o, err := w.v.Create(me, dir, name, syscall.O_RDWR|syscall.O_TRUNC, 0o666)
	w.ok(err)
	w.write(o, content, 0)
	return w.shut(o)
}

func (w *world) read(o fs.Opened) string {
	w.Helper()
	buf := make([]byte, 1<<16)
	d := assert.Of(o.File.Read(me, buf, 0)).OK(w)
	return string(d.Bytes)
}

// get is the content of a path as a program sees it.
func (w *world) get(path string) string {
	w.Helper()
	o := w.open(path, syscall.O_RDONLY)
	defer o.File.Release()
	return w.read(o)
}

// asKernel repeats a call that is told ESTALE, as the kernel does.
func asKernel(call func() error) error {
	err := call()
	if errors.Is(err, fs.ErrStale) {
		err = call()
	}
	return err
}

func (w *world) rename(from, to string) error {
	w.Helper()
	dir, name := w.dirOf(from)
	newDir, newName := w.dirOf(to)
	return asKernel(func() error { return w.v.Rename(me, dir, name, newDir, newName, 0) })
}

func (w *world) unlink(path string) error {
	w.Helper()
	dir, name := w.dirOf(path)
	return asKernel(func() error { return w.v.Unlink(me, dir, name) })
}

func (w *world) mkdir(path string) {
	w.Helper()
	dir, name := w.dirOf(path)
	w.ok(assert.ErrOf(w.v.Mkdir(me, dir, name, 0o777)))
}

// doEach does a line for each number, which it has where the verb is.
func (w *world) doEach(from, to int, line string) {
	w.Helper()
	for i := from; i < to; i++ {
		w.do(fmt.Sprintf(line, i))
	}
}

// numbered are files, for holding, whose paths have a number where the verb is.
func numbered(n int, path string) (files []string) {
	for i := range n {
		files = append(files, fmt.Sprintf(path, i), "x")
	}
	return files
}

// halts wants so many halts, and gives them.
func (w *world) halts(want int) []MassDelete {
	w.Helper()
	h := w.v.Status().Halted
	assert.Must(w, len(h) == want, "halted", h, "want", want)
	return h
}

// unpushed wants so many commits not to be pushed, and gives what is known of them.
func (w *world) unpushed(commits int) *Unpushed {
	w.Helper()
	u := w.v.Status().Unpushed
	assert.Must(w, (u == nil) == (commits == 0) && (u == nil || u.Commits == commits), "unpushed is", u, "want commits:", commits)
	return u
}

// settle waits until the backend has all changes of names.
func (w *world) settle() {
	w.Helper()
	w.ok(w.v.sent.Names(me))
}

// backend is what the store has now.
func (w *world) backend(want ...string) {
	w.Helper()
	got := listBackend(w.p)
	assert.Must(w, strings.Join(got, "\n") == strings.Join(want, "\n"), "the backend has", strings.Join(got, "\n\t"), "want", strings.Join(want, "\n\t"))
}

// noOrphans checks that no inode without a name is left.
func (w *world) noOrphans() {
	w.Helper()
	locked := w.v.lock()
	defer locked.unlock()
	assert.Equal(w, len(locked.Orphans()), 0, "inodes without a name")
}

func (w *world) noProblems() {
	w.Helper()
	for _, p := range w.v.Status().Problems {
		w.Errorf("problem: %s %s: %v", p.Op, p.Path, p.Err)
	}
}

// stat is what the store says of a file.
func (w *world) stat(path string) providers.Info {
	w.Helper()
	info := assert.Of(w.p.Stat(w.Context(), at(path))).OK(w)
	return info
}

// listBackend gives "dir/", "link -> target" and "file: content" lines.
func listBackend(p providers.Provider) []string { return listBackendBelow(p, providers.Locator{}) }

func listBackendBelow(p providers.Provider, dir providers.Locator) []string {
	var lines []string
	ctx := context.Background()
	for info, err := range providers.All(ctx, p, dir, providers.ListOptions{Recursive: true}) {
		if err != nil {
			return append(lines, err.Error())
		}
		if info.Kind == providers.KindDir {
			lines = append(lines, info.Locator.String()+"/")
			continue
		}
		c, err := p.Read(ctx, info.Locator, providers.ReadOptions{})
		if err != nil {
			return append(lines, err.Error())
		}
		data, _ := io.ReadAll(c.Body)
		format := "%s: %s"
		if c.Info.Kind == providers.KindSymlink { // which not every listing tells
			format = "%s -> %s"
		}
		lines = append(lines, fmt.Sprintf(format, info.Locator, data))
	}
	return lines
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// list reads a directory to its end.
func (w *world) list(path string) []string {
	w.Helper()
	d := assert.Of(w.v.OpenDir(me, w.walk(path))).OK(w)
	defer d.Release()
	var names []string
	for {
		e, more, err := d.Next(me)
		if w.ok(err); !more {
			return names
		}
		names = append(names, e.Name)
	}
}

func (w *world) exchange(a, b string) error {
	w.Helper()
	dir, name := w.dirOf(a)
	newDir, newName := w.dirOf(b)
	return asKernel(func() error { return w.v.Rename(me, dir, name, newDir, newName, unix.RENAME_EXCHANGE) })
}

// inode is what the table has of an inode.
func (w *world) inode(ino fs.Ino) table.Inode {
	w.Helper()
	locked := w.v.lock()
	defer locked.unlock()
	n := locked.Inode(table.Ino(ino))
	assert.Must(w, n != nil, "there is no inode", ino)
	return *n
}

// calls records what a store is asked.
type calls struct {
	mu   sync.Mutex
	list []string // guarded by mu
}

func (c *calls) hook(_ context.Context, m providers.Method, l providers.Locator) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, string(m)+" "+l.String())
	return nil
}

// of counts the calls of a method and forgets all.
func (c *calls) of(m providers.Method) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, call := range c.list {
		if strings.HasPrefix(call, string(m)+" ") {
			n++
		}
	}
	c.list = nil
	return n
}

// changes are the calls that change something, in order, and forgets all.
func (c *calls) changes() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, call := range c.list {
		m, _, _ := strings.Cut(call, " ")
		if providers.Method(m).Mutates() {
			all = append(all, call)
		}
	}
	c.list = nil
	return strings.Join(all, ", ")
}

// asks has the calls of a working copy recorded, whatever becomes of them.
func (c *calls) asks(w *world, _ *Options) {
	w.wrap = around(func(ctx context.Context, call *providers.Call, next func(context.Context) error) error {
		return errors.Join(c.hook(ctx, call.Method, call.Locator), next(ctx))
	})
}

func recording(c *calls) func(*world, *Options) {
	return func(w *world, _ *Options) { w.p = memory.New(memory.Options{PageSize: 3, Hook: c.hook}) }
}

// unwaited is a policy under which nobody waits for the backend, and nothing is
// sent unasked.
func unwaited(_ *world, o *Options) { o.Policy.NoWait, o.Policy.Commit = true, DueAsked }

// async runs f and gives a channel that is closed when it has returned.
func async(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	return done
}

// until waits for something that happens in the background.
func (w *world) until(is func() bool) {
	w.Helper()
	assert.Eventually(w, "something in the background", is)
}

// untilLocked is until, for what the lock of the volume guards.
func (w *world) untilLocked(is func(locked *View) bool) {
	w.Helper()
	w.until(func() bool {
		locked := w.v.lock()
		defer locked.unlock()
		return is(locked)
	})
}

// logged counts what a working copy logs.
type logged struct {
	mu   sync.Mutex
	said map[string]int
}

func logging(o *Options) *logged {
	l := &logged{said: map[string]int{}}
	o.Log = slog.New(l)
	return l
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logged) WithGroup(string) slog.Handler            { return l }

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said[r.Message]++
	return nil
}

// forget begins anew.
func (l *logged) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.said)
}

// of is how often it said something.
func (l *logged) of(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said[text]
}

// dirtyNames is how many names differ from the remote.
func (w *world) dirtyNames() int {
	locked := w.v.lock()
	defer locked.unlock()
	return locked.DirtyCount()
}

// scene is a world with another writer in it.
type scene struct{ *world }

func newScene(t *testing.T, change ...func(*world, *Options)) *scene {
	t.Helper()
	return &scene{newWorld(t, change...)}
}

// answerLate has the first call of a method done at once, and answered when gate
// is closed. reached is closed when it is done.
func (w *scene) answerLate(m providers.Method) (gate, reached chan struct{}) {
	gate, reached = make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	w.intercept(func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
		err := next(ctx)
		if c.Method == m && calls.Add(1) == 1 {
			close(reached)
			<-gate
		}
		return err
	})
	return gate, reached
}

func TestMain(m *testing.M) {
	tier.Checks(3, 50) // there are many models
	os.Exit(testrun.Main(m))
}

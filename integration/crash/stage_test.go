package crash

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/memoryserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// A stage is a working copy whose storage is in the test's own process, or behind
// a gate in it, where every call can be seen, held up and cut off.
type stage struct {
	t     *testing.T
	w     *harness.World
	m     *harness.Mount
	far   far
	store *memory.Provider // nil: it is a bucket
	asks  bool             // commits are asked for where something is to be sent
	trap  atomic.Pointer[trap]
	came  sync.Map // of a call, that it came since the mount
}

// far is the storage of a stage, for who does not go through the mount.
type far interface {
	cut()                              // whoever asks waits
	connect()                          // and gets an answer
	clear()                            // nothing is held up any more
	put(files map[string][]byte) error // at once, where it knows sets
	lines() []string                   // what there is, as treeLines
	emptyDirs() bool                   // and it has directories without entries, too
	calls() []string                   // those that a kill can hit
	// late is how long after a kill it may show what the dead daemon had asked for.
	late() time.Duration
}

// inProcess is far in this process.
type inProcess struct {
	store  *memory.Provider
	atomic bool // it is changed set by set
}

func (p *inProcess) cut()                { p.store.Switches().Cut(true) }
func (p *inProcess) connect()            { p.store.Switches().Connect() }
func (p *inProcess) clear()              { p.store.Switches().Clear() }
func (p *inProcess) late() time.Duration { return 0 }
func (p *inProcess) emptyDirs() bool     { return true }

func (p *inProcess) put(files map[string][]byte) (err error) {
	for path, content := range files {
		err = errors.Join(err, p.store.Tamper(loc(path), content))
	}
	return err
}

func (p *inProcess) lines() (lines []string) {
	for _, line := range p.store.Dump() {
		line, _, _ = strings.Cut(line, " mode=")
		lines = append(lines, line)
	}
	return lines
}

func (p *inProcess) calls() []string {
	if p.atomic {
		return []string{string(providers.MethodCommit)}
	}
	return []string{string(providers.MethodWrite), string(providers.MethodDelete), string(providers.MethodMove),
		string(providers.MethodMkdir), string(providers.MethodSetAttr)}
}

// Sync blocks of manifests.
const (
	syncCanonical = "{mode: canonical}"
	syncSoon      = "{mode: pull-push, commit: {on: write, batch_window_ms: 100}}"
	syncAsked     = "{mode: pull-push, commit: {on: manual}, pull: {on: manual}}"
)

// newStage makes a host and storage for it, and mounts nothing yet.
func newStage(t *testing.T, sync string) *stage {
	t.Helper()
	w := harness.New(t, harness.Options{})
	s := &stage{t: t, w: w, store: memory.New(memory.Options{})}
	s.far = &inProcess{s.store, sync != syncCanonical}
	socket := filepath.Join(w.Mkdir("service", 0o700), "s")
	l, err := net.Listen("unix", socket)
	if err == nil {
		err = os.Chmod(socket, 0o600)
	}
	assert.OK(t, err)
	server := memoryserver.Serve(l, providers.Wrap(s.store, providers.WrapOptions{Around: s.around}))
	t.Cleanup(func() { server.Close() })
	w.Write("config/wsmount/config.yaml", "allow_paths: [ "+filepath.Dir(socket)+" ]\n", 0o600)
	dir := w.Mkdir("ws", 0o755)
	w.Write("ws/WORKSPACE.md", harness.Manifest("@acme/stage",
		fmt.Sprintf("storage: {inline: {provider: memory, config: {socket: %q}, sync: %s}}\n", socket, sync)), 0o644)
	w.MustRun("registry", "add", dir)
	return s
}

func (s *stage) mount(flags ...string) {
	s.t.Helper()
	s.m = s.w.Mount("@acme/stage", flags...)
	s.came.Clear()
	s.t.Cleanup(s.far.clear) // or the unmount waits for it
}

// A trap is a call of the storage that somebody waits for.
type trap struct {
	call  string
	after bool         // it has happened, and its answer is not sent
	nth   atomic.Int32 // this one of those to come
	hit   chan struct{}
	free  chan struct{} // closed: the call ends
}

func (s *stage) set(call string, after bool, nth int) *trap {
	tr := &trap{call: call, after: after, hit: make(chan struct{}), free: make(chan struct{})}
	tr.nth.Store(int32(nth))
	s.trap.Store(tr)
	return tr
}

// caught is the trap that a call is in, or nil.
func (s *stage) caught(call string) *trap {
	s.came.Store(call, true)
	tr := s.trap.Load()
	if tr == nil || tr.call != call || tr.nth.Add(-1) != 0 {
		return nil
	}
	return tr
}

func (s *stage) around(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
	tr := s.caught(string(c.Method))
	if tr == nil {
		return next(ctx)
	}
	err := providers.ErrUnavailable
	if tr.after {
		err = next(ctx)
	}
	close(tr.hit)
	<-tr.free
	return err
}

// unsent is what a status says of the changes that the storage lacks.
type unsent struct {
	Queue     int // names, files, and commits
	Held      int
	Reasons   []string // of some of those
	Halted    []string
	LastError string
}

func (s *stage) unsent() (u unsent) {
	s.t.Helper()
	for _, p := range s.m.Status().Parts {
		w := p.WorkingCopy
		u.Queue += p.Unsaved.Files + p.Unsaved.Names + w.UnpushedCommits
		u.Held += p.HeldBack
		for _, h := range w.Held {
			u.Reasons = append(u.Reasons, h.Path+": "+h.Reason)
		}
		u.Halted = append(u.Halted, w.Halted...)
		u.LastError = w.LastError
	}
	return u
}

// settle waits until the storage has everything.
func (s *stage) settle() {
	s.t.Helper()
	for end := time.Now().Add(harness.Hangs); ; time.Sleep(100 * time.Millisecond) {
		u := s.unsent()
		switch {
		case u.Queue == 0:
			return
		case len(u.Halted) > 0:
			s.w.MustRun("commit", "--confirm", s.m.Dir)
		case u.Held > 0:
			s.t.Fatalf("held back: %q\n%s", u.Reasons, s.daemonLog())
		case time.Now().After(end):
			s.t.Fatalf("not sent: %+v\n%s", u, s.daemonLog())
		case s.asks:
			s.w.Run("commit", s.m.Dir) // finds what others pushed, and may have to be asked again
		}
	}
}

// converged compares the storage with the tree, which shows within a moment what
// became of requests that the dead daemon had sent.
func (s *stage) converged() {
	s.t.Helper()
	for end := time.Now().Add(harness.Hangs); ; time.Sleep(100 * time.Millisecond) {
		diff := s.differences()
		if len(diff) == 0 {
			return
		}
		if time.Now().After(end) {
			s.t.Error(strings.Join(diff, "\n"))
			return
		}
	}
}

func (s *stage) differences() (diff []string) {
	s.t.Helper()
	got := map[string]bool{}
	for _, line := range s.far.lines() {
		got[line] = true
	}
	for _, line := range treeLines(s.t, s.m.Dir) {
		if !got[line] && (s.far.emptyDirs() || !strings.HasSuffix(line, "\" dir")) {
			diff = append(diff, "the storage lacks "+line)
		}
		delete(got, line)
	}
	for line := range got {
		diff = append(diff, "only the storage has "+line)
	}
	return diff
}

// treeLines is a tree as memory.Provider.Dump describes it, without modes.
func treeLines(t *testing.T, root string) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		if rel == ".git" { // of a clone; in a mount it leads to what is not listed
			return skipped(d)
		}
		switch d.Type() {
		case fs.ModeDir:
			lines = append(lines, fmt.Sprintf("%q dir", rel))
		case fs.ModeSymlink:
			target, err := os.Readlink(p)
			lines = append(lines, fmt.Sprintf("%q symlink %q", rel, target))
			return err
		default:
			b, err := os.ReadFile(p)
			lines = append(lines, fmt.Sprintf("%q file %d sha256:%.8x", rel, len(b), sha256.Sum256(b)))
			return err
		}
		return nil
	})
	assert.OK(t, err)
	slices.Sort(lines)
	return lines
}

func skipped(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// daemonLog is the end of what the daemon logged.
func (s *stage) daemonLog() string {
	logs, _ := filepath.Glob(s.w.Path("state/acme/stage/*/log"))
	if len(logs) != 1 {
		return ""
	}
	b, _ := os.ReadFile(logs[0])
	return string(b[max(0, len(b)-100_000):])
}

// problems are the last of the lines of the log that tell of one.
func (s *stage) problems() string {
	var found []string
	for line := range strings.Lines(s.daemonLog()) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			found = append(found, line)
		}
	}
	return strings.Join(found[max(0, len(found)-20):], "")
}

// tamper is another writer.
func (s *stage) tamper(path string, content []byte) {
	s.t.Helper()
	s.fill(map[string][]byte{path: content})
}

// fill is tamper with many files.
func (s *stage) fill(files map[string][]byte) {
	s.t.Helper()
	assert.OK(s.t, s.far.put(files))
}

func loc(p string) providers.Locator { return providers.MustLocator(p) }

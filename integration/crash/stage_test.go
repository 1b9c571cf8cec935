package crash

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// A stage is a working copy whose storage is in the test's own process, where
// every call of it can be seen, held up and cut off.
type stage struct {
	t     *testing.T
	w     *harness.World
	m     *harness.Mount
	store *memory.Provider
	trap  atomic.Pointer[trap]
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
	socket := filepath.Join(w.Mkdir("service", 0o700), "s")
	l, err := net.Listen("unix", socket)
	if err == nil {
		err = os.Chmod(socket, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	server := memory.Serve(l, providers.Wrap(s.store, providers.WrapOptions{Around: s.around}))
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
	s.t.Cleanup(s.store.Switches().Clear) // or the unmount waits for it
}

// A trap is a call of the storage that somebody waits for.
type trap struct {
	method providers.Method
	after  bool         // it has happened, and its answer is not sent
	nth    atomic.Int32 // this one of those to come
	hit    chan struct{}
	free   chan struct{} // closed: the call ends
}

func (s *stage) set(method providers.Method, after bool, nth int) *trap {
	tr := &trap{method: method, after: after, hit: make(chan struct{}), free: make(chan struct{})}
	tr.nth.Store(int32(nth))
	s.trap.Store(tr)
	return tr
}

func (s *stage) around(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
	tr := s.trap.Load()
	if tr == nil || tr.method != c.Method || tr.nth.Add(-1) != 0 {
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
	Queue     int // names and files
	Bytes     int64
	Held      int
	Conflicts int
	Reasons   []string // of some of those
	Halted    []string
	Text      string
}

func (s *stage) unsent() (u unsent) {
	s.t.Helper()
	var status struct {
		Parts []struct {
			Unsaved struct {
				Files, Names int
				Bytes        int64
			}
			HeldBack, Conflicts int
			WorkingCopy         struct {
				LastError string
				Held      []struct{ Path, Reason string }
				Halted    []string
			}
		}
	}
	u.Text = s.w.MustRun("status", "--json", s.m.Dir)
	if err := json.Unmarshal([]byte(u.Text), &status); err != nil {
		s.t.Fatal(err)
	}
	for _, p := range status.Parts {
		u.Queue += p.Unsaved.Files + p.Unsaved.Names
		u.Bytes += p.Unsaved.Bytes
		u.Held += p.HeldBack
		u.Conflicts += p.Conflicts
		for _, h := range p.WorkingCopy.Held {
			u.Reasons = append(u.Reasons, h.Path+": "+h.Reason)
		}
		u.Halted = append(u.Halted, p.WorkingCopy.Halted...)
	}
	return u
}

// settle waits until the storage has everything.
func (s *stage) settle() {
	s.t.Helper()
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		u := s.unsent()
		switch {
		case u.Queue == 0:
			return
		case len(u.Halted) > 0:
			s.w.MustRun("commit", "--confirm", s.m.Dir)
		case u.Held > 0:
			s.t.Fatalf("held back: %q\n%s", u.Reasons, s.daemonLog())
		case time.Now().After(end):
			s.t.Fatalf("not sent: %s", u.Text)
		}
	}
}

// converged compares the storage with the tree.
func (s *stage) converged() {
	s.t.Helper()
	got := map[string]bool{}
	for _, line := range s.store.Dump() {
		line, _, _ = strings.Cut(line, " mode=")
		got[line] = true
	}
	for _, line := range treeLines(s.t, s.m.Dir) {
		if !got[line] {
			s.t.Errorf("the storage lacks %s", line)
		}
		delete(got, line)
	}
	for line := range got {
		s.t.Errorf("only the storage has %s", line)
	}
}

// treeLines is a tree as memory.Provider.Dump describes it, without modes.
func treeLines(t *testing.T, root string) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		rel, _ := filepath.Rel(root, p)
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
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
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

// tamper is another writer.
func (s *stage) tamper(path string, content []byte) {
	s.t.Helper()
	if err := s.store.Tamper(loc(path), content); err != nil {
		s.t.Fatal(err)
	}
}

func loc(p string) providers.Locator { return providers.MustLocator(p) }

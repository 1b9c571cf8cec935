package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/providers"
)

// flakyBackend fails changes, before or after they are done.
type flakyBackend struct {
	mu   sync.Mutex
	rand *rand.Rand // guarded by mu; nil: nothing fails
}

func (f *flakyBackend) around(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
	f.mu.Lock()
	what := 100
	if f.rand != nil && c.Method.Mutates() && c.Method != providers.MethodClose {
		what = f.rand.IntN(10)
	}
	f.mu.Unlock()
	switch what {
	case 0:
		return fmt.Errorf("%w: by chance", providers.ErrUnavailable)
	case 1:
		_ = next(ctx)
		return fmt.Errorf("%w: lost by chance", providers.ErrUnavailable)
	}
	return next(ctx)
}

func (f *flakyBackend) set(r *rand.Rand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rand = r
}

// Whatever programs do, and however the backend fails, and whenever we are
// killed: what programs see stays, and in the end the backend has it.
func TestCommitModel(t *testing.T) {
	eachStore(t, func(t *testing.T, store func(*world, *Options)) {
		rapid.Check(t, func(r *rapid.T) {
			var flaky flakyBackend
			policies := []func(*world, *Options){unwaited, background, func(*world, *Options) {}}
			w := newWorld(t, store, has(origin...), policies[rapid.IntRange(0, 2).Draw(r, "policy")], func(w *world, _ *Options) {
				w.wrap = func(p providers.Provider) providers.Provider {
					return providers.Wrap(p, providers.WrapOptions{Around: flaky.around})
				}
			})
			w.local()
			flaky.set(rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "faults"), 1)))
			for range rapid.IntRange(1, 25).Draw(r, "length") {
				modelStep(r, w)
			}
			flaky.set(nil)
			w.upload()
			w.same()
			w.noProblems()
			w.stop()
			w.sweep()
			if t.Failed() {
				r.Fatal("this run found what is said above")
			}
		})
	})
}

// sweep removes what the runs of a world have left: there are hundreds of these, with
// a ballast each.
func (w *world) sweep() {
	w.Helper()
	states, err := filepath.Glob(filepath.Join(filepath.Dir(w.o.StateDir), "*"))
	w.ok(err)
	for _, dir := range states {
		w.ok(os.RemoveAll(dir))
	}
}

var modelNames = []string{"a", "b", "d", "d/x", "d/y", "d/s", "d/s/z", "e", "e/x", "e/s", "e/s/z"}

func modelStep(r *rapid.T, w *world) {
	name := func() string { return rapid.SampledFrom(modelNames).Draw(r, "name") }
	op := rapid.SampledFrom([]string{"put", "append", "mkdir", "mv", "mv", "mv", "swap", "swap", "rm", "rmdir", "ln", "sym",
		"chmod", "commit", "again", "killed"}).Draw(r, "op")
	switch op {
	case "commit":
		_, _ = w.v.Commit(context.Background(), CommitOptions{})
		return
	case "again", "killed":
		before := strings.Join(w.local(), "\n")
		if op == "killed" {
			w.killed()
		} else {
			w.again()
		}
		if after := strings.Join(w.local(), "\n"); after != before {
			r.Fatalf("%s: programs see\n%s\nand saw\n%s", op, after, before)
		}
		return
	}
	from, to := name(), name()
	line := []string{op, from}
	switch op {
	case "mv", "swap", "ln", "sym":
		line = append(line, to)
	case "put", "append":
		line = append(line, fmt.Sprint("content-", rapid.IntRange(0, 3).Draw(r, "content")))
	}
	w.maybe(line)
}

// maybe does a change if a program could.
func (w *world) maybe(line []string) {
	w.Helper()
	there := map[string]string{"": "dir"}
	for _, l := range w.local() {
		switch {
		case strings.HasSuffix(l, "/"):
			there[strings.TrimSuffix(l, "/")] = "dir"
		case strings.Contains(l, " -> "):
			path, _, _ := strings.Cut(l, " -> ")
			there[path] = "link"
		default:
			path, _, _ := strings.Cut(l, ": ")
			there[path] = "file"
		}
	}
	target := line[1]
	if len(line) > 2 && line[0] != "put" && line[0] != "append" {
		target = line[2]
	}
	kind := there[line[1]]
	switch {
	case there[at(target).Parent().String()] != "dir", there[at(line[1]).Parent().String()] != "dir":
		return
	case line[0] == "put" && kind != "" && kind != "file", line[0] == "append" && kind != "file",
		line[0] == "mkdir" && kind != "", line[0] == "chmod" && (kind == "" || kind == "link"),
		(line[0] == "mv" || line[0] == "ln" || line[0] == "rm" || line[0] == "swap") && kind == "",
		line[0] == "swap" && there[target] == "", line[0] == "rmdir" && kind != "dir":
		return
	}
	_ = w.try(line) // what POSIX refuses is no change
}

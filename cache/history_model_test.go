package cache

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// recall runs a random script: what programs do here, what others do there, pulls,
// conflicts and new starts. Between its turns it notes the tree, and asks for it
// later.
type recall struct {
	*scene
	c      *testClock
	rng    *rand.Rand
	reads  bool // all content has been here, so that nothing may be missing
	n      int
	turns  []map[string]string // the tree after each, by path; a directory is "/"
	script []string
}

func (h *recall) pick(list []string) string { return list[h.rng.IntN(len(list))] }

var recallDirs, recallNames = []string{"", "d/", "e/", "d/s/"}, []string{"f", "g", "h"}

func (h *recall) path() string { return h.pick(recallDirs) + h.pick(recallNames) }

// has reports whether the working copy has something, and a directory.
func (h *recall) has(path string) (there, dir bool) {
	h.Helper()
	return h.v.past.IsNow(h.Context(), path)
}

// step is one thing that happens; it says what, "" for nothing.
func (h *recall) step() (did string) {
	h.Helper()
	h.n++
	path, other, content := h.path(), h.path(), fmt.Sprint("content ", h.n)
	there, isDir := h.has(path)
	_, inDir := h.has(at(path).Parent().String())
	switch op := h.rng.IntN(12); {
	case op < 3 && inDir && !isDir:
		h.ok(h.put(path, content))
		return "put " + path
	case op == 3 && there && !isDir:
		h.ok(h.unlink(path))
		return "unlink " + path
	case op == 4 && there && !isDir:
		_, otherIn := h.has(at(other).Parent().String())
		if _, otherDir := h.has(other); !otherIn || otherDir || other == path {
			return ""
		}
		h.ok(h.rename(path, other))
		return "rename " + path + " " + other
	case op == 5:
		return h.renameDir()
	case op == 6:
		for _, dir := range []string{"d", "e", "d/s"} {
			if there, _ := h.has(dir); !there && (dir != "d/s" || h.is("d")) {
				h.mkdir(dir)
				return "mkdir " + dir
			}
		}
	case op < 9:
		return h.others(path, content)
	case op == 9:
		h.pull()
		return "pull"
	case op == 10 && there && !isDir:
		return h.collide(path, content)
	case op == 11:
		h.settle()
		h.again()
		return "again"
	}
	return ""
}

func (h *recall) is(dir string) bool {
	_, isDir := h.has(dir)
	return isDir
}

func (h *recall) renameDir() string {
	h.Helper()
	for _, to := range []string{"e", "d"} {
		from := map[string]string{"e": "d", "d": "e"}[to]
		if there, _ := h.has(to); h.is(from) && !there {
			h.ok(h.rename(from, to))
			return "rename " + from + " " + to
		}
	}
	return ""
}

// others change something at the backend; the next pull brings it.
func (h *recall) others(path, content string) string {
	h.Helper()
	if h.rng.IntN(3) == 0 {
		if h.p.Delete(h.Context(), at(path), providers.DeleteOptions{}) == nil {
			return "others delete " + path
		}
		return ""
	}
	if h.p.Tamper(at(path), []byte("theirs "+content)) != nil {
		return ""
	}
	return "others put " + path
}

// collide has a file changed here that others changed, or deleted, meanwhile.
func (h *recall) collide(path, content string) string {
	h.Helper()
	h.settle()
	o := h.open(path, syscall.O_RDWR)
	h.write(o, "ours "+content, 0)
	did := h.others(path, content)
	if h.rng.IntN(2) == 0 {
		h.pull()
		did += ", pull"
	}
	h.ok(h.shut(o))
	return "write " + path + " while " + did
}

// mark ends a turn.
func (h *recall) mark() {
	h.Helper()
	tree := map[string]string{}
	for range 5 { // a change of ours may go there only after what it depends on
		h.settle()
		h.pull()
		h.settle()
		tree = h.now()
		if here := h.here(""); slices.Equal(here, slices.Sorted(maps.Keys(tree))) {
			break
		}
	}
	if h.reads {
		for path, content := range tree {
			if content != "/" {
				got := h.get(path)
				assert.Must(h, got == content, path, "is", got, "here, and", content, "there")
			}
		}
	}
	h.forgetAll()
	h.later(h.c, 3*time.Second)
	h.turns = append(h.turns, tree)
	h.script = append(h.script, fmt.Sprintf("end of turn %d: %v", len(h.turns)-1, slices.Sorted(maps.Keys(tree))))
	h.v.SetActor(Actor{Turn: strconv.Itoa(len(h.turns))})
}

// here are the paths of the working copy.
func (h *recall) here(dir string) (paths []string) {
	h.Helper()
	for _, name := range h.names(dir) {
		path := strings.TrimPrefix(dir+"/"+name, "/")
		paths = append(paths, path)
		if h.is(path) {
			paths = append(paths, h.here(path)...)
		}
	}
	slices.Sort(paths)
	return paths
}

// now is the tree, as the backend has it.
func (h *recall) now() map[string]string {
	tree := map[string]string{}
	for _, line := range listBackend(h.p) {
		if path, content, isFile := strings.Cut(line, ": "); isFile {
			tree[path] = content
		} else {
			tree[strings.TrimSuffix(line, "/")] = "/"
		}
	}
	return tree
}

// recallTurn goes back to the end of a turn, and says what differs then from what
// was there and was not said to be unknown.
func (h *recall) recallTurn(s State, want map[string]string) (wrong []string) {
	h.Helper()
	ask := func() string {
		r, err := h.v.Restore(h.Context(), RestoreOptions{To: s, DryRun: true})
		return fmt.Sprintf("%+v %v", r, err)
	}
	first := ask()
	for range 9 {
		if again := ask(); again != first {
			return []string{first, again}
		}
	}
	r, err := h.v.Restore(h.Context(), RestoreOptions{To: s})
	if err != nil {
		return []string{err.Error()}
	}
	h.settle()
	h.forgetAll()
	said := func(path string) bool {
		return slices.ContainsFunc(r.Skipped, func(s Skipped) bool { return history.Below(path, s.Path) || history.Below(s.Path, path) })
	}
	if h.reads && len(r.Skipped) > 0 {
		blocked := func(s Skipped) bool { return strings.Contains(s.Reason, "director") } // another kind is in the way
		if unknown := slices.DeleteFunc(slices.Clone(r.Skipped), blocked); len(unknown) > 0 {
			wrong = append(wrong, fmt.Sprintf("skipped %+v", unknown))
		}
	}
	got := h.now()
	for path := range maps.Keys(got) {
		if _, ok := want[path]; !ok && !said(path) {
			wrong = append(wrong, fmt.Sprintf("%s: %q, which was not there", path, got[path]))
		}
	}
	for path, content := range want {
		if got[path] != content && !said(path) {
			wrong = append(wrong, fmt.Sprintf("%s: %q, want %q", path, got[path], content))
		}
	}
	return wrong
}

// Whatever happens, an earlier state comes back as it was, or it is said what is
// not known of it; and the same question has the same answer.
func TestRestoreAnyState(t *testing.T) {
	t.Parallel()
	tier.Seeds(t, tier.Pick(4, 40), recallSeed, 1795668770120435375, 1795668800650786019, 1795668814048523479)
}

func recallSeed(t *testing.T, seed uint64) {
	w, c := sameTime(t, holding("f", "begun", "d/g", "begun", "d/s/h", "begun"), func(_ *world, o *Options) {
		o.Policy.History = Budget{Versions: 10000, Age: 1e6 * time.Hour, Bytes: 1 << 30}
		o.Policy.Conflict = SplitConflicts
	})
	h := &recall{scene: w, c: c, rng: rand.New(rand.NewPCG(seed, 4711)), reads: seed%2 == 0} // a script
	for _, dir := range []string{"", "d", "d/s"} {
		h.names(dir)
	}
	h.mark()
	for range 4 + h.rng.IntN(3) {
		for range 2 + h.rng.IntN(5) {
			if did := h.step(); did != "" {
				h.script = append(h.script, did)
				h.later(c, 3*time.Second)
			}
		}
		h.mark()
	}
	for range 3 {
		i := h.rng.IntN(len(h.turns) - 1)
		s := State{Turn: strconv.Itoa(i + 1), Before: true}
		if list, err := h.v.Log(t.Context(), LogFilter{Turn: s.Turn}); err != nil || len(list) == 0 {
			continue // nothing happened in that turn
		}
		h.v.SetActor(Actor{Turn: "restore"})
		if wrong := h.recallTurn(s, h.turns[i]); len(wrong) > 0 {
			t.Fatalf("seed %d, after turn %d:\n\t%s\nscript:\n\t%s\nhistory:\n\t%s", seed, i,
				strings.Join(wrong, "\n\t"), strings.Join(h.script, "\n\t"), strings.Join(h.log(""), "\n\t"))
		}
		h.later(c, 3*time.Second)
	}
}

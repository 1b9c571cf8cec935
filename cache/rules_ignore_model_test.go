package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/ignore"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// ignoreModel is what a working copy should have, and its repository after a
// commit: what it had and what is not ignored.
type ignoreModel struct {
	*world
	r       *rand.Rand
	files   map[string]string
	tracked map[string]bool
	script  []string
	fresh   int
}

// What a commit takes is what git would add, whatever was done in whatever order,
// and whatever was known of the rules meanwhile.
func TestIgnoredModel(t *testing.T) {
	t.Parallel()
	tier.Seeds(t, tier.Pick(5, 25), func(t *testing.T, seed uint64) {
		w := newWorld(t, ignoring)
		m := &ignoreModel{world: w, r: rand.New(rand.NewPCG(seed, 0)), files: map[string]string{}, tracked: map[string]bool{}}
		for range 40 {
			m.step()
		}
		m.commits()
		w.stop()
		assert.Must(t, !t.Failed(), "what was done:", strings.Join(m.script, "\n"))
	})
}

func (m *ignoreModel) note(format string, args ...any) {
	m.script = append(m.script, fmt.Sprintf(format, args...))
}

func (m *ignoreModel) pick(from ...string) string { return from[m.r.IntN(len(from))] }

func (m *ignoreModel) path() string {
	parts := []string{m.pick("a.o", "b.o", "c", "d", "keep.o", ".ignore")}
	for range m.r.IntN(3) {
		parts = append([]string{m.pick("x", "y", "out")}, parts...)
	}
	return strings.Join(parts, "/")
}

func (m *ignoreModel) step() {
	switch m.r.IntN(12) {
	case 0, 1, 2, 3, 4:
		m.write(m.path())
	case 5, 6:
		from, to := m.path(), m.path()
		if _, there := m.files[from]; there && m.parents(to) {
			m.note("mv %s %s", from, to)
			m.ok(m.rename(from, to))
			m.files[to], m.files[from] = m.files[from], ""
			delete(m.files, from)
			if from == to {
				m.files[to] = m.get(to)
			}
		}
	case 7:
		if path := m.path(); m.files[path] != "" {
			m.note("rm %s", path)
			m.ok(m.unlink(path))
			delete(m.files, path)
		}
	case 8:
		m.moveDir()
	case 9:
		if m.r.IntN(2) == 0 {
			m.note("again")
			m.again()
		} else {
			m.note("killed")
			m.killed()
		}
	default:
		m.commits()
	}
}

// parents makes the directories above a path; false when one is a file.
func (m *ignoreModel) parents(path string) bool {
	parts := strings.Split(path, "/")
	for i := 1; i < len(parts); i++ {
		dir := strings.Join(parts[:i], "/")
		if _, file := m.files[dir]; file {
			return false
		}
		if m.walk(dir) == 0 {
			m.mkdir(dir)
		}
	}
	return true
}

func (m *ignoreModel) write(path string) {
	text := fmt.Sprint(len(m.script))
	if strings.HasSuffix(path, ".ignore") {
		text = m.pick("*.o", "out/", "!keep.o", "/x", "x/c\n*.o", "*\n!.ignore", "!*.o\nd", "#")
	}
	if m.parents(path) {
		m.note("put %s %q", path, text)
		m.ok(m.put(path, text))
		m.files[path] = text
	}
}

// moveDir renames a directory to a name that nothing had yet, or that had rules.
// What the repository has of it goes along.
func (m *ignoreModel) moveDir() {
	from := m.pick("x", "y", "out", "x/y", "y/x", "out/x")
	if m.walk(from) == 0 {
		return
	}
	m.fresh++
	to := fmt.Sprintf("%sn%d%s", m.pick("", "y/"), m.fresh, m.pick("", ".o"))
	if strings.HasPrefix(to, "y/") && (m.walk("y") == 0 || strings.HasPrefix(from, "y")) {
		return
	}
	err := m.rename(from, to)
	if m.note("mv %s %s: %v", from, to, err); fs.Errno(err) != 0 {
		return
	}
	for path, text := range m.files {
		if rest, below := strings.CutPrefix(path, from+"/"); below {
			delete(m.files, path)
			m.files[to+"/"+rest] = text
		}
	}
	for path := range m.tracked {
		if rest, below := strings.CutPrefix(path, from+"/"); below {
			delete(m.tracked, path)
			m.tracked[to+"/"+rest] = true
		}
	}
}

// commits commits, and compares.
func (m *ignoreModel) commits() {
	m.Helper()
	m.note("commit")
	var want []string
	for path, text := range m.files {
		parts := strings.Split(path, "/")
		ignored := ignore.Covers(parts, false, func(n int) *ignore.Rules {
			return ignore.Parse([]byte(m.files[strings.Join(append(slices.Clone(parts[:n]), ".ignore"), "/")]))
		})
		if m.tracked[path] || !ignored {
			want = append(want, path+": "+text)
		}
	}
	got, held := m.commit()
	got = slices.DeleteFunc(got, func(line string) bool { return !strings.Contains(line, ": ") })
	slices.Sort(want)
	assert.Must(m, slices.Equal(sorted(got), want) && len(held) == 0, "the repository has", got, "want", want, "held back", held, "what was done:", strings.Join(m.script, "\n"))
	m.tracked = map[string]bool{}
	for _, line := range got {
		path, _, _ := strings.Cut(line, ": ")
		m.tracked[path] = true
	}
	s := m.v.Status()
	assert.Must(m, s.Queued <= 0, s.Queued, "changes wait; what was done:", strings.Join(m.script, "\n"))
}

package providertest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

var modelChecks = []Check{
	{Name: "model/random-calls", Heavy: true, Run: modelRandom},
}

// modelRandom makes random calls on few names and compares each outcome, and the tree, with a
// map. A difference names the seed.
func modelRandom(t T, p providers.Provider) {
	seed := tier.NewSeed()
	m := model{T: t, p: p, random: rand.New(rand.NewPCG(seed, 0)), dir: "run", files: map[string]providers.Info{}, content: map[string]string{}}
	for i := range tier.Pick(60, 200) {
		if what := m.step(i); what != "" {
			t.Fatalf("WSMOUNT_SEED=%d, call %d: %s", seed, i, what)
		}
	}
	m.compare(seed)
}

// model is the expected tree. All names are files in one directory, or one below it.
type model struct {
	T
	p       providers.Provider
	random  *rand.Rand
	dir     string
	files   map[string]providers.Info
	content map[string]string
}

// step makes one call and describes the error in its outcome, "" for none.
func (m *model) step(i int) string {
	name := m.dir + "/" + []string{"a", "b", "c", "sub/a", "sub/b"}[m.random.IntN(5)]
	now, there := m.files[name]
	cond, want := m.condition(now, there)
	if m.random.IntN(3) == 0 {
		if cond.Kind == providers.ConditionAbsent {
			return ""
		}
		return m.delete(name, cond, want, there)
	}
	if errors.Is(want, providers.ErrNotExist) {
		want = providers.ErrConflict // a Write that finds nothing
	}
	content := fmt.Sprint(i % 10)
	info, err := m.p.Write(m.Context(), loc(name), providers.String(content), providers.WriteOptions{If: cond})
	if !errors.Is(err, want) {
		return fmt.Sprintf("write of %s if %+v: got %v, want %v", name, cond, err, want)
	}
	if err == nil {
		m.files[name], m.content[name] = info, content
	}
	return ""
}

// condition is a random one, with the error it should lead to.
func (m *model) condition(now providers.Info, there bool) (providers.Condition, error) {
	switch m.random.IntN(4) {
	case 0:
		if there {
			return providers.IfAbsent(), providers.ErrExist
		}
		return providers.IfAbsent(), nil
	case 1:
		stale := providers.Version{ETag: "never was", Modified: 1, Size: 1}
		if there {
			return providers.IfVersion(stale), providers.ErrConflict
		}
		return providers.IfVersion(stale), providers.ErrNotExist
	case 2:
		if there {
			return providers.IfVersion(now.Version), nil
		}
	}
	return providers.Unconditional(), nil
}

func (m *model) delete(name string, cond providers.Condition, want error, there bool) string {
	err := m.p.Delete(m.Context(), loc(name), providers.DeleteOptions{If: cond})
	if !errors.Is(err, want) {
		return fmt.Sprintf("delete of %s if %+v: got %v, want %v (there: %v)", name, cond, err, want, there)
	}
	if err == nil {
		delete(m.files, name)
		delete(m.content, name)
	}
	return ""
}

// compare compares the whole tree.
func (m *model) compare(seed uint64) {
	var got []string
	for _, dir := range []string{m.dir, m.dir + "/sub"} {
		page, err := m.p.List(m.Context(), loc(dir), providers.ListOptions{})
		if err != nil && !errors.Is(err, providers.ErrNotExist) {
			m.Fatalf("WSMOUNT_SEED=%d: %v", seed, err)
		}
		for _, info := range page.Entries {
			if info.Kind == providers.KindFile {
				got = append(got, info.Locator.String())
				wantContent(m.T, m.p, info.Locator, m.content[info.Locator.String()])
			}
		}
	}
	slices.Sort(got)
	if want := slices.Sorted(maps.Keys(m.files)); !slices.Equal(got, want) {
		m.Errorf("WSMOUNT_SEED=%d: the tree has %q, want %q", seed, got, want)
	}
}

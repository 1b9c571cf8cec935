package project

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/seam"
)

// A busy machine is not a root that is silent.
func init() { looking.patience = assert.Hangs }

// replicated is a backend that promises Sync. It is closed with the test.
type replicated struct{ *seam.Store }

func (replicated) Close() error { return nil }

func (replicated) Capabilities() seam.Capabilities { return seam.Capabilities{Sync: true} }

func newBackend() *seam.Store { return seam.New(memory.New(memory.Options{})) }

func loc(t *testing.T, key string) seam.Locator {
	t.Helper()
	return assert.Of(seam.ParseLocator(key)).OK(t)
}

func put(t *testing.T, b seam.Backend, key, content string) {
	t.Helper()
	assert.OK(t, assert.ErrOf(b.Write(t.Context(), loc(t, key), content)), "write", key)
}

func holds(t *testing.T, b seam.Backend, key, want string) {
	t.Helper()
	assert.Of(b.Read(t.Context(), loc(t, key))).Equal(t, want, key)
}

const registered = "_meta/repos.json"

// The registry is byte for byte what agentm writes.
func TestReposFormat(t *testing.T) {
	b := newBackend()
	list, err := Repos(t.Context(), b)
	assert.OK(t, err)
	assert.Equal(t, len(list), 0, "repositories of a new registry")
	removed, err := Unregister(t.Context(), b, "atlas")
	assert.OK(t, err)
	assert.False(t, removed, "something was removed")
	there, err := b.Exists(t.Context(), loc(t, registered))
	assert.OK(t, err)
	assert.False(t, there, "a registry was made for nothing")

	assert.OK(t, Register(t.Context(), b, Repo{Slug: "atlas", Root: "/home/ann/src/atlas"}))
	assert.OK(t, Register(t.Context(), b, Repo{Slug: "bücher", Root: "/home/ann/\U0001f4da\x7f\"", Wiki: "/w"}))
	assert.OK(t, Register(t.Context(), b, Repo{Slug: "atlas", Root: "/srv/atlas", Wiki: "/srv/wiki"}))
	assert.OK(t, Register(t.Context(), b, Repo{Slug: "atlas", Root: "/srv/atlas"}))
	holds(t, b, registered, `{
  "version": 1,
  "repos": [
    {
      "slug": "atlas",
      "root_path": "/srv/atlas",
      "wiki_path": "/srv/wiki"
    },
    {
      "slug": "b\u00fccher",
      "root_path": "/home/ann/\ud83d\udcda\u007f\"",
      "wiki_path": "/w"
    }
  ]
}
`)
	list, err = Repos(t.Context(), b)
	assert.OK(t, err)
	assert.Slice(t, list, []Repo{{"atlas", "/srv/atlas", "/srv/wiki"}, {"bücher", "/home/ann/\U0001f4da\x7f\"", "/w"}})
	for _, slug := range []string{"atlas", "bücher"} {
		removed, err = Unregister(t.Context(), b, slug)
		assert.OK(t, err)
		assert.True(t, removed, slug, "was not there")
	}
	holds(t, b, registered, "{\n  \"version\": 1,\n  \"repos\": []\n}\n")
}

// What is not known here stays, and where it was.
func TestReposKeep(t *testing.T) {
	b := newBackend()
	put(t, b, registered, `{"note": {"a": [1.50, "é"]}, "repos": [{"host": null, "slug": "atlas", "root_path": "/a"}, {"slug": "b", "root_path": "/b"}]}`)
	assert.OK(t, Register(t.Context(), b, Repo{Slug: "atlas", Root: "/new"}))
	assert.OK(t, assert.ErrOf(Unregister(t.Context(), b, "b")))
	holds(t, b, registered, `{
  "note": {
    "a": [
      1.50,
      "é"
    ]
  },
  "repos": [
    {
      "host": null,
      "slug": "atlas",
      "root_path": "/new"
    }
  ],
  "version": 1
}
`)
}

// A registry that cannot be read is nobody's to replace.
func TestReposDamaged(t *testing.T) {
	for content, want := range map[string]error{
		"": providers.ErrCorrupt, "{": providers.ErrCorrupt, "[]": providers.ErrCorrupt, "null": providers.ErrCorrupt,
		`{"repos": {}}`: providers.ErrCorrupt, `{"repos": ["atlas"]}`: providers.ErrCorrupt, `{"repos": [{"slug": 1}]}`: providers.ErrCorrupt,
		`{"version": 2, "repos": []}`: providers.ErrUnsupported,
	} {
		b := newBackend()
		put(t, b, registered, content)
		assert.Is(t, assert.ErrOf(Repos(t.Context(), b)), want, content)
		if content != `{"repos": [{"slug": 1}]}` { // which only a reader asks for
			assert.Is(t, Register(t.Context(), b, Repo{Slug: "a", Root: "/a"}), want, content)
			assert.Is(t, assert.ErrOf(Unregister(t.Context(), b, "a")), want, content)
		}
		holds(t, b, registered, content)
	}
}

// A slug is one directory.
func TestSlugs(t *testing.T) {
	b := newBackend()
	for _, slug := range []string{"", ".", "..", "a/b", "/a", "a/", `a\b`, "a\x00"} {
		assert.Is(t, Register(t.Context(), b, Repo{Slug: slug, Root: "/a"}), providers.ErrInvalid, slug)
		assert.Is(t, assert.ErrOf(Unregister(t.Context(), b, slug)), providers.ErrInvalid, slug)
	}
	assert.Is(t, Register(t.Context(), b, Repo{Slug: "a"}), providers.ErrInvalid, "no root")
	assert.Is(t, assert.ErrOf(Resolve(t.Context(), b, "src/atlas")), providers.ErrInvalid, "a relative name")
}

// lay makes a tree of files, by their names below its root; one that ends in a slash is a
// directory, and "-> x" in a file's place a symbolic link.
func lay(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	assert.OK(t, err)
	for name, content := range files {
		at := filepath.Join(root, name)
		assert.OK(t, os.MkdirAll(filepath.Dir(at), 0o700))
		to, link := strings.CutPrefix(content, "-> ")
		switch {
		case link:
			err = os.Symlink(to, at)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o700)
		default:
			err = os.WriteFile(at, []byte(strings.ReplaceAll(content, "ROOT", root)), 0o600)
		}
		assert.OK(t, err)
	}
	return root
}

// slugIn is what a directory is resolved to: slug and checkout, or what is wrong.
func slugIn(t *testing.T, b seam.Backend, root, dir string) string {
	t.Helper()
	p, err := Resolve(t.Context(), b, filepath.Join(root, dir))
	var unclear *UnclearError
	switch {
	case errors.As(err, &unclear):
		assert.True(t, unclear.Do != "", "nothing is said to do:", err)
		return "unclear"
	case errors.Is(err, ErrNone):
		return "none"
	}
	assert.OK(t, err, dir)
	at := assert.Of(filepath.Rel(root, p.Root)).OK(t)
	return p.Slug + " " + at
}

const origin = "[core]\n\tbare = false\n[remote \"fork\"]\n\turl = x/no\n[remote \"origin\"]\n\turl = "

// A checkout is of the project that agentm takes it to be of, and of none by its directory's
// name.
func TestSlugOfCheckout(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		dir   string
		want  string
	}{
		"its own word":                     {map[string]string{"a/.harness/project.json": `{"vault_project": " atlas ", "github": {"repo": "x/no"}}`, "a/.git/config": origin + "x/no"}, "a", "atlas a"},
		"its repository at GitHub":         {map[string]string{"a/.harness/project.json": `{"vault_project": " ", "github": {"repo": "acme/atlas.git"}}`, "a/.git/config": origin + "x/no"}, "a", "atlas a"},
		"its origin":                       {map[string]string{"a/.git/config": origin + "https://u:p@git.test/acme/atlas.git/\n"}, "a", "atlas a"},
		"its origin over SSH":              {map[string]string{"a/.git/config": origin + "\"git@git.test:atlas.git\" # ours"}, "a", "atlas a"},
		"a directory in it":                {map[string]string{"a/.git/config": origin + "x/atlas", "a/b/c/": ""}, "a/b/c", "atlas a"},
		"a link to it":                     {map[string]string{"a/.git/config": origin + "x/atlas", "b": "-> a"}, "b", "atlas a"},
		"a repository in it":               {map[string]string{"a/.git/config": origin + "x/atlas", "a/b/.git": "gitdir: ../.git/modules/b", "a/.git/modules/b/config": origin + "x/map"}, "a/b", "map a/b"},
		"a work tree":                      {map[string]string{"a/.git/config": origin + "x/atlas", "a/.git/worktrees/b/commondir": "../..\n", "a/.git/worktrees/b/gitdir": "ROOT/b/.git\n", "b/.git": "gitdir: ROOT/a/.git/worktrees/b\n"}, "b", "atlas b"},
		"a directory":                      {map[string]string{"atlas/": ""}, "atlas", "none"},
		"a repository without an origin":   {map[string]string{"atlas/.git/config": "[core]\n"}, "atlas", "none"},
		"state of its own in a repository": {map[string]string{"a/.git/config": origin + "x/atlas", "a/b/.harness/": ""}, "a/b", "none"},
		"damaged":                          {map[string]string{"a/.harness/project.json": "{", "a/.git/config": origin + "x/atlas"}, "a", "unclear"},
		"a slug that is no text":           {map[string]string{"a/.harness/project.json": `{"vault_project": 1}`}, "a", "unclear"},
		"a slug of two names":              {map[string]string{"a/.harness/project.json": `{"vault_project": "../b"}`}, "a", "unclear"},
	} {
		assert.Equal(t, slugIn(t, newBackend(), lay(t, c.files), c.dir), c.want, name)
	}
}

// Two checkouts of one name have one memory only if they are work trees of one repository, or one
// is not on this machine.
func TestSlugIsOne(t *testing.T) {
	says := func(slug string) string { return `{"vault_project": "` + slug + `"}` }
	root := lay(t, map[string]string{
		"a/app/.git/config": origin + "acme/app", "b/app/.git/config": origin + "other/app", "c/app/.harness/project.json": says("app"), "d/app/": "", "d/app/sub/": "", "link": "-> d/app",
		"a/app/.git/worktrees/w/commondir": "../..", "a/app/.git/worktrees/w/gitdir": "ROOT/w/.git", "w/.git": "gitdir: ROOT/a/app/.git/worktrees/w",
		"forged/.git": "gitdir: ROOT/a/app/.git/worktrees/w", "e/.harness/project.json": says("other"),
	})
	b := newBackend()
	check := func(want map[string]string) {
		t.Helper()
		for dir, slug := range want {
			assert.Equal(t, slugIn(t, b, root, dir), slug, dir)
		}
	}
	check(map[string]string{"a/app": "app a/app", "b/app": "app b/app", "d/app": "none", "w": "app w"}) // before anybody has it
	register := func(slug, dir string) {
		t.Helper()
		assert.OK(t, Register(t.Context(), b, Repo{Slug: slug, Root: dir}))
	}
	register("app", root+"/a/app/")
	register("dir", root+"/link")
	check(map[string]string{"a/app": "app a/app", "b/app": "unclear", "c/app": "unclear", "w": "app w", "forged": "unclear", "d/app": "dir d/app", "d/app/sub": "dir d/app", "link": "dir d/app"})
	register("map", root+"/e")
	check(map[string]string{"e": "unclear"}) // it says another
	register("other", root+"/e")
	check(map[string]string{"e": "other e"})
	register("two", root+"/d/app")
	check(map[string]string{"d/app": "unclear"}) // it says neither
	register("app", "/another/machine/app")
	check(map[string]string{"a/app": "app a/app", "b/app": "app b/app", "c/app": "app c/app"}) // before anybody of this machine has it
	p, err := Resolve(t.Context(), b, root+"/b/app")
	assert.OK(t, err)
	for range 2 {
		assert.OK(t, claim(t.Context(), Own{}, p))
	}
	check(map[string]string{"a/app": "unclear", "b/app": "app b/app", "c/app": "unclear"})
	var unclear *UnclearError
	p.Root = root + "/a/app"
	assert.True(t, errors.As(claim(t.Context(), Own{}, p), &unclear), "a second checkout of this machine has the slug")
	p, err = Named(t.Context(), b, "app")
	assert.OK(t, err)
	assert.Equal(t, p.Root, root+"/b/app")
	list, err := Repos(t.Context(), b)
	assert.OK(t, err)
	assert.Slice(t, list[:2], []Repo{{Slug: "app", Root: "/another/machine/app"}, {Slug: "app", Root: root + "/b/app"}})
}

// However two checkouts of this machine come to be registered with one slug, neither has it until
// a person says which is meant; the other is named then, and refused.
func TestSlugOfTwo(t *testing.T) {
	for name, c := range map[string]struct {
		lay func(claims func(dir string), move, clone func(from, to string))
		a   string // what the first is resolved to then; the second is unclear
	}{
		"moved, and cloned anew at the old place": {func(claims func(string), move, clone func(string, string)) {
			claims("a")
			move("a", "b")
			claims("b")
			clone("b", "a")
		}, "unclear"},
		"on a disk that is mounted later": {func(claims func(string), move, clone func(string, string)) {
			claims("a")
			clone("a", "b")
			move("a", "unmounted")
			claims("b")
			move("unmounted", "a")
		}, "unclear"},
		"registered in the place of another": {func(claims func(string), _, clone func(string, string)) {
			claims("a")
			clone("a", "b")
		}, "app a"},
	} {
		t.Run(name, func(t *testing.T) {
			root, b := lay(t, map[string]string{"a/.git/config": origin + "acme/app"}), newBackend()
			in := func(dir string) string { return filepath.Join(root, dir) }
			c.lay(func(dir string) {
				t.Helper()
				assert.OK(t, claim(t.Context(), Own{}, assert.Of(Resolve(t.Context(), b, in(dir))).OK(t)))
			}, func(from, to string) { assert.OK(t, os.Rename(in(from), in(to))) },
				func(from, to string) { assert.OK(t, os.CopyFS(in(to), os.DirFS(in(from)))) })
			assert.Equal(t, slugIn(t, b, root, "a"), c.a)
			assert.Equal(t, slugIn(t, b, root, "b"), "unclear")
			var unclear *UnclearError
			assert.Equal(t, errors.As(assert.ErrOf(Named(t.Context(), b, "app")), &unclear), c.a == "unclear", "by the slug")

			assert.Of(Own{}.Settle(t.Context(), b, Repo{Slug: "app", Root: in("b")})).Equal(t, []string{in("a")})
			assert.Equal(t, slugIn(t, b, root, "a"), "unclear")
			assert.Equal(t, slugIn(t, b, root, "b"), "app b")
			assert.Of(Repos(t.Context(), b)).Equal(t, []Repo{{Slug: "app", Root: in("b")}})
			p := assert.Of(Resolve(t.Context(), b, in("b"))).OK(t)
			assert.OK(t, claim(t.Context(), Own{}, p))
			p.Root = in("a")
			assert.True(t, errors.As(claim(t.Context(), Own{}, p), &unclear) && strings.Contains(unclear.Do, "repos register app"), "claimed by the other:", unclear)
		})
	}
}

// TestSilentRoots: what never answers is not asked of a checkout that is registered, and
// keeps no other waiting; its own slug it refuses.
func TestSilentRoots(t *testing.T) {
	root := lay(t, map[string]string{"a/.harness/project.json": `{"vault_project": "a"}`, "b/.harness/project.json": `{"vault_project": "b"}`, "c/.harness/project.json": `{"vault_project": "gone"}`})
	b, was := newBackend(), looking
	defer func() { looking = was }()
	assert.OK(t, Register(t.Context(), b, Repo{Slug: "gone", Root: "/net/gone"}))
	assert.OK(t, Register(t.Context(), b, Repo{Slug: "a", Root: root + "/a"}))
	asked := make(chan string, 9)
	looking.patience, looking.at = time.Millisecond, func(name string) seen { asked <- name; select {} }
	assert.Equal(t, slugIn(t, b, root, "a"), "a a")
	assert.Equal(t, len(asked), 0, "looks")
	assert.Equal(t, slugIn(t, b, root, "b"), "b b")
	assert.Equal(t, slugIn(t, b, root, "c"), "unclear")
}

// Who writes state first has the slug, and another checkout is refused before it replaces
// anything.
func TestClaim(t *testing.T) {
	root := lay(t, map[string]string{"a/app/.git/config": origin + "acme/app", "b/app/.git/config": origin + "other/app", "c/": ""})
	b := replicated{newBackend()}
	m := Machine{Config: seam.Config{Err: fs.ErrNotExist}, Memory: func(context.Context) (seam.Backend, error) { return b, nil },
		Checkout: func(string) (seam.Backend, error) { return newBackend(), nil }}
	var found []State
	for _, dir := range []string{"a/app", "b/app"} { // both before either writes
		s := assert.Of(m.State(t.Context(), filepath.Join(root, dir))).OK(t)
		assert.True(t, s.Synced, dir, "is not in memory")
		found = append(found, s)
	}
	assert.OK(t, found[0].Claim(t.Context()))
	assert.OK(t, found[0].Claim(t.Context()))
	var unclear *UnclearError
	err := found[1].Claim(t.Context())
	assert.True(t, errors.As(err, &unclear) && unclear.Do != "", "the second of one name:", err)
	assert.True(t, errors.As(assert.ErrOf(m.State(t.Context(), root+"/b/app")), &unclear), "it finds the first one's state")
	assert.Of(Repos(t.Context(), b)).Equal(t, []Repo{{Slug: "app", Root: root + "/a/app"}})

	s := assert.Of(m.State(t.Context(), root+"/c")).OK(t)
	assert.False(t, s.Synced, "a directory of no project has state in memory")
	assert.OK(t, s.Claim(t.Context()))
}

// Each project keeps to the directory that it has.
func TestLayout(t *testing.T) {
	b := newBackend()
	assert.OK(t, Register(t.Context(), b, Repo{Slug: "atlas", Root: "/src/atlas-2/"}))
	put(t, b, "personal-projects/old/_index.md", "old")
	put(t, b, "projects/new/_index.md", "new")
	for _, key := range []string{"projects/atlas", "personal-projects/atlas", "projects/atlas"} {
		p := assert.Of(Named(t.Context(), b, "atlas")).OK(t)
		assert.Equal(t, p, Project{Slug: "atlas", Locator: loc(t, key), Backend: b, Root: "/src/atlas-2/", Layout: Layout(loc(t, key).Parts()[0])})
		put(t, b, map[string]string{"projects/atlas": "personal-projects/atlas/x", "personal-projects/atlas": "projects/atlas/x"}[key], "x")
	}
	assert.Is(t, assert.ErrOf(Named(t.Context(), b, "other")), providers.ErrNotExist, "one that is not registered")
}

// .project-mode goes first, and needs no memory; then state lies in memory that something
// replicates, and else in the checkout. Memory that is not to be had is an error.
func TestStateRouting(t *testing.T) {
	root := lay(t, map[string]string{".harness/project.json": `{"vault_project": "atlas"}`})
	away := errors.New("the vault is not mounted")
	for name, c := range map[string]struct {
		marker, config string
		memory         seam.Backend // nil: it is not to be had
		want           string
		err            error
	}{
		"replicated":                        {memory: replicated{newBackend()}, want: "memory projects/atlas/_harness"},
		"not replicated":                    {memory: newBackend(), want: "checkout .harness"},
		"the checkout keeps it":             {marker: "Local \n", memory: replicated{newBackend()}, want: "checkout .harness"},
		"the checkout needs no memory":      {marker: "local", want: "checkout .harness"},
		"the machine keeps it":              {config: `{"state_mode": "local"}`, want: "checkout .harness"},
		"the checkout goes before":          {marker: "backend", config: `{"state_mode": "local"}`, memory: replicated{newBackend()}, want: "memory projects/atlas/_harness"},
		"an older name":                     {config: `{"state_mode": "vault"}`, memory: replicated{newBackend()}, want: "memory projects/atlas/_harness"},
		"an older name in the checkout":     {marker: "vault\n", config: `{"state_mode": "local"}`, memory: replicated{newBackend()}, want: "memory projects/atlas/_harness"},
		"a marker without text":             {marker: " \n", config: `{"state_mode": "local"}`, want: "checkout .harness"},
		"memory is away":                    {err: away},
		"memory is away, and asked for":     {config: `{"state_mode": "backend"}`, err: away},
		"a marker that says something else": {marker: "remote", err: providers.ErrInvalid},
		"a mode that is a secret":           {config: `{"state_mode": "https://ann:hunter2@dav.test"}`, err: providers.ErrInvalid},
		"a mode that is none":               {config: `{"state_mode": "remote"}`, err: providers.ErrInvalid},
		"a mode that is no text":            {config: `{"state_mode": 1}`, err: providers.ErrInvalid},
		"a configuration that is damaged":   {config: `{`, err: providers.ErrInvalid},
	} {
		checkout := newBackend()
		if c.marker != "" {
			put(t, checkout, ".harness/.project-mode", c.marker)
		}
		m := Machine{Config: seam.Config{Name: "c.json", Text: []byte(c.config)},
			Memory: func(context.Context) (seam.Backend, error) {
				if c.memory == nil {
					return nil, away
				}
				return c.memory, nil
			},
			Checkout: func(dir string) (seam.Backend, error) {
				assert.Equal(t, dir, root, name)
				return checkout, nil
			}}
		if c.config == "" {
			m.Config.Err = fs.ErrNotExist
		}
		s, err := m.State(t.Context(), root)
		if c.err != nil {
			assert.Is(t, err, c.err, name)
			assert.False(t, strings.Contains(err.Error(), "hunter2"), name, "tells a secret:", err)
			continue
		}
		assert.OK(t, err, name)
		where := map[bool]string{true: "memory", false: "checkout"}[s.Synced]
		assert.Equal(t, where+" "+s.Dir.Key(), c.want, name)
		assert.Equal(t, s.Backend == c.memory, s.Synced, name, "the backend is memory")
		assert.OK(t, s.Close())
	}
}

// A registered project is found by its slug, whatever else its checkout is registered with, and
// its plan lies beside its progress.
func TestStateOfSlug(t *testing.T) {
	b, root := replicated{newBackend()}, lay(t, map[string]string{"src/": "", "link": "-> src"})
	for slug, dir := range map[string]string{"first": "/src", "atlas": "/link", "gone": "/gone"} {
		assert.OK(t, Register(t.Context(), b, Repo{Slug: slug, Root: root + dir}))
	}
	m := Machine{Config: seam.Config{Err: fs.ErrNotExist}, Memory: func(context.Context) (seam.Backend, error) { return b, nil },
		Checkout: func(dir string) (seam.Backend, error) { return newBackend(), assert.ErrOf(os.Stat(dir)) }}
	s := assert.Of(m.State(t.Context(), "atlas")).OK(t)
	assert.Equal(t, s.Root, root+"/src")
	for _, file := range []string{"PLAN.md", "progress.md"} {
		l := assert.Of(s.Dir.Child(file)).OK(t)
		put(t, s.Backend, l.Key(), file)
		holds(t, b, "projects/atlas/_harness/"+file, file)
	}
	assert.Is(t, assert.ErrOf(m.State(t.Context(), "other")), providers.ErrNotExist)
	assert.Is(t, assert.ErrOf(m.State(t.Context(), "gone")), providers.ErrInvalid, "its checkout is not there")
}

// A checkout that this machine has registered and that is gone keeps its slug until a person says
// where it is now, whatever was registered first and by whom; one of another machine keeps it from
// nobody here, and a work tree that was removed does not from its repository.
func TestSlugOfGone(t *testing.T) {
	const one = `{"vault_project": "app"}`
	ctx := t.Context()
	for name, c := range map[string]struct {
		before func(t *testing.T, b seam.Backend, own Own, in func(dir string) string) // a is registered
		want   string                                                                  // of b, when a is not there any more
	}{
		"state was written": {func(*testing.T, seam.Backend, Own, func(string) string) {}, "unclear"},
		"registered by hand": {func(t *testing.T, b seam.Backend, own Own, in func(string) string) {
			assert.OK(t, assert.ErrOf(own.Settle(ctx, b, Repo{Slug: "app", Root: in("link")})))
		}, "unclear"},
		"registered by agentm, and state was written": {func(t *testing.T, b seam.Backend, _ Own, in func(string) string) {
			assert.OK(t, Register(ctx, b, Repo{Slug: "app", Root: in("link")}))
		}, "unclear"},
		"registered behind another machine's": {func(t *testing.T, b seam.Backend, _ Own, in func(string) string) {
			assert.OK(t, Register(ctx, b, Repo{Slug: "app", Root: "/another/machine/app"}))
		}, "unclear"},
	} {
		root := lay(t, map[string]string{"a/.harness/project.json": one, "b/.harness/project.json": one, "link": "-> a"})
		b, kept := replicated{newBackend()}, replicated{newBackend()}
		in := func(dir string) string { return filepath.Join(root, dir) }
		machine := func(own Own) Machine {
			return Machine{Config: seam.Config{Err: fs.ErrNotExist}, Memory: func(context.Context) (seam.Backend, error) { return b, nil }, Own: own,
				Checkout: func(dir string) (seam.Backend, error) { return newBackend(), assert.ErrOf(os.Stat(dir)) }}
		}
		own := Own{Open: func(bool) (seam.Backend, error) { return kept, nil }}
		state := func(m Machine, dir string) string {
			t.Helper()
			s, err := m.State(ctx, in(dir))
			if err == nil {
				err = s.Claim(ctx)
			}
			var unclear *UnclearError
			if errors.As(err, &unclear) {
				assert.Contains(t, unclear.Do, "repos register app", name)
				return "unclear"
			}
			assert.OK(t, err, name, dir)
			return s.project.Slug
		}
		here := machine(own)
		c.before(t, b, own, in)
		assert.Equal(t, state(here, "a"), "app", name)
		assert.OK(t, os.Rename(in("a"), in("moved")))
		registry := assert.Of(b.Read(ctx, loc(t, registered))).OK(t)
		for _, dir := range []string{"b", "moved"} {
			assert.Equal(t, state(here, dir), c.want, name, dir)
		}
		holds(t, b, registered, registry)

		assert.Contains(t, strings.Join(assert.Of(own.Settle(ctx, b, Repo{Slug: "app", Root: in("moved")})).OK(t), " "), root, name)
		assert.Equal(t, state(here, "moved")+" "+state(here, "b"), "app unclear", name)
		assert.Equal(t, len(assert.Of(own.list(ctx)).OK(t)), 1, name, "checkouts that are remembered")
		assert.OK(t, os.Rename(in("moved"), in("a")))
		assert.Equal(t, state(machine(Own{}), "b"), "app", name, "on another machine, which remembers nothing of that")
		assert.OK(t, assert.ErrOf(own.Unregister(ctx, b, "app")))
		assert.OK(t, Register(ctx, b, Repo{Slug: "app", Root: in("moved")})) // by another machine
		assert.Equal(t, state(here, "b"), "app", name, "when the other is unregistered")
	}
}

// A work tree that was removed leaves the slug to its repository, and what cannot be remembered is
// no claim.
func TestSlugOfRemovedWorkTree(t *testing.T) {
	root := lay(t, map[string]string{"a/.git/config": origin + "acme/app", "a/.git/worktrees/w/commondir": "../..", "a/.git/worktrees/w/gitdir": "ROOT/w/.git",
		"w/.git": "gitdir: ROOT/a/.git/worktrees/w", "b/.git/config": origin + "other/app"})
	b, kept := newBackend(), replicated{newBackend()}
	own := Own{Open: func(bool) (seam.Backend, error) { return kept, nil }}
	project := func(dir string) Project { return Project{Slug: "app", Backend: b, Root: filepath.Join(root, dir)} }
	full := errors.New("the disk is full")
	assert.Is(t, claim(t.Context(), Own{Open: func(bool) (seam.Backend, error) { return nil, full }}, project("w")), full)
	assert.OK(t, claim(t.Context(), own, project("w")))
	assert.OK(t, os.RemoveAll(filepath.Join(root, "w")))
	var unclear *UnclearError
	assert.True(t, errors.As(claim(t.Context(), own, project("b")), &unclear), "another repository has the slug")
	for range 2 {
		assert.OK(t, claim(t.Context(), own, project("a")))
	}
	assert.Of(Repos(t.Context(), b)).Equal(t, []Repo{{Slug: "app", Root: root + "/w"}, {Slug: "app", Root: root + "/a"}})
	assert.Equal(t, assert.Of(Named(t.Context(), b, "app")).OK(t).Root, root+"/a")
}

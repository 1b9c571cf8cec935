package project

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/seam"
)

// replicated is a backend that promises Sync.
type replicated struct{ *seam.Store }

func (replicated) Capabilities() seam.Capabilities { return seam.Capabilities{Sync: true} }

func newBackend() *seam.Store { return seam.New(memory.New(memory.Options{})) }

func loc(t *testing.T, key string) seam.Locator {
	t.Helper()
	l, err := seam.ParseLocator(key)
	assert.OK(t, err)
	return l
}

func put(t *testing.T, b seam.Backend, key, content string) {
	t.Helper()
	assert.OK(t, assert.ErrOf(b.Write(t.Context(), loc(t, key), content)), "write", key)
}

func holds(t *testing.T, b seam.Backend, key, want string) {
	t.Helper()
	got, err := b.Read(t.Context(), loc(t, key))
	assert.OK(t, err, "read", key)
	assert.Equal(t, got, want, key)
}

const registered = "_meta/repos.json"

// TestReposFormat: the registry is byte for byte what agentm writes.
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

// TestReposKeep: what is not known here stays, and where it was.
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

// TestReposDamaged: a registry that cannot be read is nobody's to replace.
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

// TestSlugs: a slug is one directory.
func TestSlugs(t *testing.T) {
	b := newBackend()
	for _, slug := range []string{"", ".", "..", "a/b", "/a", "a/", `a\b`, "a\x00"} {
		assert.Is(t, Register(t.Context(), b, Repo{Slug: slug, Root: "/a"}), providers.ErrInvalid, slug)
		assert.Is(t, assert.ErrOf(Unregister(t.Context(), b, slug)), providers.ErrInvalid, slug)
	}
	assert.Is(t, Register(t.Context(), b, Repo{Slug: "a"}), providers.ErrInvalid, "no root")
	assert.Is(t, assert.ErrOf(Resolve(t.Context(), b, "/")), providers.ErrInvalid, "the root directory")
	assert.Is(t, assert.ErrOf(Resolve(t.Context(), b, "src/atlas")), providers.ErrInvalid, "a relative name")
}

// TestResolve: a project has the slug that it is registered with, and lies where the others
// of this memory do.
func TestResolve(t *testing.T) {
	b := newBackend()
	assert.OK(t, Register(t.Context(), b, Repo{Slug: "atlas", Root: "/home/ann/src/atlas-2/"}))
	for root, want := range map[string]Project{
		"/home/ann/src/./atlas-2": {Slug: "atlas", Locator: loc(t, "projects/atlas"), Root: "/home/ann/src/atlas-2", Layout: Current},
		"/home/ann/src/other":     {Slug: "other", Locator: loc(t, "projects/other"), Root: "/home/ann/src/other", Layout: Current},
	} {
		want.Backend = b
		got, err := Resolve(t.Context(), b, root)
		assert.OK(t, err)
		assert.Equal(t, got, want, root)
	}
	p, err := Named(t.Context(), b, "atlas")
	assert.OK(t, err)
	assert.Equal(t, p.Root, "/home/ann/src/atlas-2/")
	assert.Is(t, assert.ErrOf(Named(t.Context(), b, "other")), providers.ErrNotExist, "one that is not registered")

	put(t, b, "personal-projects/atlas/_index.md", "old")
	p, err = Named(t.Context(), b, "atlas")
	assert.OK(t, err)
	assert.Equal(t, p.Locator, loc(t, "personal-projects/atlas"))
	assert.Equal(t, p.Layout, Legacy)
	put(t, b, "projects/new/_index.md", "new")
	p, err = Named(t.Context(), b, "atlas")
	assert.OK(t, err)
	assert.Equal(t, p.Layout, Current)
}

// TestStateRouting: .project-mode goes first, and needs no memory; then state lies in memory
// that something replicates, and else in the checkout. Memory that is not to be had is an
// error.
func TestStateRouting(t *testing.T) {
	const root = "/home/ann/src/atlas"
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
			continue
		}
		assert.OK(t, err, name)
		where := map[bool]string{true: "memory", false: "checkout"}[s.Synced]
		assert.Equal(t, where+" "+s.Dir.Key(), c.want, name)
		assert.Equal(t, s.Backend == c.memory, s.Synced, name, "the backend is memory")
		assert.OK(t, s.Close())
	}
}

// TestStateOfSlug: a registered project is found by its slug, and its plan lies beside its
// progress.
func TestStateOfSlug(t *testing.T) {
	b, checkout := replicated{newBackend()}, newBackend()
	assert.OK(t, Register(t.Context(), b, Repo{Slug: "atlas", Root: "/src/atlas-2"}))
	m := Machine{Config: seam.Config{Err: fs.ErrNotExist}, Memory: func(context.Context) (seam.Backend, error) { return b, nil },
		Checkout: func(dir string) (seam.Backend, error) { return checkout, assert.ErrOf(fmt.Sscanf(dir, "/src/atlas-2")) }}
	s, err := m.State(t.Context(), "atlas")
	assert.OK(t, err)
	for _, file := range []string{"PLAN.md", "progress.md"} {
		l, err := s.Dir.Child(file)
		assert.OK(t, err)
		put(t, s.Backend, l.Key(), file)
		holds(t, b, "projects/atlas/_harness/"+file, file)
	}
	assert.Is(t, assert.ErrOf(m.State(t.Context(), "other")), providers.ErrNotExist)
	assert.False(t, strings.Contains(s.Root, "other"), s.Root)
}

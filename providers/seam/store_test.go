package seam_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/seamtest"
)

// On stores that differ in what directories they have.
func TestContract(t *testing.T) {
	for name, opts := range map[string]memory.Options{
		"plain":      {},
		"no-dirs":    {Without: providers.Capabilities{EmptyDirs: true}},
		"implied":    {ImpliedDirs: true},
		"one-a-page": {PageSize: 1},
	} {
		t.Run(name, func(t *testing.T) {
			seamtest.Run(t, func(providertest.T) seam.Backend {
				p := memory.New(opts)
				return seamtest.Shared(func() seam.Conditional { return seam.New(p) })
			})
		})
	}
}

func at(t *testing.T, key string) seam.Locator {
	t.Helper()
	return assert.Of(seam.ParseLocator(key)).OK(t)
}

func TestLocator(t *testing.T) {
	l := at(t, "/projects//atlas/./plan.md")
	assert.Equal(t, l.Key(), "projects/atlas/plan.md")
	assert.Equal(t, l.String(), l.Key())
	assert.Equal(t, l.Name(), "plan.md")
	assert.Slice(t, l.Parts(), []string{"projects", "atlas", "plan.md"})
	assert.Equal(t, l.Place(), providers.MustLocator("projects/atlas/plan.md"))
	assert.Equal(t, map[seam.Locator]int{l: 1}[at(t, "projects/atlas/plan.md")], 1, "as a key of a map")
	for outer, within := range map[string]bool{"": true, "projects": true, "projects/atlas/plan.md": true, "project": false, "projects/atlas/plan.md/x": false} {
		assert.Equal(t, l.Within(at(t, outer)), within, "within", outer)
	}
	root := at(t, "")
	assert.Equal(t, root, seam.Locator{}, "the root")
	assert.Equal(t, root.Name(), "")
	assert.Equal(t, len(root.Parts()), 0)
	_, err := l.Child("..", "x")
	assert.Contains(t, err.Error(), `"../x" is no locator: `)
	var invalid *seam.InvalidLocatorError
	assert.True(t, errors.As(err, &invalid) && invalid.Key == "../x", "child that leads upwards:", err)
}

func TestCapabilities(t *testing.T) {
	c := assert.Of(seam.ParseCapabilities("sync, encryption,")).OK(t)
	assert.Equal(t, c, seam.Capabilities{Sync: true, Encryption: true})
	assert.Equal(t, c.String(), "encryption,sync")
	assert.Slice(t, seam.Capabilities{Sync: true, ConflictFiles: true}.Missing(c), []string{"encryption"})
	_, err := seam.ParseCapabilities("sync,speed")
	assert.Is(t, err, providers.ErrInvalid)
	assert.Contains(t, err.Error(), `no capability "speed", only concurrent_writers, conflict_files, encryption, sync`)
	assert.Of(seam.ParseCapabilities("")).Equal(t, seam.Capabilities{})
}

// early tells the new version of what is read before it sends the new content: answers times.
type early struct {
	*memory.Provider
	answers int
	old     string
}

func (e *early) Read(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
	c, err := e.Provider.Read(ctx, l, o)
	if e.answers--; err == nil && e.answers >= 0 {
		err, c.Body = c.Body.Close(), io.NopCloser(strings.NewReader(e.old))
	}
	return c, err
}

// Old content that comes with the version of the new is not taken for that, and replaces nothing.
func TestDigestOfWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, l := &early{memory.New(memory.Options{}), 0, "old"}, at(t, "f")
		s := seam.New(p)
		assert.OK(t, assert.ErrOf(s.Write(t.Context(), l, "new")))
		p.answers = 3
		assert.Of(s.Read(t.Context(), l)).Equal(t, "new")
		p.answers = 3
		assert.Is(t, assert.ErrOf(s.WriteIf(t.Context(), l, seam.ETagOf("old"), "lost")), providers.ErrConflict)
		p.answers = 1000
		assert.Is(t, assert.ErrOf(s.WriteIf(t.Context(), l, seam.ETagOf("old"), "lost")), providers.ErrCorrupt)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		assert.Is(t, assert.ErrOf(s.Read(ctx, l)), context.DeadlineExceeded)
		p.answers = 0
		assert.Of(s.Read(t.Context(), l)).Equal(t, "new")
	})
}

// promising is a provider that promises what no store here does.
type promising struct{ *memory.Provider }

func (promising) Capabilities() providers.Capabilities {
	return providers.Capabilities{EmptyDirs: true, ConflictFiles: true, Encryption: true, Sync: true}
}

// TestPromisesOfTheProvider are those of the backend.
func TestPromisesOfTheProvider(t *testing.T) {
	p := memory.New(memory.Options{})
	assert.Equal(t, seam.New(p).Capabilities(), seam.Capabilities{}, "what lies in one process has no writers in others")
	assert.Equal(t, seam.New(promising{p}).Capabilities(), seam.Capabilities{ConflictFiles: true, Encryption: true, Sync: true})
}

// Attributes and metadata that others stored with a file stay, but for the time, which is the new
// content's.
func TestWriteKeepsWhatIsStored(t *testing.T) {
	p := memory.New(memory.Options{})
	l, old := at(t, "run.sh"), time.Unix(1, 0)
	_, err := p.Write(t.Context(), l.Place(), providers.String("old"), providers.WriteOptions{
		If: providers.IfAbsent(), Metadata: map[string]string{"k": "v"},
		Attr: providers.Attr{Valid: providers.AttrMode | providers.AttrModTime, Mode: 0o700, ModTime: old},
	})
	assert.OK(t, err)
	assert.OK(t, assert.ErrOf(seam.New(p).Write(t.Context(), l, "new")))
	info := assert.Of(p.Stat(t.Context(), l.Place())).OK(t)
	assert.True(t, info.Attr.Mode == 0o700 && info.Metadata["k"] == "v" && !info.ModTime().Equal(old), "after the write:", info)
}

// TestSymbolicLinks are listed and described, and neither read nor replaced.
func TestSymbolicLinks(t *testing.T) {
	p := memory.New(memory.Options{})
	b, l := seam.New(p), at(t, "link")
	_, err := p.Write(t.Context(), l.Place(), providers.String("target"), providers.WriteOptions{If: providers.IfAbsent(), Kind: providers.KindSymlink})
	assert.OK(t, err)
	assert.Is(t, assert.ErrOf(b.Read(t.Context(), l)), providers.ErrUnsupported, "read")
	assert.Is(t, assert.ErrOf(b.Write(t.Context(), l, "x")), providers.ErrUnsupported, "write")
	assert.Of(b.List(t.Context(), at(t, ""))).Equal(t, []seam.Locator{l})
	assert.Equal(t, assert.Of(p.Stat(t.Context(), l.Place())).OK(t).Kind, providers.KindSymlink)
}

// TestNamesOfOthers that no Locator has are told of, beside all that is listed.
func TestNamesOfOthers(t *testing.T) {
	p := memory.New(memory.Options{})
	for _, name := range []string{`d/a\b`, "d/c", "d/a"} {
		_, err := p.Write(t.Context(), providers.MustLocator(name), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()})
		assert.OK(t, err)
	}
	var unnamed *seam.UnnamedError
	children, err := seam.New(p).List(t.Context(), at(t, "d"))
	assert.Slice(t, children, []seam.Locator{at(t, "d/a"), at(t, "d/c")})
	assert.Is(t, err, providers.ErrUnsupported)
	if assert.True(t, errors.As(err, &unnamed), "list:", err); unnamed != nil {
		assert.Slice(t, unnamed.Names, []string{`a\b`})
		assert.Contains(t, err.Error(), `"a\\b"`)
	}
}

// What others wrote and is no text is not handed out as text.
func TestNoText(t *testing.T) {
	p := memory.New(memory.Options{})
	_, err := p.Write(t.Context(), providers.MustLocator("f"), providers.String("\ufffd\xfe"), providers.WriteOptions{If: providers.IfAbsent()})
	assert.OK(t, err)
	var text *seam.TextError
	_, err = seam.New(p).Read(t.Context(), at(t, "f"))
	assert.True(t, errors.As(err, &text) && text.Offset == 3, "read:", err)
}

// Every change is refused with the code, also where directories would only be remembered.
func TestReadOnly(t *testing.T) {
	for _, without := range []providers.Capabilities{{}, {EmptyDirs: true}} {
		p := memory.New(memory.Options{Without: without})
		b := seam.New(providers.ReadOnly(p, providers.ReadOnlyOptions{}))
		for verb, err := range map[string]error{
			"write": assert.ErrOf(b.Write(t.Context(), at(t, "f"), "x")), "mkdir": assert.ErrOf(b.Mkdir(t.Context(), at(t, "d"))),
		} {
			assert.Is(t, err, providers.ErrReadOnly, verb)
			assert.Equal(t, providers.KindOf(err).Code, "storage_read_only", verb)
		}
		assert.Equal(t, len(assert.Of(b.List(t.Context(), at(t, ""))).OK(t)), 0, "children")
	}
}

// That storage is away is no absence.
func TestUnreachable(t *testing.T) {
	away := func(context.Context, providers.Method, providers.Locator) error { return providers.ErrUnavailable }
	b := seam.New(memory.New(memory.Options{Hook: away}))
	l := at(t, "f")
	for verb, err := range map[string]error{
		"exists": assert.ErrOf(b.Exists(t.Context(), l)), "list": assert.ErrOf(b.List(t.Context(), l)), "info": assert.ErrOf(b.Info(t.Context(), l)),
		"read": assert.ErrOf(b.Read(t.Context(), l)), "write": assert.ErrOf(b.Write(t.Context(), l, "x")), "mkdir": assert.ErrOf(b.Mkdir(t.Context(), l)),
	} {
		assert.Is(t, err, providers.ErrUnavailable, verb)
	}
}

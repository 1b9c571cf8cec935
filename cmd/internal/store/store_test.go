package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/project"
	"github.com/wsmount/wsmount/providers/seam/seamtest"
)

func newBackend() *seam.Store { return seam.New(memory.New(memory.Options{})) }

func loc(t *testing.T, key string) seam.Locator {
	t.Helper()
	return assert.Of(seam.ParseLocator(key)).OK(t)
}

// A script can tell a vault that is away from a wrong configuration.
func TestCodes(t *testing.T) {
	for reason, want := range map[seam.Reason]exit.Code{
		seam.VaultAbsent: exit.Unreachable, seam.Silent: exit.Unreachable, seam.NoVaultPath: exit.Manifest, seam.ConfigCorrupt: exit.Manifest, seam.ConfigNoString: exit.Manifest,
		seam.NotRegistered: exit.Failed, seam.PersonalSpace: exit.Denied, seam.HostPlace: exit.Denied, seam.Unusable: exit.Failed, seam.CapabilityMismatch: exit.Failed,
	} {
		assert.Equal(t, CodeOf(reason), want, string(reason))
	}
}

// Every error has a code and says what to do; what was told already stays.
func TestRefusals(t *testing.T) {
	assert.Is(t, Refusal(nil), nil)
	told := exit.New(exit.Unsafe, "told").Hint("do it")
	assert.Equal(t, Refusal(fmt.Errorf("more: %w", told)).Error(), "more: told")
	for err, want := range map[error]exit.Code{
		providers.ErrNotExist: exit.Unresolvable, providers.ErrReadOnly: exit.Denied, providers.ErrPermission: exit.Denied, providers.ErrConflict: exit.Conflict,
		providers.ErrUnavailable: exit.Unreachable, providers.ErrInvalid: exit.Usage, providers.ErrCorrupt: exit.Failed, errors.New("other"): exit.Failed,
		&seam.InvalidLocatorError{Key: "..", Err: providers.ErrInvalid}: exit.Usage, &seam.TextError{}: exit.Failed,
		&project.ModeError{}: exit.Manifest, &project.UnclearError{Do: "name it"}: exit.Manifest, &seam.SelectionError{Reason: seam.VaultAbsent, Do: "mount it", Err: providers.ErrUnavailable}: exit.Unreachable,
		errors.Join(seam.Changed(seam.None), providers.ErrClosed): exit.Conflict, &seam.ApartError{Do: "use another"}: exit.Denied,
	} {
		var e *exit.Error
		assert.True(t, errors.As(Refusal(err), &e) && e.Advice != "", err, "has no advice")
		assert.Equal(t, e.Code, want, err)
	}
	assert.Contains(t, Refusal(providers.ErrReadOnly).Error(), "storage_read_only: ")
}

// A variable that is not set makes no write one without a condition.
func TestEmptyFlag(t *testing.T) {
	for _, v := range Verbs() {
		for _, f := range v.Flags {
			given := func(name string) bool { return name == f.Name }
			_, _, err := v.Do(t.Context(), Call{Args: []string{"x"}, Flag: func(string) string { return "" }, Given: given})
			var e *exit.Error
			assert.True(t, errors.As(err, &e) && e.Code == exit.Usage && e.What == "--"+f.Name+" has no value", v.Name, f.Name, err)
		}
	}
}

// A change that a signal comes into ends as it would be cancelled, so that it lets go of what it
// holds, and the program with it.
func TestInterrupted(t *testing.T) {
	backends := &seam.Registry{}
	assert.OK(t, backends.Register("test", seam.Class{Open: func(context.Context, seam.Settings) (seam.Backend, error) {
		return seam.New(memory.New(memory.Options{Hook: func(ctx context.Context, m providers.Method, _ providers.Locator) error {
			if !m.Mutates() {
				return nil
			}
			assert.OK(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
			<-ctx.Done()
			return ctx.Err()
		}})), nil
	}}))
	for _, v := range Verbs() {
		if !v.Changes || v.Name == "personal-write" || v.Name == "state write" {
			continue
		}
		flags := map[string]string{backendFlag: "test", rootFlag: "/src"}
		if v.Name == "repos unregister" {
			continue // of an empty registry it changes nothing
		}
		_, _, err := v.Do(t.Context(), Call{Args: []string{"x"}, Flag: func(name string) string { return flags[name] }, Input: strings.NewReader("x"), Host: Host{Backends: backends, StateRoot: func() (string, error) { return t.TempDir(), nil }}})
		assert.Is(t, err, context.Canceled, v.Name)
		var e *exit.Error
		assert.True(t, errors.As(Refusal(err), &e) && e.Advice != "", v.Name, "says nothing to do:", err)
	}
}

// An answer that holds is given although something else has failed at the end, and one that does
// not is not.
func TestClosing(t *testing.T) {
	failed := errors.New("not sent")
	for _, c := range []struct {
		err                    error
		reads, shown, returned bool
	}{{nil, false, false, true}, {errors.New("not read"), false, false, false}, {nil, true, true, false}, {errors.New("not read"), true, false, false}} {
		shown, closed := false, false
		call := Call{reads: c.reads, Show: func(Answer) error { shown = !closed; return nil }}
		answer, _, got := call.closing(closer(func() error { closed = true; return failed }), func() (Answer, exit.Code, error) { return content{}, 0, c.err })
		assert.Is(t, got, failed)
		assert.True(t, closed && shown == c.shown && (answer != nil) == c.returned, c, "shown before the end:", shown, answer)
	}
}

type closer func() error

func (c closer) Close() error { return c() }

// What a mount refuses is refused, and nothing reaches the store.
func TestGuard(t *testing.T) {
	exclude := assert.Of(mountspec.CompileExclude([]string{"*.local", "build/"})).OK(t)
	below := newBackend()
	for _, key := range []string{"a.local", "build/x", "kept/build"} {
		assert.OK(t, assert.ErrOf(below.Write(t.Context(), loc(t, key), "others'")))
	}
	g := &guarded{Backend: below, governing: []string{"WORKSPACE.md", ".agentproto/STORAGE.md"}, exclude: exclude}
	for key, want := range map[string]error{
		"WORKSPACE.md": providers.ErrReadOnly, "WORKSPACE.md/x": providers.ErrReadOnly, ".agentproto": providers.ErrReadOnly,
		".agentproto/STORAGE.md": providers.ErrReadOnly, "b.local": providers.ErrPermission, "build/y": providers.ErrPermission,
	} {
		for _, err := range []error{assert.ErrOf(g.Write(t.Context(), loc(t, key), "x")), assert.ErrOf(g.WriteIf(t.Context(), loc(t, key), seam.None, "x"))} {
			assert.Is(t, err, want, "write", key)
		}
		assert.False(t, assert.Of(below.Exists(t.Context(), loc(t, key))).OK(t), key, "was written")
	}
	assert.Is(t, assert.ErrOf(g.Mkdir(t.Context(), loc(t, "WORKSPACE.md"))), providers.ErrReadOnly, "mkdir")
	assert.OK(t, assert.ErrOf(g.Mkdir(t.Context(), loc(t, ".agentproto"))))
	assert.OK(t, assert.ErrOf(g.Write(t.Context(), loc(t, ".agentproto/README.md"), "x")))

	assert.Is(t, assert.ErrOf(g.Read(t.Context(), loc(t, "a.local"))), providers.ErrNotExist)
	assert.Is(t, assert.ErrOf(g.Info(t.Context(), loc(t, "build"))), providers.ErrNotExist)
	assert.False(t, assert.Of(g.Exists(t.Context(), loc(t, "a.local"))).OK(t), "what is excluded is there")
	children := assert.Of(g.List(t.Context(), seam.Locator{})).OK(t)
	assert.Slice(t, children, []seam.Locator{loc(t, ".agentproto"), loc(t, "kept")})
	children = assert.Of(g.List(t.Context(), loc(t, "kept"))).OK(t)
	assert.Slice(t, children, []seam.Locator{loc(t, "kept/build")})

	g.readOnly = "policy"
	for _, err := range []error{assert.ErrOf(g.Write(t.Context(), loc(t, "a"), "x")), assert.ErrOf(g.WriteIf(t.Context(), loc(t, "a"), seam.None, "x")), assert.ErrOf(g.Mkdir(t.Context(), loc(t, "a")))} {
		assert.Is(t, err, providers.ErrReadOnly)
		assert.Contains(t, err.Error(), "policy")
	}
}

// newParts is a workspace with another at libs/one.
func newParts(t *testing.T, root, inner seam.Backend) *parts {
	opener := func(b seam.Backend) func() (seam.Backend, error) {
		return func() (seam.Backend, error) { return b, nil }
	}
	return &parts{close: func() error { return nil }, all: []*part{
		{open: opener(root)}, {at: loc(t, "libs/one"), open: opener(inner)}}}
}

// listed is a backend with names in its root.
type listed struct {
	seam.Backend
	names []string
}

func (l listed) List(_ context.Context, at seam.Locator) ([]seam.Locator, error) {
	return seam.Children(at, l.names)
}

// A workspace with others in it is a backend like any.
func TestPartsContract(t *testing.T) {
	seamtest.Run(t, func(providertest.T) seam.Backend {
		opened := newBackend()
		return seamtest.Shared(func() seam.Conditional {
			return &parts{close: func() error { return nil }, all: []*part{{open: func() (seam.Backend, error) {
				return &guarded{Backend: opened, exclude: &mountspec.ExcludeSet{}}, nil
			}}}}
		})
	})
}

// Each name is the part's that it lies in, and the way to a part is a directory.
func TestParts(t *testing.T) {
	exclude := assert.Of(mountspec.CompileExclude([]string{"*.md"})).OK(t)
	root, inner := newBackend(), newBackend()
	p := newParts(t, root, inner)
	for _, key := range []string{"a.md", "libs/one/a.md", "libs/two.md"} {
		got := assert.Of(p.Write(t.Context(), loc(t, key), key)).OK(t)
		assert.Equal(t, got, loc(t, key))
		assert.Of(p.Read(t.Context(), got)).Equal(t, key)
	}
	assert.Of(inner.Read(t.Context(), loc(t, "a.md"))).Equal(t, "libs/one/a.md")
	for key, want := range map[string]string{"": "a.md libs", "libs": "libs/one libs/two.md", "libs/one": "libs/one/a.md"} {
		children := assert.Of(p.List(t.Context(), loc(t, key))).OK(t)
		var got []string
		for _, c := range children {
			got = append(got, c.Key())
		}
		assert.Equal(t, strings.Join(got, " "), want, "children of", key)
	}
	odd := &guarded{Backend: listed{inner, []string{"a.md", `b\c`, "d"}}, exclude: exclude}
	answer, _, err := list(t.Context(), newParts(t, odd, inner), seam.Locator{}, Call{})
	assert.OK(t, err, "a name that no locator has")
	assert.Equal(t, fmt.Sprint(answer.(listing).Children, answer.(listing).Unnamed, len(answer.(listing).Notes())), `[d libs] [b\c] 1`)
	assert.Is(t, assert.ErrOf(p.Write(t.Context(), loc(t, "libs"), "x")), providers.ErrIsDir)
	assert.Is(t, assert.ErrOf(p.Write(t.Context(), loc(t, "libs/one"), "x")), providers.ErrIsDir)

	p = newParts(t, newBackend(), newBackend())
	assert.Of(p.Info(t.Context(), loc(t, "libs"))).Equal(t, seam.Info{Locator: loc(t, "libs"), IsDir: true})
	assert.True(t, assert.Of(p.Exists(t.Context(), loc(t, "libs"))).OK(t), "the way to a part is not there")
	assert.Of(p.Mkdir(t.Context(), loc(t, "libs"))).Equal(t, loc(t, "libs"))
}

// A place in a mount leads to the directories behind it, and a space of the operator's own is none
// that it may lead to.
func TestBehind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ws/d", "lib", "Vault/Agent", "Vault/Diary"} {
		assert.OK(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	h := Host{Settings: seam.Settings{Personal: func() ([]seam.Space, error) {
		return []seam.Space{{Dir: in("Vault"), Memory: in("Vault/Agent")}}, nil
	}}}
	for _, c := range []struct {
		place   string
		root    string // what the mount is of
		nested  string // and its part at /d/lib
		behind  []string
		refused bool
	}{
		{"/mnt", "ws", "lib", []string{"ws", "lib"}, false}, {"/mnt/d/lib/x", "ws", "lib", []string{"lib/x"}, false}, {"/mnt/d", "ws", "Vault/Agent", []string{"ws/d", "Vault/Agent"}, false},
		{"/mnt/d", "ws", "Vault/Diary", []string{"ws/d", "Vault/Diary"}, true}, {"/mnt/e", "ws", "Vault/Diary", []string{"ws/e"}, false},
		{"/mnt/Diary/x", "Vault", "lib", []string{"Vault/Diary/x"}, true}, {"/mnt/Agent", "Vault", "lib", []string{"Vault/Agent"}, false}, {"/mnt", ".", "lib", []string{".", "lib"}, true},
	} {
		m := &mounted{Conditional: newBackend(), root: "/mnt", dir: c.place, parts: []control.Part{{At: "/", Path: in(c.root)}, {At: "/d/lib", Path: in(c.nested)}, {At: "/bucket", Copy: &control.Copy{}}}}
		var want []string
		for _, name := range c.behind {
			want = append(want, in(name))
		}
		at := assert.Of(m.at(m.dir)).OK(t)
		assert.Slice(t, m.parts.behind(at), want, c.place, "of", c.root)
		var apart *seam.ApartError
		assert.Equal(t, errors.As(h.apart(m), &apart), c.refused, c.place, "of", c.root, "and", c.nested)
	}
}

// TestPromisesOfMounts: what replicates a store, or leaves copies there, does so through a
// mount too, and no promise is made that the working copy does not keep.
func TestPromisesOfMounts(t *testing.T) {
	for want, parts := range map[string][]control.Part{
		"concurrent_writers,conflict_files,sync": {{At: "/", Provider: "vault", Mode: "canonical", Copy: &control.Copy{}}},
		"conflict_files,sync":                    {{At: "/", Provider: "vault", Mode: "canonical", Copy: &control.Copy{WriteBack: true}}},
		"conflict_files":                         {{At: "/", Provider: "vault", Copy: &control.Copy{}}, {At: "/d", Provider: "github", Mode: "pull-push", Copy: &control.Copy{}}},
		"":                                       {{At: "/", Provider: "vault", Copy: &control.Copy{}}, {At: "/d", Provider: "local-fs"}},
	} {
		m := &mounted{Conditional: newBackend(), parts: parts, root: "/mnt", dir: "/mnt/d"}
		assert.Equal(t, m.Capabilities().String(), want)
	}
}

// What is required is required of each part that is in reach, in a mount or not, and the refusal
// says of which it is missing.
func TestPromisesOfParts(t *testing.T) {
	vault, bucket := control.Part{At: "/", Provider: "vault", Mode: "canonical", Copy: &control.Copy{}}, control.Part{At: "/d/lib", Provider: "cloud-bucket", Copy: &control.Copy{}}
	gone := control.Part{At: "/d/gone", Unavailable: "it is away"}
	in := func(dir string) divided {
		return &mounted{Conditional: newBackend(), parts: []control.Part{vault, bucket, gone}, root: "/mnt", dir: dir}
	}
	p := newParts(t, newBackend(), newBackend())
	p.all[0].has, p.all[1].has = &seam.Capabilities{Sync: true}, &seam.Capabilities{}
	p.all = append(p.all, &part{at: loc(t, "gone"), absent: true, open: func() (seam.Backend, error) { return nil, errors.New("it was opened") }})
	for _, c := range []struct {
		b     divided
		lacks string
	}{{in("/mnt"), "/d/lib"}, {in("/mnt/d"), "/d/lib"}, {in("/mnt/d/lib/x"), "/d/lib"}, {in("/mnt/e"), ""}, {p, "/libs/one"}} {
		err := checkPromises("@a/b", c.b, seam.Capabilities{Sync: true})
		assert.Equal(t, err != nil, c.lacks != "", c.lacks)
		if err != nil {
			assert.Contains(t, err.Error(), "of @a/b the part at "+c.lacks+" does not promise sync")
		}
		assert.OK(t, checkPromises("@a/b", c.b, seam.Capabilities{}))
	}
}

// A mount serves the workspaces that it is of, and whatever has a working copy serves that; a
// directory has other rules in the mount of another, or with another workspace in it.
func TestShown(t *testing.T) {
	tree := &daemon.Tree{Sources: []daemon.Source{{Name: "@a/x", Path: "/data"}, {Name: "@a/lib", At: "lib", Path: "/lib"}}}
	own := control.Part{At: "/", Name: "@a/x", Path: "/data"}
	nested := control.Part{At: "/x", Name: "@a/x", Path: "/data"}
	with := func(p control.Part, change func(p *control.Part)) control.Part { change(&p); return p }
	copied := with(own, func(p *control.Part) { p.Copy = &control.Copy{StateDir: "/state/a/x/1"} })
	at := func(at string) control.Part { return control.Part{At: at, Name: "@a/other"} }
	for name, c := range map[string]struct {
		part   control.Part
		beside []control.Part
		cached bool
		shows  bool
		stray  string
	}{
		"its own":                      {part: own, shows: true},
		"its own, with more in it":     {part: own, beside: []control.Part{at("/more")}, shows: true},
		"another's":                    {part: with(own, func(p *control.Part) { p.Name = "@a/y" })},
		"of another directory":         {part: with(own, func(p *control.Part) { p.Path = "/data/d" })},
		"of a directory that has gone": {part: with(own, func(p *control.Part) { p.Moved = "/elsewhere" })},
		"not there":                    {part: with(own, func(p *control.Part) { p.Unavailable = "it is away" })},
		"a part":                       {part: nested, beside: []control.Part{at("/"), at("/x/lib"), at("/xy")}, shows: true},
		"a part with another in it":    {part: nested, beside: []control.Part{at("/"), at("/x/lib/z")}, stray: "/x/lib/z"},
		"a part with one that is away": {part: nested, beside: []control.Part{{At: "/x/z", Unavailable: "it is away"}}, shows: true},
		"the copy":                     {part: copied, cached: true, shows: true},
		"another copy of the same": {part: with(copied, func(p *control.Part) { p.Copy = &control.Copy{StateDir: "/state/a/x/1.second"} }),
			cached: true, shows: true},
		"another's copy":       {part: with(copied, func(p *control.Part) { p.Copy = &control.Copy{StateDir: "/state/a/x/12"} }), cached: true},
		"the store of a vault": {part: own, cached: true},
	} {
		s := tree.Sources[0]
		s.Cached = c.cached
		m := shown{mount: &state.Record{Mountpoint: "/mnt", Device: "0:50"}, at: control.Status{State: control.Ready, Parts: append(c.beside, c.part)}, part: c.part}
		m.look(mountpoint.Table{{Path: "/"}, {Path: "/mnt", Dev: "0:50", Type: mountpoint.FSType}})
		assert.Equal(t, m.shows(tree, s, "/state/a/x/1"), c.shows, name)
		err := m.check(tree, s)
		assert.Equal(t, err != nil, c.stray != "", name, err)
		if err != nil {
			assert.Contains(t, err.Error(), "is mounted at /x of another workspace, with a third one in it, at "+c.stray, name)
		}
		for _, over := range []mountpoint.Table{nil, {{Path: "/mnt", Dev: "0:51", Type: mountpoint.FSType}}, {{Path: "/mnt", Dev: "0:50", Type: mountpoint.FSType}, {Path: m.place(), Type: "ext4"}}} {
			m.look(over)
			assert.Equal(t, m.shows(tree, s, "/state/a/x/1"), c.shows && c.cached, name, "out of sight")
			assert.Contains(t, m.check(tree, s).Error(), "is mounted at "+m.place()+", and something else is seen there", name)
		}
	}
}

// A rule holds for a file in a mount by whatever link it is named, and none leads to what has
// rules of its own.
func TestGuardLinks(t *testing.T) {
	dir := assert.Of(filepath.EvalSymlinks(t.TempDir())).OK(t)
	for _, name := range []string{"d/e", "lib"} {
		assert.OK(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	for name, to := range map[string]string{"link": "d", "d/up": "..", "to-lib": "lib", "out": ".."} {
		assert.OK(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	m := &mounted{Conditional: newBackend(), root: dir, dir: dir, parts: layout{{At: "/"}, {At: "/lib", Name: "@a/lib"}}}
	g := &guarded{Backend: m, governing: []string{"d/RULES.md"}, real: m.real}
	for key, want := range map[string]error{
		"d/RULES.md": providers.ErrReadOnly, "link/RULES.md": providers.ErrReadOnly, "d/up/link/RULES.md": providers.ErrReadOnly,
		"to-lib/f": providers.ErrPermission, "out/f": providers.ErrPermission, "lib/f": nil, "link/f": nil, "d/RULES": nil, "link/new/f": nil,
	} {
		assert.Is(t, g.check(providers.MethodWrite, loc(t, key), false), want, key)
	}
	assert.Contains(t, g.check(providers.MethodWrite, loc(t, "to-lib/f"), false).Error(), "a symbolic link leads into another workspace, @a/lib")
}

package providers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// everything has all abilities, announces some, and notes what is called.
type everything struct {
	abilities providers.Ability
	called    []string
	body      string
	closed    bool // of a body that it gave out
}

func (e *everything) note(name string) error {
	e.called = append(e.called, name)
	return nil
}

// done is a call that gives nothing.
func done[R any](e *everything, name string) (R, error) {
	var none R
	return none, e.note(name)
}

func (e *everything) Capabilities() providers.Capabilities {
	return providers.Capabilities{Writable: true, Abilities: e.abilities}
}
func (e *everything) Stat(context.Context, providers.Locator) (providers.Info, error) {
	e.note("Stat")
	return providers.Info{Size: 7}, nil
}
func (e *everything) List(context.Context, providers.Locator, providers.ListOptions) (providers.Page, error) {
	return done[providers.Page](e, "List")
}
func (e *everything) Read(context.Context, providers.Locator, providers.ReadOptions) (providers.Content, error) {
	e.note("Read")
	return providers.Content{Info: providers.Info{Size: 7}, Body: &closing{strings.NewReader(e.body), e}}, nil
}
func (e *everything) Write(_ context.Context, _ providers.Locator, b providers.Body, _ providers.WriteOptions) (providers.Info, error) {
	e.note("Write")
	return e.take(b)
}
func (e *everything) Delete(context.Context, providers.Locator, providers.DeleteOptions) error {
	return e.note("Delete")
}
func (e *everything) Mkdir(context.Context, providers.Locator, providers.MkdirOptions) (providers.Info, error) {
	return done[providers.Info](e, "Mkdir")
}
func (e *everything) Close() error { return e.note("Close") }
func (e *everything) Copy(context.Context, providers.Locator, providers.Locator, providers.CopyOptions) (providers.Info, error) {
	return done[providers.Info](e, "Copy")
}
func (e *everything) Move(context.Context, providers.Locator, providers.Locator, providers.MoveOptions) (providers.Info, error) {
	return done[providers.Info](e, "Move")
}
func (e *everything) Fits(providers.Attr, map[string]string) error { return nil }

func (e *everything) SetAttr(context.Context, providers.Locator, providers.SetAttrOptions) (providers.Info, error) {
	return done[providers.Info](e, "SetAttr")
}
func (e *everything) StartParts(context.Context, providers.Locator, providers.WriteOptions) (providers.Upload, error) {
	e.note("StartParts")
	return uploads{e}, nil
}
func (e *everything) AbortParts(context.Context, time.Time) (int, error) {
	return done[int](e, "AbortParts")
}
func (e *everything) Watch(context.Context, providers.Locator) iter.Seq2[providers.Event, error] {
	return func(yield func(providers.Event, error) bool) {
		e.note("Watch")
		for i := range 3 {
			if !yield(providers.Event{Lost: i == 2}, nil) {
				return
			}
		}
	}
}
func (e *everything) Head(context.Context) (providers.Revision, error) {
	return done[providers.Revision](e, "Head")
}
func (e *everything) Commit(context.Context, providers.ChangeSet) (providers.CommitResult, error) {
	return done[providers.CommitResult](e, "Commit")
}
func (e *everything) At(context.Context, providers.Revision) (providers.Provider, error) {
	e.note("At")
	return e, nil
}
func (e *everything) Push(context.Context, providers.PushOptions) (providers.PushResult, error) {
	return done[providers.PushResult](e, "Push")
}
func (e *everything) Fetch(context.Context) (providers.Revision, error) {
	return done[providers.Revision](e, "Fetch")
}
func (e *everything) Adopt(context.Context, providers.Revision, providers.Revision) error {
	return e.note("Adopt")
}
func (e *everything) Base(context.Context, providers.Revision, providers.Revision) (providers.Revision, error) {
	return done[providers.Revision](e, "Base")
}
func (e *everything) Rebase(context.Context, providers.Revision, providers.Revision, providers.Revision, providers.Combine) (providers.Revision, error) {
	e.note("Rebase")
	return "r2", nil
}

func (e *everything) Differences(context.Context, providers.Revision, providers.Revision) ([]providers.Difference, error) {
	e.note("Differences")
	return make([]providers.Difference, 1), nil
}

func (e *everything) Submodule(context.Context, providers.Locator) (providers.Locator, bool, error) {
	return providers.Locator{}, false, nil
}

func (e *everything) Inspect(string, []string, providers.Changes) providers.Inspection {
	return providers.Inspection{}
}

func (e *everything) Find(context.Context, string) (providers.Found, error) {
	e.note("Find")
	return providers.Found{Revision: "r1"}, nil
}

func (e *everything) Branches(context.Context) (providers.Branches, error) {
	return done[providers.Branches](e, "Branches")
}
func (e *everything) Begin(context.Context, string, bool) (providers.Revision, error) {
	return done[providers.Revision](e, "Begin")
}
func (e *everything) Start(context.Context, string, providers.Revision, providers.Revision) error {
	return e.note("Start")
}
func (e *everything) Propose(context.Context, string, providers.PullRequest) (string, error) {
	return done[string](e, "Propose")
}
func (e *everything) take(b providers.Body) (providers.Info, error) {
	if b.Reader != nil {
		content, err := io.ReadAll(b.Reader)
		e.body = string(content)
		return providers.Info{}, err
	}
	return providers.Info{}, nil
}

type uploads struct{ e *everything }

func (u uploads) Part(_ context.Context, _ int, b providers.Body) error {
	u.e.note("Part")
	return assert.ErrOf(u.e.take(b))
}
func (u uploads) CopyPart(context.Context, int, providers.Locator, providers.ReadOptions) error {
	u.e.note("CopyPart")
	return nil
}
func (u uploads) Complete(context.Context) (providers.Info, error) {
	u.e.note("Complete")
	return providers.Info{}, nil
}
func (u uploads) Abort(context.Context) error { u.e.note("Abort"); return nil }

type closing struct {
	io.Reader
	e *everything
}

func (c *closing) Close() error { c.e.closed = true; return nil }

// interfaces are all that a wrapper passes calls of.
var interfaces = []reflect.Type{
	reflect.TypeFor[providers.Provider](), reflect.TypeFor[providers.Copier](), reflect.TypeFor[providers.Mover](),
	reflect.TypeFor[providers.AttrSetter](), reflect.TypeFor[providers.Multiparter](), reflect.TypeFor[providers.Watcher](),
	reflect.TypeFor[providers.Committer](), reflect.TypeFor[providers.Snapshotter](), reflect.TypeFor[providers.Pusher](),
	reflect.TypeFor[providers.Syncer](), reflect.TypeFor[providers.Brancher](), reflect.TypeFor[providers.Rebaser](),
	reflect.TypeFor[providers.Differ](), reflect.TypeFor[providers.Upload](),
}

// methods calls each method of p, and of an upload of p, with zero arguments.
// The error is that of the call.
func methods(t *testing.T, p providers.Provider) map[string]func() error {
	calls := map[string]func() error{}
	for _, typ := range interfaces {
		for i := range typ.NumMethod() {
			name := typ.Method(i).Name
			if name == "Capabilities" || name == "Fits" { // they ask nobody
				continue
			}
			calls[name] = func() error {
				receiver := reflect.ValueOf(p)
				if typ == reflect.TypeFor[providers.Upload]() {
					u, err := p.(providers.Multiparter).StartParts(t.Context(), providers.Locator{}, providers.WriteOptions{})
					if err != nil {
						return err
					}
					receiver = reflect.ValueOf(u)
				}
				return call(t, receiver.MethodByName(name))
			}
		}
	}
	return calls
}

func call(t *testing.T, method reflect.Value) error {
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		arg := reflect.Zero(method.Type().In(i))
		if arg.Type() == reflect.TypeFor[context.Context]() {
			arg = reflect.ValueOf(t.Context())
		}
		args = append(args, arg)
	}
	results := method.Call(args)
	last := results[len(results)-1].Interface()
	if events, ok := last.(iter.Seq2[providers.Event, error]); ok {
		for _, err := range events {
			if err != nil {
				return err
			}
		}
		return nil
	}
	err, _ := last.(error)
	return err
}

// The interface that each provider must implement stays small.
func TestRequiredMethods(t *testing.T) {
	n := interfaces[0].NumMethod()
	assert.True(t, n <= 8, "Provider has", n, "methods, want at most 8")
}

// Each method passes the wrapper's function exactly once, with a name of its own, and then
// arrives; or does not arrive when the function refuses.
func TestWrapSeesEveryCall(t *testing.T) {
	refusal := errors.New("refused")
	seen := map[providers.Method]string{}
	for name := range methods(t, &everything{}) {
		var got []providers.Method
		inner := &everything{abilities: full.Abilities}
		p := providers.Wrap(inner, providers.WrapOptions{
			Around: func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
				got = append(got, c.Method)
				return next(ctx)
			},
		})
		assert.Is(t, methods(t, p)[name](), nil, name)
		if len(got) == 0 || len(got) != len(inner.called) || inner.called[len(got)-1] != name {
			t.Errorf("%s: the wrapper saw %q, the provider %q", name, got, inner.called)
			continue
		}
		method := got[len(got)-1]
		other, twice := seen[method]
		assert.False(t, twice, name, other, "are both", method)
		seen[method] = name

		inner = &everything{abilities: full.Abilities}
		p = providers.Wrap(inner, providers.WrapOptions{
			Around: func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
				if c.Method == method {
					return refusal
				}
				return next(ctx)
			},
		})
		assert.Is(t, methods(t, p)[name](), refusal, name, "refused")
		n := len(inner.called)
		assert.False(t, n > 0 && inner.called[n-1] == name, name, "refused, and arrived")
	}
}

// Each method that changes something is refused, each other arrives; none is forgotten.
func TestReadOnlySeesEveryCall(t *testing.T) {
	allowed := map[string]bool{
		"Stat": true, "List": true, "Read": true, "Close": true, "Watch": true,
		"Head": true, "At": true, "Find": true, "Fetch": true, "Adopt": true, "Base": true,
		"Branches": true, "Begin": true, "Rebase": true, "Differences": true,
	}
	for name := range methods(t, &everything{}) {
		inner := &everything{abilities: full.Abilities}
		p := providers.ReadOnly(inner, providers.ReadOnlyOptions{Reason: "because"})
		err := methods(t, p)[name]()
		arrived := len(inner.called) > 0
		switch {
		case allowed[name] && (err != nil || !arrived || p.Refused() != 0):
			t.Errorf("%s: got %v, arrived %v, %d refused", name, err, arrived, p.Refused())
		case !allowed[name] && (!errors.Is(err, providers.ErrReadOnly) || arrived || p.Refused() != 1):
			t.Errorf("%s: got %v, arrived %v, %d refused", name, err, arrived, p.Refused())
		case !allowed[name] && !strings.Contains(err.Error(), "because"):
			t.Errorf("%s: %v does not say why", name, err)
		}
	}
}

// A snapshot is no way around.
func TestReadOnlyPast(t *testing.T) {
	inner := &everything{abilities: full.Abilities}
	p := providers.ReadOnly(inner, providers.ReadOnlyOptions{})
	s, ok := providers.As[providers.Snapshotter](p)
	assert.Must(t, ok, "the past is hidden")
	past := assert.Of(s.At(t.Context(), "r1")).OK(t)
	_, err := past.Write(t.Context(), providers.Locator{}, providers.Body{}, providers.WriteOptions{})
	assert.True(t, errors.Is(err, providers.ErrReadOnly) && p.Refused() == 1, "write", p.Refused(), "refused", err)
}

func TestReadOnlyLogs(t *testing.T) {
	var log strings.Builder
	p := providers.ReadOnly(&everything{}, providers.ReadOnlyOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	p.Delete(t.Context(), providers.MustLocator("a"), providers.DeleteOptions{})
	if !strings.Contains(log.String(), "storage_read_only") || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("log: %q", log.String())
	}
}

// What the wrapper declares lost does not arrive, and what it held is freed.
func TestLostAnswer(t *testing.T) {
	inner := &everything{abilities: full.Abilities}
	lost := errors.New("lost")
	p := providers.Wrap(inner, providers.WrapOptions{
		Around: func(ctx context.Context, _ *providers.Call, next func(context.Context) error) error {
			assert.Is(t, next(ctx), nil)
			return lost
		},
	})
	info, err := p.Stat(t.Context(), providers.Locator{})
	assert.True(t, info.Size == 0 && err == lost, "stat:", info, err)
	c, err := p.Read(t.Context(), providers.Locator{}, providers.ReadOptions{})
	assert.True(t, c.Body == nil && err == lost && inner.closed, "read:", c, err, "closed:", inner.closed)
	m, _ := providers.As[providers.Multiparter](p)
	inner.called = nil
	u, err := m.StartParts(t.Context(), providers.Locator{}, providers.WriteOptions{})
	assert.True(t, u == nil && err == lost, "start:", u, err)
	assert.Equal(t, fmt.Sprint(inner.called), "[StartParts Abort]", "a lost upload is left")
}

// The wrapper can stand in the stream of content, both ways.
func TestCallBody(t *testing.T) {
	inner := &everything{abilities: full.Abilities}
	upper := func(r io.Reader) io.Reader {
		b, _ := io.ReadAll(r)
		return strings.NewReader(strings.ToUpper(string(b)))
	}
	p := providers.Wrap(inner, providers.WrapOptions{
		Around: func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
			c.Body = upper
			return next(ctx)
		},
	})
	p.Write(t.Context(), providers.Locator{}, providers.String("written"), providers.WriteOptions{})
	assert.Equal(t, inner.body, "WRITTEN", "write")
	u := assert.Of(p.(providers.Multiparter).StartParts(t.Context(), providers.Locator{}, providers.WriteOptions{})).OK(t)
	u.Part(t.Context(), 1, providers.String("part"))
	assert.Equal(t, inner.body, "PART", "part")
	inner.body = "read"
	c := assert.Of(p.Read(t.Context(), providers.Locator{}, providers.ReadOptions{})).OK(t)
	got, _ := io.ReadAll(c.Body)
	assert.True(t, string(got) == "READ", "read", got)
	c.Body.Close()
	assert.True(t, inner.closed, "the original body was not closed")
}

// A caller that stops hears nothing more.
func TestWatchEndsEarly(t *testing.T) {
	p := providers.Wrap(&everything{abilities: full.Abilities}, providers.WrapOptions{
		Around: func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
			return errors.Join(next(ctx), errors.New("afterwards"))
		},
	})
	w, _ := providers.As[providers.Watcher](p)
	n := 0
	for range w.Watch(t.Context(), providers.Locator{}) {
		n++
		break
	}
	assert.Equal(t, n, 1, n-1, "events after the first")
	var last error
	for _, err := range w.Watch(t.Context(), providers.Locator{}) {
		last = err
		n++
	}
	if n != 5 || last == nil {
		t.Errorf("%d events, then %v", n-2, last)
	}
}

// offer notes that As gives an ability of p, and the answer.
func offer[I any](got map[providers.Ability]any, p providers.Provider, a providers.Ability) {
	if v, ok := providers.As[I](p); ok {
		got[a] = v
	}
}

// offered is the set of abilities that As gives of p, and the answers.
func offered(p providers.Provider) map[providers.Ability]any {
	got := map[providers.Ability]any{}
	offer[providers.Copier](got, p, providers.AbilityCopy)
	offer[providers.Mover](got, p, providers.AbilityMove)
	offer[providers.AttrSetter](got, p, providers.AbilityAttr)
	offer[providers.Multiparter](got, p, providers.AbilityParts)
	offer[providers.Watcher](got, p, providers.AbilityWatch)
	offer[providers.Committer](got, p, providers.AbilityCommit)
	offer[providers.Snapshotter](got, p, providers.AbilitySnapshot)
	offer[providers.Pusher](got, p, providers.AbilityPush)
	offer[providers.Syncer](got, p, providers.AbilitySync)
	offer[providers.Brancher](got, p, providers.AbilityBranch)
	offer[providers.Rebaser](got, p, providers.AbilityRebase)
	offer[providers.Inspector](got, p, providers.AbilityInspect)
	offer[providers.Differ](got, p, providers.AbilityDiffer)
	offer[providers.Submoduler](got, p, providers.AbilitySubmodule)
	return got
}

// Through any stack of wrappers, As gives exactly what the provider announces less what the
// wrappers hide; the answer is the outermost wrapper; and what is not announced does not work
// either.
func TestWrappersOnlyTakeAway(t *testing.T) {
	tier.Check(t, func(t *rapid.T) {
		sets := rapid.Map(rapid.Uint16Range(0, uint16(full.Abilities)), func(n uint16) providers.Ability { return providers.Ability(n) })
		announced := sets.Draw(t, "announced")
		inner := &everything{abilities: announced}
		p, want, passed := providers.Provider(inner), announced, 0
		depth := rapid.IntRange(1, 4).Draw(t, "depth")
		for range depth {
			hide := sets.Draw(t, "hide")
			p = providers.Wrap(p, providers.WrapOptions{
				Hide: hide,
				Around: func(ctx context.Context, _ *providers.Call, next func(context.Context) error) error {
					passed++
					return next(ctx)
				},
			})
			want &^= hide
		}
		got := offered(p)
		for a := providers.Ability(1); full.Abilities.Has(a); a <<= 1 {
			answer, ok := got[a]
			assert.Must(t, ok == want.Has(a), a, "offered", ok, "announced", announced, "not hidden", want)
			if ok && answer != any(p) {
				t.Fatalf("%s: the answer is %T and not the wrapper", a, answer)
			}
		}
		_, err := p.(providers.Copier).Copy(t.Context(), providers.Locator{}, providers.Locator{}, providers.CopyOptions{})
		if want.Has(providers.AbilityCopy) {
			assert.Must(t, err == nil && passed == depth, "copy:", err, "past", passed, "of", depth, "wrappers")
		} else if len(inner.called) > 0 && depth == 1 && !announced.Has(providers.AbilityCopy) {
			t.Fatalf("copy is not announced and arrived")
		}
	})
}

// A type assertion does not get at what As hides.
func TestHiddenIsRefused(t *testing.T) {
	inner := &everything{abilities: full.Abilities}
	p := providers.Wrap(inner, providers.WrapOptions{Hide: providers.AbilityCopy})
	_, err := p.(providers.Copier).Copy(t.Context(), providers.Locator{}, providers.Locator{}, providers.CopyOptions{})
	assert.True(t, errors.Is(err, providers.ErrUnsupported) && len(inner.called) == 0, "hidden copy:", err, "arrived:", inner.called)
}

func TestAsForeignInterface(t *testing.T) {
	_, ok := providers.As[io.Closer](&everything{abilities: full.Abilities})
	assert.False(t, ok, "As gives what is no ability")
}

func TestReadOnlyCapabilities(t *testing.T) {
	inner := &everything{abilities: full.Abilities}
	c := providers.ReadOnly(inner, providers.ReadOnlyOptions{}).Capabilities()
	want := providers.AbilityWatch | providers.AbilityCommit | providers.AbilitySnapshot | providers.AbilitySync | providers.AbilityBranch |
		providers.AbilityRebase | providers.AbilityInspect | providers.AbilityDiffer | providers.AbilitySubmodule
	assert.True(t, !c.Writable && c.Abilities == want, "writable", c.Writable, "abilities", c.Abilities, want)
}

package providertest

import (
	"context"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

var readOnlyChecks = readOnlyChecksOf(func(p providers.Provider) counting {
	return providers.ReadOnly(p, providers.ReadOnlyOptions{Reason: "the manifest says so"})
})

// counting is the type that ReadOnly makes; the suite's own tests use wrong ones.
type counting interface {
	providers.Provider
	Refused() int64
}

func readOnlyChecksOf(wrap func(providers.Provider) counting) []Check {
	return []Check{
		{Name: "readonly/refuses-changes", Run: func(t T, p providers.Provider) { readOnlyRefuses(t, p, wrap) }},
		{Name: "readonly/reads", Run: func(t T, p providers.Provider) { readOnlyReads(t, p, wrap) }},
		{Name: "readonly/announces-no-change", Run: func(t T, p providers.Provider) { readOnlyAnnounces(t, p, wrap) }},
	}
}

// changing has all methods that change an entry; every wrapper has them.
type changing interface {
	providers.Provider
	providers.Copier
	providers.Mover
	providers.AttrSetter
	providers.Multiparter
	providers.Committer
	providers.Pusher
}

// changes are all calls that would change an entry, including those of abilities that p does
// not announce.
func changes(p providers.Provider) map[providers.Method]func(ctx context.Context) error {
	w := p.(changing)
	drop := func(_ any, err error) error { return err }
	yes := providers.Unconditional()
	return map[providers.Method]func(ctx context.Context) error{
		providers.MethodWrite: func(ctx context.Context) error {
			return drop(w.Write(ctx, loc("a"), providers.String("x"), unconditional))
		},
		providers.MethodDelete: func(ctx context.Context) error {
			return w.Delete(ctx, loc("a"), providers.DeleteOptions{If: yes})
		},
		providers.MethodMkdir: func(ctx context.Context) error {
			return drop(w.Mkdir(ctx, loc("d"), providers.MkdirOptions{}))
		},
		providers.MethodCopy: func(ctx context.Context) error {
			return drop(w.Copy(ctx, loc("a"), loc("b"), providers.CopyOptions{If: yes}))
		},
		providers.MethodMove: func(ctx context.Context) error {
			return drop(w.Move(ctx, loc("a"), loc("b"), providers.MoveOptions{Source: yes, Target: yes}))
		},
		providers.MethodSetAttr: func(ctx context.Context) error {
			return drop(w.SetAttr(ctx, loc("a"), providers.SetAttrOptions{If: yes}))
		},
		providers.MethodStartParts: func(ctx context.Context) error { return drop(w.StartParts(ctx, loc("a"), unconditional)) },
		providers.MethodAbortParts: func(ctx context.Context) error { return drop(w.AbortParts(ctx, time.Now())) },
		providers.MethodCommit: func(ctx context.Context) error {
			return drop(w.Commit(ctx, providers.ChangeSet{Changes: []providers.Change{change("a", "x", yes)}}))
		},
		providers.MethodPush: func(ctx context.Context) error { return drop(w.Push(ctx, providers.PushOptions{})) },
	}
}

// readOnlyRefuses: every change is refused, counted, and never arrives.
func readOnlyRefuses(t T, inner providers.Provider, wrap func(providers.Provider) counting) {
	setUp(t, inner)
	var mu sync.Mutex
	arrived := map[providers.Method]int{}
	watched := providers.Wrap(inner, providers.WrapOptions{
		Around: func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
			mu.Lock()
			arrived[c.Method]++
			mu.Unlock()
			return next(ctx)
		},
	})
	p := wrap(watched)
	calls := changes(p)
	for name, call := range calls {
		err := call(t.Context())
		wantErr(t, string(name)+" on read-only storage", err, providers.ErrReadOnly)
		if arrived[name] != 0 {
			t.Errorf("%s arrived at the provider inside", name)
		}
		if code := providers.KindOf(err).Code; code != "storage_read_only" {
			t.Errorf("%s: code %q", name, code)
		}
	}
	if got := p.Refused(); got != int64(len(calls)) {
		t.Errorf("%d refusals counted, want %d", got, len(calls))
	}
	untouched(t, inner)
}

func readOnlyReads(t T, inner providers.Provider, wrap func(providers.Provider) counting) {
	setUp(t, inner)
	p := wrap(inner)
	untouched(t, p)
	if p.Refused() != 0 {
		t.Errorf("%d reads refused", p.Refused())
	}
}

func readOnlyAnnounces(t T, inner providers.Provider, wrap func(providers.Provider) counting) {
	p := wrap(inner)
	c := p.Capabilities()
	if c.Writable {
		t.Errorf("read-only storage says that it is writable")
	}
	if more := c.Abilities &^ inner.Capabilities().Abilities; more != 0 {
		t.Errorf("%s: announced by the wrapper only", more)
	}
	for _, announced := range []bool{
		is[providers.Copier](p), is[providers.Mover](p), is[providers.AttrSetter](p),
		is[providers.Multiparter](p), is[providers.Pusher](p),
	} {
		if announced {
			t.Errorf("an ability that only changes things is announced: %s", c.Abilities)
		}
	}
}

func is[A any](p providers.Provider) bool {
	_, ok := providers.As[A](p)
	return ok
}

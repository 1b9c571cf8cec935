package providertest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/wsmount/wsmount/providers"
)

var concurrencyChecks = []Check{
	{Name: "race/create", Needs: needs(providers.Conditions{Create: providers.GuardAtomic}), Run: raceCreate},
	{Name: "race/replace", Needs: needs(providers.Conditions{Replace: providers.GuardAtomic}), Run: raceReplace},
	{Name: "race/delete", Needs: needs(providers.Conditions{Delete: providers.GuardAtomic}), Run: raceDelete},
	{Name: "race/many-names", Heavy: true, Run: raceManyNames},
	{Name: "race/whole-content", Heavy: true, Run: raceWholeContent},
}

const (
	racers = 8
	rounds = 6
)

// race runs f at the same time, as often as there are racers, and returns how many succeeded.
// The others must fail with one of the kinds.
func race(t T, what string, f func(i int) error, losing ...error) int {
	t.Helper()
	var won atomic.Int32
	errs := make([]error, racers)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() {
			<-start
			if errs[i] = f(i); errs[i] == nil {
				won.Add(1)
			}
		})
	}
	close(start)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			wantErr(t, what, err, losing...)
		}
	}
	return int(won.Load())
}

func raceCreate(t T, p providers.Provider) {
	for round := range rounds {
		l := loc(fmt.Sprintf("dir%d/new", round))
		var winner atomic.Int32
		won := race(t, "creation", func(i int) error {
			_, err := p.Write(t.Context(), l, providers.String(fmt.Sprint(i)), providers.WriteOptions{If: providers.IfAbsent()})
			if err == nil {
				winner.Store(int32(i))
			}
			return err
		}, providers.ErrExist)
		if won != 1 {
			t.Fatalf("%d of %d creations succeeded", won, racers)
		}
		wantContent(t, p, l, fmt.Sprint(winner.Load()))
	}
}

// raceReplace: of the writers that know one version, one replaces it.
func raceReplace(t T, p providers.Provider) {
	for range rounds {
		info := put(t, p, loc("a"), "before")
		var winner atomic.Int32
		won := race(t, "replacement", func(i int) error {
			_, err := p.Write(t.Context(), loc("a"), providers.String(fmt.Sprint(i)), providers.WriteOptions{If: providers.IfVersion(info.Version)})
			if err == nil {
				winner.Store(int32(i))
			}
			return err
		}, providers.ErrConflict)
		if won != 1 {
			t.Fatalf("%d of %d replacements of one version succeeded", won, racers)
		}
		wantContent(t, p, loc("a"), fmt.Sprint(winner.Load()))
	}
}

// errNever is the kind of no error.
var errNever = errors.New("no error at all")

func raceDelete(t T, p providers.Provider) {
	for range rounds {
		info := put(t, p, loc("a"), "x")
		won := race(t, "delete", func(i int) error {
			if i%2 == 0 {
				return p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.IfVersion(info.Version)})
			}
			_, err := p.Write(t.Context(), loc("a"), providers.String("y"), providers.WriteOptions{If: providers.IfVersion(info.Version)})
			return err
		}, providers.ErrConflict, providers.ErrNotExist)
		if won != 1 {
			t.Fatalf("%d of %d deletions and replacements of one version succeeded", won, racers)
		}
	}
}

func raceManyNames(t T, p providers.Provider) {
	put(t, p, loc("shared/stays"), "x") // a directory may go with its last entry
	race(t, "work", func(i int) error {
		for n := range rounds {
			l := loc(fmt.Sprintf("shared/dir/%d-%d", i, n))
			info, err := p.Write(t.Context(), l, providers.String(l.String()), providers.WriteOptions{If: providers.IfAbsent()})
			if err != nil {
				return err
			}
			if n%2 == 0 {
				err = p.Delete(t.Context(), l, providers.DeleteOptions{If: providers.IfVersion(info.Version)})
			}
			if err != nil {
				return err
			}
			if _, err := p.List(t.Context(), loc("shared"), providers.ListOptions{}); err != nil {
				return err
			}
		}
		return nil
	}, errNever)
	if got, want := len(list(t, p, loc("shared/dir"), providers.ListOptions{})), racers*rounds/2; got != want {
		t.Errorf("%d entries are left, want %d", got, want)
	}
}

// raceWholeContent: a read during writes returns the content of one writer.
func raceWholeContent(t T, p providers.Provider) {
	const size = 100_000
	put(t, p, loc("a"), strings.Repeat("z", size))
	race(t, "read or write", func(i int) error {
		for range rounds {
			if i%2 == 0 {
				if _, err := p.Write(t.Context(), loc("a"), providers.String(strings.Repeat(string(rune('a'+i)), size)), unconditional); err != nil {
					return err
				}
				continue
			}
			got, _, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{})
			if errors.Is(err, providers.ErrConflict) {
				continue // noticed and reported
			}
			if err != nil {
				return err
			}
			if len(got) != size || strings.Count(string(got), string(got[:1])) != size {
				return fmt.Errorf("a mixture of %d bytes: %w", len(got), providers.ErrCorrupt)
			}
		}
		return nil
	}, errNever)
}

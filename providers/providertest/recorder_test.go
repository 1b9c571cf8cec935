package providertest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// recorder is a T that remembers failures instead of failing.
type recorder struct {
	t *testing.T // for its context and directory only

	mu       sync.Mutex // guards all below
	failures []string
	cleanups []func()
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.t.Context() }
func (r *recorder) TempDir() string          { return r.t.TempDir() }
func (r *recorder) Logf(string, ...any)      {}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// failures runs one check to its end and gives what it said. A check that
// panics has failed, too.
func failures(t *testing.T, c Check, new New) []string {
	r := &recorder{t: t}
	finish := func(f func()) {
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() {
				v := recover()
				assert.True(r, v == nil, "panic:", v)
			}()
			f()
		})
		wg.Wait()
	}
	finish(func() { c.run(r, new) })
	for _, cleanup := range slices.Backward(r.cleanups) {
		finish(cleanup)
	}
	return r.failures
}

// allChecks are those of Run, without the wrappers around.
func allChecks() []Check {
	return slices.Concat(Checks(), plainChecks, faultChecks, readOnlyChecks)
}

func checkNamed(t *testing.T, all []Check, name string) Check {
	t.Helper()
	i := slices.IndexFunc(all, func(c Check) bool { return c.Name == name })
	assert.Must(t, i >= 0, "no check is named", name)
	return all[i]
}

package answers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// What a store answers says whether it can be reached, and when it last gave and took
// something, and what it refuses of what programs look at; of a clone, what it does by itself
// says nothing.
func TestAnswers(t *testing.T) {
	bucket := memory.New(memory.Options{})
	clone := memoryrepo.NewRepository(memoryrepo.NewRemote(nil), "", memory.Options{})
	away, denied := fmt.Errorf("put: %w", providers.ErrUnavailable), fmt.Errorf("put: %w", providers.ErrUnauthenticated)
	refused := fmt.Errorf("read: %w", providers.ErrPermission)
	type call struct {
		method providers.Method
		err    error
	}
	for name, c := range map[string]struct {
		store providers.Provider
		calls []call
		want  string // seconds: unreachable since, pulled, pushed; failures of credentials; failed by kind
	}{
		"nothing was asked":                {bucket, nil, "0 0 0; 0; map[]"},
		"it refuses to give":               {bucket, []call{{providers.MethodRead, refused}}, "0 0 0; 0; map[permission:1]; map[read:read: permission denied]"},
		"it is not the right one":          {clone, []call{{providers.MethodList, providers.ErrInvalid}, {providers.MethodRead, providers.ErrNotExist}}, "0 0 0; 0; map[other:1]; map[list:invalid argument]"},
		"it has refused":                   {bucket, []call{{providers.MethodList, refused}, {providers.MethodStat, refused}, {providers.MethodList, nil}, {providers.MethodStat, providers.ErrNotExist}}, "0 3 0; 0; map[permission:2]"},
		"it refuses, and is away":          {bucket, []call{{providers.MethodRead, refused}, {providers.MethodRead, away}, {providers.MethodRead, context.Canceled}}, "2 0 0; 0; map[permission:1 unavailable:1]; map[read:read: permission denied]"},
		"it refuses to take":               {bucket, []call{{providers.MethodWrite, refused}}, "0 0 0; 0; map[permission:1]"},
		"it gives":                         {bucket, []call{{providers.MethodRead, nil}}, "0 1 0; 0; map[]"},
		"it takes":                         {bucket, []call{{providers.MethodWrite, nil}}, "0 0 1; 0; map[]"},
		"it is away":                       {bucket, []call{{providers.MethodRead, nil}, {providers.MethodWrite, away}, {providers.MethodStat, away}}, "2 1 0; 0; map[unavailable:2]"},
		"it is back":                       {bucket, []call{{providers.MethodWrite, away}, {providers.MethodWrite, nil}}, "0 0 2; 0; map[unavailable:1]"},
		"it is there, and refuses":         {bucket, []call{{providers.MethodWrite, away}, {providers.MethodWrite, denied}}, "0 0 0; 1; map[unauthenticated:1 unavailable:1]"},
		"it has nothing there":             {bucket, []call{{providers.MethodWrite, away}, {providers.MethodStat, providers.ErrNotExist}}, "0 0 0; 0; map[unavailable:1]"},
		"the caller gave up":               {bucket, []call{{providers.MethodWrite, away}, {providers.MethodStat, context.Canceled}}, "1 0 0; 0; map[unavailable:1]"},
		"it was waited for in vain":        {bucket, []call{{providers.MethodStat, context.DeadlineExceeded}}, "1 0 0; 0; map[other:1]"},
		"a clone reads":                    {clone, []call{{providers.MethodFetch, away}, {providers.MethodRead, nil}}, "1 0 0; 0; map[unavailable:1]"},
		"a clone commits":                  {clone, []call{{providers.MethodCommit, nil}}, "0 0 0; 0; map[]"},
		"a clone is locked":                {clone, []call{{providers.MethodCommit, away}}, "0 0 0; 0; map[unavailable:1]"},
		"a clone fetches, and then pushes": {clone, []call{{providers.MethodFetch, nil}, {providers.MethodPush, nil}}, "0 1 2; 0; map[]"},
		"another error":                    {clone, []call{{providers.MethodPush, errors.New("odd")}}, "0 0 0; 0; map[other:1]"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := time.Unix(0, 0)
			refused := map[providers.Method]error{}
			a := New(func() time.Time { clock = clock.Add(time.Second); return clock },
				func(m providers.Method, _ providers.Locator, err error) {
					if refused[m] = err; err == nil {
						delete(refused, m)
					}
				})
			around := a.Around(c.store)
			for _, call := range c.calls {
				ctx := t.Context()
				if errors.Is(call.err, context.DeadlineExceeded) {
					var end context.CancelCauseFunc
					ctx, end = context.WithCancelCause(ctx)
					end(fmt.Errorf("gave up waiting: %w", fs.ErrUnavailable))
				}
				err := around(ctx, &providers.Call{Method: call.method}, func(context.Context) error { return call.err })
				assert.Is(t, err, call.err)
			}
			second := func(at time.Time) int64 {
				if at.IsZero() {
					return 0
				}
				return at.Unix()
			}
			s := a.Summary()
			got := fmt.Sprintf("%d %d %d; %d; %v", second(s.Unreachable), second(s.Pulled), second(s.Pushed), s.CredentialFailures, s.Failed)
			if len(refused) > 0 {
				got += fmt.Sprint("; ", refused)
			}
			assert.Equal(t, got, c.want)
			assert.Equal(t, s.Away != "", !s.Unreachable.IsZero(), "why it cannot be reached: "+s.Away)
		})
	}
	a, end := New(time.Now, nil), time.Unix(7, 0)
	a.Credentials(end, nil)
	a.Credentials(time.Time{}, errors.New("no such file"))
	a.Credentials(time.Time{}, context.Canceled)
	assert.Equal(t, a.Summary().CredentialFailures, 1, "failures")
	assert.Equal(t, a.Summary().CredentialsExpire, end, "those that are there")
}

package secrets

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.t }
func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func TestLive(t *testing.T) {
	clk := &clock{t: time.Unix(1e9, 0)}
	fetched, fail := 0, false
	life := time.Hour
	l := NewLive(func(context.Context) (Secret, error) {
		fetched++
		if fail {
			return Secret{}, errors.New("down")
		}
		return NewSecret(map[string]Value{Single: NewValue(strconv.Itoa(fetched))}, clk.now().Add(life)), nil
	}, LiveOptions{Now: clk.now})
	get := func(want string, fetches int) {
		t.Helper()
		s, err := l.Get(context.Background())
		v, _ := s.Field(Single)
		got := v.Reveal()
		if err != nil {
			got = err.Error()
		}
		assert.True(t, got == want && fetched == fetches, got, "after", fetched, "fetches", want, "after", fetches)
	}
	get("1", 1)
	clk.add(54 * time.Minute)
	get("1", 1) // 6 minutes left
	clk.add(2 * time.Minute)
	get("2", 2) // 4 minutes were left: fetched before the end
	clk.add(57 * time.Minute)
	fail = true
	get("2", 3) // a failure while it still works
	clk.add(5 * time.Second)
	get("2", 3) // not again at once
	clk.add(10 * time.Second)
	get("2", 4)
	clk.add(5 * time.Minute)
	get("down", 5) // it has ended: nothing old is handed out
	fail, life = false, 10*time.Second
	get("6", 6)
	clk.add(7 * time.Second)
	get("6", 6) // a fifth of ten seconds is early enough
	clk.add(2 * time.Second)
	get("7", 7)
	l.Renew()
	get("8", 8)
	got := l.Expires()
	assert.True(t, got.Equal(clk.now().Add(life)), "Expires", got)
}

func TestLiveWithoutEndIsFetchedOnceByMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetched := 0 // only one goroutine at a time gets there
		release := make(chan struct{})
		l := NewLive(func(context.Context) (Secret, error) {
			fetched++
			<-release
			return NewSecret(map[string]Value{Single: NewValue("x")}, time.Time{}), nil
		}, LiveOptions{})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				assert.Is(t, assert.ErrOf(l.Get(context.Background())), nil)
			})
		}
		synctest.Wait() // one fetches, the others wait for it
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		assert.Is(t, assert.ErrOf(l.Get(ctx)), context.Canceled, "a waiter that was cancelled")
		close(release)
		wg.Wait()
		assert.Equal(t, fetched, 1, "times fetched")
	})
}

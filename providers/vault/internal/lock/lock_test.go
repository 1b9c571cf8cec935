package lock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/vault/internal/lock"
)

// clock is time that passes when somebody sleeps. It stands still for what shows that a
// holder lives, until the holder ends.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	pauses []time.Duration
	during func(d time.Duration) // called in each pause
}

func newClock() *clock { return &clock{now: time.Unix(1_800_000_000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	if d > time.Second { // between two signs of life
		<-ctx.Done()
		return ctx.Err()
	}
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.pauses = append(c.pauses, d)
	c.mu.Unlock()
	if c.during != nil {
		c.during(d)
	}
	return ctx.Err()
}

func (c *clock) lock(t *testing.T, place string) *lock.Lock {
	t.Helper()
	return lock.New(open(t, place), place, lock.Options{Now: c.Now, Sleep: c.Sleep})
}

// open opens the vault of a place once more: in these tests, the directory that its key is in.
func open(t *testing.T, place string) int {
	t.Helper()
	dir := assert.Of(os.Open(filepath.Dir(filepath.Dir(place)))).OK(t)
	t.Cleanup(func() { assert.OK(t, dir.Close()) })
	return int(dir.Fd())
}

// others is a lock that another program holds since a while before c's present.
func others(t *testing.T, c *clock, age time.Duration) string {
	t.Helper()
	place := filepath.Join(t.TempDir(), "key", "lock")
	assert.OK(t, os.MkdirAll(place, 0o700))
	shown(t, place, c.Now().Add(-age))
	return place
}

func shown(t *testing.T, place string, at time.Time) {
	t.Helper()
	assert.OK(t, os.Chtimes(place, at, at))
}

func acquire(t *testing.T, l *lock.Lock) *lock.Held {
	t.Helper()
	return assert.Of(l.Acquire(t.Context())).OK(t)
}

func mtime(t *testing.T, place string) time.Time {
	t.Helper()
	return assert.Of(os.Stat(place)).OK(t).ModTime()
}

// The place is what agentm computes.
func TestPlace(t *testing.T) {
	const want = "/c/agentm/locks/8a5edab282632443219e051e4ade2d1d5bbc671c781051bf1437897cbdfea0f1/lock"
	t.Setenv("XDG_CACHE_HOME", "/c")
	assert.Equal(t, lock.Place(assert.Of(lock.Root()).OK(t), "/"), want)
}

// The directory is there while the mutex is held, shows that the holder lives, and goes.
func TestHeld(t *testing.T) {
	c, place := newClock(), filepath.Join(t.TempDir(), "key", "lock")
	held := acquire(t, c.lock(t, place))
	assert.True(t, mtime(t, place).Equal(c.Now()), "the directory does not say when the holder took it")
	assert.OK(t, held.Check())
	assert.OK(t, held.Release())
	assert.Is(t, assert.ErrOf(os.Stat(place)), os.ErrNotExist)
	assert.Equal(t, len(c.pauses), 0, "pauses without contention")
}

// The holder sets the mtime each half of the stale time, until it lets go.
func TestShowsThatItLives(t *testing.T) {
	var mu sync.Mutex
	now := time.Unix(1_800_000_000, 0)
	asked, tick := make(chan time.Duration), make(chan time.Duration)
	place := filepath.Join(t.TempDir(), "key", "lock")
	l := lock.New(open(t, place), place, lock.Options{
		Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now },
		Sleep: func(ctx context.Context, d time.Duration) error {
			select {
			case asked <- d:
			case <-ctx.Done():
				return ctx.Err()
			}
			select {
			case d := <-tick:
				mu.Lock()
				defer mu.Unlock()
				now = now.Add(d)
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	})
	held := acquire(t, l)
	for range 3 {
		assert.Equal(t, <-asked, 5*time.Second)
		before := mtime(t, place)
		tick <- 5 * time.Second
		assert.Equal(t, <-asked, 5*time.Second) // so it has shown it
		assert.Equal(t, mtime(t, place).Sub(before), 5*time.Second)
		assert.OK(t, held.Check())
		tick <- 0
	}
	assert.OK(t, held.Release())
}

// Who waits looks after 10 ms, then twice as long each time, 200 ms at most, and gives
// up after 10 s, when it has seen once more that the holder lives.
func TestTimeout(t *testing.T) {
	c := newClock()
	place := others(t, c, 0)
	c.during = func(time.Duration) { shown(t, place, c.Now().Add(-3*time.Second)) }
	began := c.Now()
	_, err := c.lock(t, place).Acquire(t.Context())
	var timeout *lock.TimeoutError
	assert.Must(t, errors.As(err, &timeout), err)
	ms := time.Millisecond
	assert.Equal(t, timeout.Waited, 10*time.Second+200*ms)
	assert.Equal(t, timeout.Age, 3*time.Second)
	assert.Equal(t, c.Now().Sub(began), timeout.Waited)
	assert.Slice(t, c.pauses[:7], []time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 200 * ms, 200 * ms})
	assert.Equal(t, slices.Max(c.pauses), 200*ms)
	assert.OK(t, os.Remove(place)) // it was not taken over
}

// What was not shown to live for longer than 10 s, and a moment later still not, is
// taken over, however long that takes of the time of who waits; a holder that shows it in
// that moment is not.
func TestTakeOver(t *testing.T) {
	const always = time.Hour
	for _, x := range []struct {
		name  string
		age   time.Duration // of what it showed last when we come
		lives time.Duration // how long it goes on to show it
		taken time.Duration // after which time it is taken over; 0: never
	}{
		{"killed", 10*time.Second + time.Millisecond, 0, 200 * time.Millisecond},
		{"killed as we came", 0, 0, 10400 * time.Millisecond},
		{"killed while we waited", time.Second, 9 * time.Second, 19400 * time.Millisecond},
		{"alive", time.Millisecond, always, 0},
		{"woke up", always, always, 0},
		{"of the future", -always, 0, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newClock()
			place, began := others(t, c, x.age), c.Now()
			first := assert.Of(os.Stat(place)).OK(t)
			c.during = func(time.Duration) {
				if c.Now().Sub(began) < x.lives {
					shown(t, place, c.Now())
				}
			}
			held, err := c.lock(t, place).Acquire(t.Context())
			assert.Equal(t, err == nil, x.taken > 0, err)
			waited := c.Now().Sub(began)
			if err == nil {
				assert.OK(t, held.Check())
				assert.True(t, waited <= x.taken, "it took", waited)
				assert.OK(t, held.Release())
				return
			}
			assert.True(t, waited <= 10200*time.Millisecond, "it took", waited)
			now := assert.Of(os.Stat(place)).OK(t)
			assert.True(t, os.SameFile(first, now), "the lock of one that lives was taken")
		})
	}
}

// Behind one that takes over from the dead, nobody has waited in vain for its time-out.
func TestBehindTakeOver(t *testing.T) {
	c := newClock()
	place, began := others(t, c, time.Second), c.Now()
	front := open(t, place)
	assert.OK(t, unix.Flock(front, unix.LOCK_EX))
	c.during = func(time.Duration) {
		switch waited := c.Now().Sub(began); {
		case waited > 15*time.Second:
			_ = os.Remove(place)
			assert.OK(t, unix.Flock(front, unix.LOCK_UN))
		case waited > 9300*time.Millisecond && mtime(t, place).Before(began):
			assert.OK(t, errors.Join(os.Remove(place), os.Mkdir(place, 0o700)))
			shown(t, place, c.Now())
		case waited > 9300*time.Millisecond && c.Now().Sub(mtime(t, place)) >= 3*time.Second:
			shown(t, place, c.Now()) // it lives, so that only a new time-out waits for it
		}
	}
	assert.OK(t, acquire(t, c.lock(t, place)).Release())
	assert.True(t, c.Now().Sub(began) > 15*time.Second, "it waited not at all")
}

// A holder of this package that stands still is waited for, however old its lock looks:
// it could go on at any time.
func TestStandsStill(t *testing.T) {
	c, place := newClock(), filepath.Join(t.TempDir(), "key", "lock")
	held := acquire(t, c.lock(t, place))
	shown(t, place, c.Now().Add(-time.Hour))
	_, err := c.lock(t, place).Acquire(t.Context())
	var timeout *lock.TimeoutError
	assert.True(t, errors.As(err, &timeout), "not a time-out:", err)
	assert.Equal(t, timeout.Waited, 10*time.Second)
	assert.Is(t, held.Check(), lock.ErrLost) // another program may be about to take it over
	assert.OK(t, held.Release())
	assert.OK(t, acquire(t, c.lock(t, place)).Release())
}

// Who has another cache directory waits for the holder all the same, and is told where to look.
func TestOtherCache(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	held := acquire(t, c.lock(t, filepath.Join(dir, "key", "lock")))
	other := c.lock(t, filepath.Join(dir, "other", "lock"))
	_, err := other.Acquire(t.Context())
	var timeout *lock.TimeoutError
	assert.Must(t, errors.As(err, &timeout), err)
	assert.Contains(t, timeout.Error(), "flock")
	assert.OK(t, held.Release())
	assert.OK(t, acquire(t, other).Release())
}

// A holder whose lock was taken over hears of it, and leaves the lock to its new owner.
func TestLost(t *testing.T) {
	c, place := newClock(), filepath.Join(t.TempDir(), "key", "lock")
	held := acquire(t, c.lock(t, place))
	assert.OK(t, os.Remove(place))
	assert.Is(t, held.Check(), lock.ErrLost)
	assert.OK(t, os.Mkdir(place, 0o700))
	assert.Is(t, held.Check(), lock.ErrLost)
	assert.OK(t, held.Release())
	assert.OK(t, os.Remove(place))
}

// Whoever waits stops when its context ends, in the queue and at the directory.
func TestCanceled(t *testing.T) {
	c := newClock()
	place := others(t, c, 0)
	ctx, cancel := context.WithCancel(t.Context())
	c.during = func(time.Duration) { cancel() }
	assert.Is(t, assert.ErrOf(c.lock(t, place).Acquire(ctx)), context.Canceled)
	assert.OK(t, os.Remove(place))
	l := c.lock(t, place)
	held := acquire(t, l)
	assert.Is(t, assert.ErrOf(l.Acquire(ctx)), context.Canceled)
	assert.OK(t, held.Release())
}

// What is no directory with locks is refused, and nothing is made for it.
func TestNoLocks(t *testing.T) {
	place := filepath.Join(t.TempDir(), "key", "lock")
	fd := assert.Of(unix.Open(filepath.Dir(filepath.Dir(place)), unix.O_PATH, 0)).OK(t)
	defer unix.Close(fd)
	assert.Is(t, assert.ErrOf(lock.New(fd, place, lock.Options{}).Acquire(t.Context())), errors.ErrUnsupported)
	assert.Is(t, assert.ErrOf(os.Stat(filepath.Dir(place))), os.ErrNotExist)
}

// One at a time, of goroutines that share a Lock and of others, which stand for other
// processes.
func TestExcludes(t *testing.T) {
	place := filepath.Join(t.TempDir(), "key", "lock")
	newLock := func(place string) *lock.Lock {
		return lock.New(open(t, place), place, lock.Options{Timeout: assert.Hangs})
	}
	locks := []*lock.Lock{newLock(place), newLock(place)}
	var inside, total atomic.Int32 // atomic, since the race detector knows nothing of locks of the kernel
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for range 10 {
				held, err := locks[i%2].Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				assert.Equal(t, inside.Add(1), 1, "inside at one time")
				total.Add(1)
				inside.Add(-1)
				assert.OK(t, errors.Join(held.Check(), held.Release()))
			}
		})
	}
	wg.Wait()
	assert.Equal(t, total.Load(), 60)
}

package cache

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// refusing is a backend that refuses to read while it is told to, and a clock that
// only the pauses between tries move.
type refusing struct {
	clock *testClock
	down  atomic.Bool
	until time.Time // it is back by then; zero: it is not
}

func newRefusing(t *testing.T) (*scene, *refusing) {
	r := &refusing{clock: newTestClock()}
	return newScene(t, holding("a", "1", "b", "2", "c", "3"), func(w *world, o *Options) {
		o.Now, o.Patience = r.clock.now, time.Minute
		o.pause = func(ctx context.Context, d time.Duration) error {
			r.clock.pass(d)
			return ctx.Err()
		}
		w.wrap = func(p providers.Provider) providers.Provider {
			return providers.Wrap(p, providers.WrapOptions{Around: func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
				if c.Method == providers.MethodRead && r.down.Load() && (r.until.IsZero() || r.clock.now().Before(r.until)) {
					return &providers.Error{Op: c.Method, Kind: providers.ErrUnavailable}
				}
				return next(ctx)
			}})
		}
	}), r
}

// read opens and reads a file, and says how long that took by the clock.
func (r *refusing) read(w *scene, name string) (time.Duration, error) {
	w.Helper()
	began := r.clock.now()
	_, err := w.tryGet(name)
	return r.clock.now().Sub(began), err
}

// While the backend refuses, the first who reads waits for half of the patience,
// and who comes after that for a second, until it is back.
func TestReadsOfABackendThatRefuses(t *testing.T) {
	w, r := newRefusing(t)
	w.list("")
	r.down.Store(true)
	for i, most := range []time.Duration{32 * time.Second, 3 * time.Second, 3 * time.Second} {
		took, err := r.read(w, "a")
		if !errors.Is(err, fs.ErrUnavailable) {
			t.Fatalf("read %d: %v", i, err)
		}
		if least := []time.Duration{29 * time.Second, files.TriedFor, files.TriedFor}[i]; took < least || took > most {
			t.Errorf("read %d took %v, want %v to %v", i, took, least, most)
		}
	}
	r.down.Store(false)
	if took, err := r.read(w, "a"); err != nil || took > time.Second {
		t.Errorf("once it is back: %v after %v", err, took)
	}
	r.down.Store(true)
	if took, _ := r.read(w, "b"); took < 29*time.Second {
		t.Errorf("the next time that it is gone, it was given %v", took)
	}
}

// No reader hears of a restart, also when the one before was never heard of the
// end of; and none waits for long once it is over.
func TestReadsDuringARestart(t *testing.T) {
	w, r := newRefusing(t)
	w.list("")
	r.down.Store(true)
	if _, err := r.read(w, "a"); err == nil {
		t.Fatal("it was read")
	}
	r.clock.pass(time.Hour) // it was back, and nobody asked
	r.until = r.clock.now().Add(10 * time.Second)
	took, err := r.read(w, "b")
	if err != nil || took > 12*time.Second {
		t.Errorf("a restart of 10 s: %v after %v", err, took)
	}
}

// tryGet reads a file, or fails.
func (w *scene) tryGet(name string) (string, error) {
	w.Helper()
	o, err := w.v.Open(me, w.walk(name), syscall.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer o.File.Release()
	d, err := o.File.Read(me, make([]byte, 100), 0)
	return string(d.Bytes), err
}

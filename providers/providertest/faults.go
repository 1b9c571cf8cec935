package providertest

import (
	"context"
	"io"
	"sync"

	"github.com/wsmount/wsmount/providers"
)

// Fault is a failure in one call. The zero Fault changes nothing. Kinds may be combined.
type Fault struct {
	// Before fails the call before the provider sees it.
	Before error
	// Gate holds the call until it is closed, or the call's context ends.
	Gate <-chan struct{}
	// Reached, if not nil, is closed when the call is at its Gate, or past it.
	Reached chan<- struct{}
	// Cut, if not nil, ends the content of a Read, Write or Part with this
	// error after CutAfter bytes; the content must be longer.
	Cut      error
	CutAfter int64
	// After fails the call when the provider has done it: a lost answer.
	After error
}

// Faults are queued for methods; each call of a method takes the first of its queue. Make it
// with NewFaults.
type Faults struct {
	mu      sync.Mutex // guards all below
	queues  map[providers.Method][]Fault
	pending map[providers.Method]int // queued and not yet come into effect
}

// NewFaults is an empty injector. When t ends it fails for every fault that never came into
// effect: a test that does not meet its fault tests nothing.
func NewFaults(t T) *Faults {
	f := &Faults{queues: map[providers.Method][]Fault{}, pending: map[providers.Method]int{}}
	t.Cleanup(func() {
		t.Helper()
		for method, n := range f.Unhit() {
			t.Errorf("%d faults of %s never came into effect", n, method)
		}
	})
	return f
}

// Queue adds faults for future calls of m.
func (f *Faults) Queue(m providers.Method, faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queues[m] = append(f.queues[m], faults...)
	f.pending[m] += len(faults)
}

// Unhit counts the faults that did not come into effect yet.
func (f *Faults) Unhit() map[providers.Method]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := map[providers.Method]int{}
	for m, n := range f.pending {
		if n > 0 {
			left[m] = n
		}
	}
	return left
}

// Wrap puts the injector around p. Several providers may share one.
func (f *Faults) Wrap(p providers.Provider) providers.Provider {
	return providers.Wrap(p, providers.WrapOptions{Around: f.around})
}

// take is the fault for this call, if there is one.
func (f *Faults) take(m providers.Method) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	queue := f.queues[m]
	if len(queue) == 0 {
		return Fault{}, false
	}
	f.queues[m] = queue[1:]
	return queue[0], true
}

func (f *Faults) hit(m providers.Method) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending[m]--
}

func (f *Faults) around(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
	fault, ok := f.take(c.Method)
	if !ok {
		return next(ctx)
	}
	if fault.Cut == nil {
		f.hit(c.Method)
	}
	if err := fault.wait(ctx); err != nil {
		return providers.Fail("", c.Method, c.Locator, err, providers.ErrUnavailable)
	}
	if fault.Before != nil {
		return fault.Before
	}
	if fault.Cut != nil {
		c.Body = func(r io.Reader) io.Reader {
			return &cut{r: r, left: fault.CutAfter, err: fault.Cut, hit: func() { f.hit(c.Method) }}
		}
	}
	err := next(ctx)
	if fault.After != nil {
		return fault.After
	}
	return err
}

func (f Fault) wait(ctx context.Context) error {
	if f.Reached != nil {
		close(f.Reached)
	}
	if f.Gate == nil {
		return nil
	}
	select {
	case <-f.Gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cut is content that breaks off.
type cut struct {
	r    io.Reader
	left int64
	err  error
	hit  func()
}

func (c *cut) Read(b []byte) (int, error) {
	if c.left == 0 {
		if c.hit != nil {
			c.hit()
			c.hit = nil
		}
		return 0, c.err
	}
	n, err := c.r.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	return n, err
}

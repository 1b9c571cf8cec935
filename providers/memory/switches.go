package memory

import (
	"context"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Switches make a store misbehave while it is used. All methods may be called at any time. Calls
// that stay on the machine are only counted, or failed when Fail names them; delay and Cut are for
// the way to the remote.
type Switches struct {
	sleep  func(ctx context.Context, d time.Duration) error
	mu     sync.Mutex // guards all below
	delay  time.Duration
	outage chan struct{} // not nil: cut; closed when the connection is back
	hang   bool          // in an outage, verbs wait
	queued map[providers.Method][]failing
	calls  map[providers.Method]int
}

// failing is the fate of a future call.
type failing struct {
	kind error
	lost bool // fails after the call was done
}

// NewSwitches makes Switches that only delay. sleep waits; nil: with a timer.
func NewSwitches(delay time.Duration, sleep func(ctx context.Context, d time.Duration) error) *Switches {
	if sleep == nil {
		sleep = wait
	}
	return &Switches{
		sleep: sleep, delay: delay,
		queued: map[providers.Method][]failing{}, calls: map[providers.Method]int{},
	}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Delay makes each call take d longer.
func (s *Switches) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// Cut begins an outage: every call fails with ErrUnavailable at once, or with
// hang waits until its context ends or Connect is called. Content that is being
// read stops too.
func (s *Switches) Cut(hang bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outage == nil {
		s.outage = make(chan struct{})
	}
	s.hang = hang
}

// Connect ends the outage; calls that wait go on.
func (s *Switches) Connect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outage != nil {
		close(s.outage)
		s.outage = nil
	}
}

// Fail makes the next n calls of m that no other failure is queued for fail with kind, before
// anything happens.
func (s *Switches) Fail(m providers.Method, n int, kind error) {
	s.queue(m, n, failing{kind: kind})
}

// Lose makes the next n calls of m that no other failure is queued for take effect, and answer
// ErrUnavailable. Calls that fail by themselves count.
func (s *Switches) Lose(m providers.Method, n int) {
	s.queue(m, n, failing{kind: providers.ErrUnavailable, lost: true})
}

func (s *Switches) queue(m providers.Method, n int, f failing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.queued[m] = append(s.queued[m], f)
	}
}

// Clear drops queued failures, and ends delay and outage. Counts stay.
func (s *Switches) Clear() {
	s.Delay(0)
	s.Connect()
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.queued)
}

// Calls counts the calls of each verb so far, failed ones too.
func (s *Switches) Calls() map[providers.Method]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// begin counts a call and takes the failure queued for it.
func (s *Switches) begin(m providers.Method) (f failing, delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[m]++
	if queue := s.queued[m]; len(queue) > 0 {
		f, s.queued[m] = queue[0], queue[1:]
	}
	return f, s.delay
}

// Around runs one call, of a method that leaves the machine or does not, with the misbehaviour set
// on the switches. Its error is that, or the call's. A call whose ctx has ended is not run.
func (s *Switches) Around(ctx context.Context, m providers.Method, remote bool, call func() error) error {
	f, delay := s.begin(m)
	if remote && delay > 0 {
		if err := s.sleep(ctx, delay); err != nil {
			return err
		}
	}
	if remote {
		if err := s.connected(ctx); err != nil {
			return err
		}
	}
	if f.kind != nil && !f.lost {
		return fmt.Errorf("as the switches say: %w", f.kind)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := call()
	if f.lost {
		return fmt.Errorf("the answer got lost, as the switches say: %w", f.kind)
	}
	return err
}

// connected waits for the end of an outage that hangs, and fails in any other.
func (s *Switches) connected(ctx context.Context) error {
	for {
		s.mu.Lock()
		outage, hang := s.outage, s.hang
		s.mu.Unlock()
		switch {
		case outage == nil:
			return nil
		case !hang:
			return fmt.Errorf("cut off: %w", providers.ErrUnavailable)
		}
		select {
		case <-outage:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// body is content that an outage stops.
func (s *Switches) body(ctx context.Context, r io.Reader) io.Reader {
	return stoppable{ctx, s, r}
}

type stoppable struct {
	ctx context.Context
	s   *Switches
	r   io.Reader
}

func (b stoppable) Read(p []byte) (int, error) {
	if err := b.s.connected(b.ctx); err != nil {
		return 0, providers.Fail(name, providers.MethodRead, providers.Locator{}, err, providers.ErrUnavailable)
	}
	return b.r.Read(p)
}

package lifecycle

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

// fakeClock runs due functions on the goroutine that advances it.
type fakeClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*fakeTimer
}

type fakeTimer struct {
	at time.Time
	f  func()
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) AfterFunc(d time.Duration, f func()) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &fakeTimer{c.now.Add(d), f}
	c.timers = append(c.timers, t)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timers = slices.DeleteFunc(c.timers, func(o *fakeTimer) bool { return o == t })
	}
}

func (c *fakeClock) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// advance moves the clock second by second and runs what falls due.
func (c *fakeClock) advance(d time.Duration) {
	for end := c.Now().Add(d); c.Now().Before(end); {
		c.mu.Lock()
		c.now = c.now.Add(time.Second)
		var due []*fakeTimer
		for _, t := range c.timers {
			if !t.at.After(c.now) {
				due = append(due, t)
			}
		}
		c.timers = slices.DeleteFunc(c.timers, func(t *fakeTimer) bool { return slices.Contains(due, t) })
		c.mu.Unlock()
		for _, t := range due {
			t.f()
		}
	}
}

func newIdleBus() (*Bus, *fakeClock) {
	c := &fakeClock{now: time.Unix(1_800_000_000, 0)}
	return New(Options{Clock: c}), c
}

func talk(name, conversation string) Event {
	return Event{Name: name, Payload: map[string]string{PayloadConversation: conversation}}
}

func TestIdleFiresOncePerSilence(t *testing.T) {
	b, clock := newIdleBus()
	handler, done := record(b)
	b.On("idle-30", handler)
	clock.advance(29 * time.Second)
	b.Emit(Event{Name: "write"}) // a second before it was due
	clock.advance(29 * time.Second)
	b.Emit(Event{Name: "write"})
	clock.advance(300 * time.Second) // fires once
	b.Emit(Event{Name: "delete"})
	clock.advance(30 * time.Second) // and once more
	assert.Slice(t, done(), []string{"idle-30", "idle-30"})
}

// An idle event is not activity, also when somebody else emits it.
func TestIdleEventsDoNotWake(t *testing.T) {
	b, clock := newIdleBus()
	handler, done := record(b)
	b.On("idle-30", handler)
	clock.advance(20 * time.Second)
	b.Emit(Event{Name: "idle-10"})
	clock.advance(10 * time.Second)
	assert.Slice(t, done(), []string{"idle-30"})
}

func TestIdleThresholdsAreIndependent(t *testing.T) {
	b, clock := newIdleBus()
	handler, done := record(b)
	for _, name := range []string{"idle-10", "idle-20", "idle-40"} {
		b.On(name, handler)
	}
	clock.advance(25 * time.Second) // idle-10 is no event for idle-20
	got := done()
	slices.Sort(got) // each subscriber has its own queue
	assert.Slice(t, got, []string{"idle-10", "idle-20"})
}

func TestConversationIdle(t *testing.T) {
	b, clock := newIdleBus()
	var got []string
	b.On("conversation-idle-60", func(e Event) {
		got = append(got, e.Payload[PayloadConversation]+" after "+e.Payload["idleSeconds"])
	})
	b.Emit(talk("turn-end", "a"))
	clock.advance(30 * time.Second)
	b.Emit(talk("turn-end", "b"))
	b.Emit(talk("turn-end", "ended"))
	b.Emit(talk("conversation-end", "ended"))
	b.Emit(Event{Name: "write"}) // of no conversation
	clock.advance(30 * time.Second)
	waitEmpty(t, b)
	clock.advance(120 * time.Second)
	b.Close()
	assert.Slice(t, got, []string{"a after 60", "b after 60"})
}

func TestConversationsBeforeTheSubscriptionCount(t *testing.T) {
	b, clock := newIdleBus()
	handler, done := record(b)
	b.Emit(talk("turn-end", "a"))
	clock.advance(50 * time.Second)
	b.On("conversation-idle-60", handler)
	clock.advance(10 * time.Second)
	assert.Slice(t, done(), []string{"conversation-idle-60"})
}

func TestConversationsAreBounded(t *testing.T) {
	b, clock := newIdleBus()
	defer b.Close()
	for n := range maxConversations + 10 {
		clock.advance(time.Second)
		b.Emit(talk("turn-end", strconv.Itoa(n)))
	}
	assert.Equal(t, len(b.idle.talks), maxConversations, "conversations")
	if _, kept := b.idle.talks["9"]; kept {
		t.Error("the quietest conversation was kept")
	}
	if _, kept := b.idle.talks["10"]; !kept {
		t.Error("a conversation was dropped that was not the quietest")
	}
}

// Who listens to everything gets the idle events that somebody asked for, and no longer
// than he asks.
func TestTimersStopWithoutSubscriber(t *testing.T) {
	b, clock := newIdleBus()
	handler, done := record(b)
	b.On(Any, handler)
	stop := b.On("idle-5", handler)
	clock.advance(4 * time.Second)
	stop()
	clock.advance(time.Minute)
	b.Emit(Event{Name: "write"})
	assert.Equal(t, clock.waiting(), 0, "timers wait for nobody")
	b.On("idle-5", handler)
	assert.Slice(t, done(), []string{"write"})
	assert.Equal(t, clock.waiting(), 0, "timers are left after Close")
}

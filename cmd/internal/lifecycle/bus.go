// Package lifecycle is the event bus of one mount: the names of AIP-37, their
// aliases and idle timers, and the envelope of its ADAPTER.
//
// It promises that Emit never waits for a subscriber, that a subscriber sees
// events in the order in which they were emitted, and that events a slow one
// missed are counted and reported, never silently gone. Delivery is in-process and
// best effort, as AIP-37 has it. A name that AIP-37 does not define is
// tolerated: it is logged once and never fires.
//
//	bus := lifecycle.New(lifecycle.Options{Log: log})
//	stop := bus.On("per-turn", func(e lifecycle.Event) { ... }) // an alias of turn-end
//	defer stop()
//	bus.Emit(lifecycle.Event{Name: "turn-end"})
package lifecycle

import (
	"log/slog"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
	"github.com/wsmount/wsmount/mountspec"
)

// Kinds of a Source that wsmount itself uses (AIP-37 ADAPTER, "Envelope").
const (
	SourceHost    = "host"
	SourceStorage = "storage"
	SourceSession = "session"
)

// Any is the name that subscribes to every event.
const Any = "*"

// queueLength bounds the events that wait for one subscriber.
const queueLength = 1024

// Source names the emitter of an event.
type Source struct {
	Kind string `json:"kind"` // routine, storage, corpus, session, workflow or host
	ID   string `json:"id"`
}

// Event is the envelope of AIP-37's ADAPTER. Payload is shared between
// subscribers: it must not be changed after Emit.
type Event struct {
	Name      string            `json:"name"`
	EmittedAt time.Time         `json:"emittedAt"`
	Source    Source            `json:"source"`
	Payload   map[string]string `json:"payload,omitempty"`

	// Missed is how many events this subscriber did not get before this one,
	// because it was too slow.
	Missed uint64 `json:"missed,omitempty"`
}

// Options of a Bus; the zero value works.
type Options struct {
	Log   *slog.Logger // nil: silent
	Queue int          // events that wait for one subscriber; 0: 1024
}

// Bus carries the events of one mount. All methods may be called concurrently.
type Bus struct {
	log   *slog.Logger
	queue int
	idle  *idleTimers

	mu      sync.Mutex // guards the fields below
	subs    map[*subscriber]struct{}
	unknown map[string]struct{} // names already logged
	closed  bool
	running sync.WaitGroup // one for each subscriber's goroutine
}

// New returns a bus without subscribers.
func New(o Options) *Bus {
	b := &Bus{log: o.Log, queue: o.Queue,
		subs: map[*subscriber]struct{}{}, unknown: map[string]struct{}{}}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if b.queue <= 0 {
		b.queue = queueLength
	}
	b.idle = newIdleTimers(b.deliver)
	return b
}

// Known reports whether events of this name can ever arrive: AIP-37 defines
// it, or it belongs to a host (<host>:<event>).
func Known(name string) bool {
	t := mountspec.Trigger(name)
	return t.Known() || t.IsNamespaced()
}

// Check refuses a name of which no event can ever arrive.
func Check(name string) error {
	if Known(name) {
		return nil
	}
	e := exit.New(exit.Usage, "AIP-37 knows no event %q", wrap.OneLine(name))
	if question := suggest.Phrase(name, Names()); question != "" {
		return e.Hint("%s", question)
	}
	return e.Hint("an event of your own is written <host>:<event>")
}

// Names lists the events of a fixed name and the aliases, for near matches.
func Names() []string {
	var out []string
	for _, t := range append(mountspec.StandardEvents(), mountspec.Aliases()...) {
		out = append(out, string(t))
	}
	return out
}

// Emit delivers an event to all its subscribers and returns at once. An
// alias is emitted as its event. Emit fills EmittedAt when it is zero, and
// reports false for an unknown name, to which nothing can subscribe, and skips it.
func (b *Bus) Emit(e Event) bool {
	if !Known(e.Name) {
		b.logUnknown("emit", e.Name)
		return false
	}
	e.Name = string(mountspec.Trigger(e.Name).Resolve())
	if e.EmittedAt.IsZero() {
		e.EmittedAt = time.Now()
	}
	b.deliver(e)
	b.idle.touch(e)
	return true
}

func (b *Bus) deliver(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subs {
		if s.name == Any || s.name == e.Name {
			s.offer(e)
		}
	}
}

// On calls handler for every event of a name, or of every name for Any, one at
// a time and in order, on a goroutine of its own. An alias is resolved at once, and
// idle-<N> and conversation-idle-<N> start their timer. Unsubscribe returns
// without waiting for a handler that runs.
func (b *Bus) On(name string, handler func(Event)) (unsubscribe func()) {
	name = string(mountspec.Trigger(name).Resolve())
	if name != Any && !Known(name) {
		b.logUnknown("subscribe", name)
		return func() {}
	}
	s := &subscriber{name: name, events: make(chan Event, b.queue), done: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return func() {}
	}
	b.subs[s] = struct{}{}
	b.running.Go(func() { s.run(handler) })
	release := b.idle.want(name)
	return sync.OnceFunc(func() { b.remove(s); release() })
}

func (b *Bus) remove(s *subscriber) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.subs[s]; ok {
		delete(b.subs, s)
		close(s.done)
	}
}

// Close lets every subscriber finish the events in its queue, and waits for that.
// Later events go nowhere.
func (b *Bus) Close() {
	b.idle.close()
	b.mu.Lock()
	b.closed = true
	for s := range b.subs {
		delete(b.subs, s)
		close(s.events)
	}
	b.mu.Unlock()
	b.running.Wait()
}

// maxUnknown bounds the memory of logged names: they come from outside.
const maxUnknown = 1000

func (b *Bus) logUnknown(what, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, seen := b.unknown[name]; seen || len(b.unknown) >= maxUnknown {
		return
	}
	b.unknown[name] = struct{}{}
	b.log.Warn("unknown event name; it never fires", "during", what, "event", name)
}

// subscriber is one handler with its queue.
type subscriber struct {
	name   string
	events chan Event
	done   chan struct{} // closed by unsubscribe
	missed uint64        // since the last event that fitted; guarded by Bus.mu
}

// offer queues an event, or counts it as missed when the queue is full.
func (s *subscriber) offer(e Event) {
	e.Missed = s.missed
	select {
	case s.events <- e:
		s.missed = 0
	default:
		s.missed++
	}
}

func (s *subscriber) run(handler func(Event)) {
	for {
		select {
		case <-s.done:
			return
		case e, ok := <-s.events:
			if !ok {
				return
			}
			handler(e)
		}
	}
}

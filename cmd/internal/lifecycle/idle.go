package lifecycle

import (
	"strconv"
	"sync"
	"time"

	"github.com/wsmount/wsmount/mountspec"
)

// maxConversations bounds how many conversations are watched for idleness; the
// one that has been quiet for longest gives way.
const maxConversations = 4096

// PayloadConversation is the payload key that ties an event to a conversation.
const PayloadConversation = "conversationId"

// idleTimers makes idle-<N> and conversation-idle-<N> from the other events.
// Each fires once, N seconds after the last event (of its conversation), and
// not again before there was another event. An idle event is none itself.
//
// An event only notes the time. A timer that runs out early looks at the note
// and goes to sleep for the rest, so that a busy mount pays nothing per write.
type idleTimers struct {
	emit func(Event)

	mu     sync.Mutex // guards the fields below; emit is called without it
	last   time.Time
	talks  map[string]time.Time // conversation -> its last event
	users  map[string]int       // subscriptions per templated name
	armed  map[armed]*time.Timer
	closed bool
}

// armed is one running timer: a templated name, and the conversation for it.
type armed struct {
	name, conversation string
}

func newIdleTimers(emit func(Event)) *idleTimers {
	return &idleTimers{emit: emit, last: time.Now(), talks: map[string]time.Time{},
		users: map[string]int{}, armed: map[armed]*time.Timer{}}
}

// lockedTimers are idleTimers while their mutex is locked, from lock on.
type lockedTimers struct{ *idleTimers }

func (i *idleTimers) lock() lockedTimers {
	i.mu.Lock()
	return lockedTimers{i}
}

// want counts a subscription to a templated name and returns its release. For
// any other name it does nothing.
func (i *idleTimers) want(name string) (release func()) {
	if _, _, ok := mountspec.ParseTemplated(name); !ok {
		return func() {}
	}
	locked := i.lock()
	defer i.mu.Unlock()
	i.users[name]++
	locked.armAll(name)
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.users[name]--; i.users[name] == 0 {
			delete(i.users, name)
		}
	}
}

// touch notes an event and wakes the timers that have fired before.
func (i *idleTimers) touch(e Event) {
	if _, _, idle := mountspec.ParseTemplated(e.Name); idle {
		return
	}
	locked := i.lock()
	defer i.mu.Unlock()
	now := time.Now()
	i.last = now
	if id := e.Payload[PayloadConversation]; id != "" {
		if e.Name == string(mountspec.EventConversationEnd) {
			delete(i.talks, id)
		} else {
			locked.note(id, now)
		}
	}
	for name := range i.users {
		locked.rearm(name, e.Payload[PayloadConversation])
	}
}

func (i lockedTimers) note(id string, now time.Time) {
	if _, known := i.talks[id]; !known && len(i.talks) >= maxConversations {
		oldest := ""
		for c, at := range i.talks {
			if oldest == "" || at.Before(i.talks[oldest]) {
				oldest = c
			}
		}
		delete(i.talks, oldest)
	}
	i.talks[id] = now
}

// armAll starts every timer of a name that does not run yet.
func (i lockedTimers) armAll(name string) {
	i.rearm(name, "")
	for id := range i.talks {
		i.rearm(name, id)
	}
}

// rearm starts the timer of a name that an event of this conversation (empty:
// of none) concerns, unless it runs already.
func (i lockedTimers) rearm(name, conversation string) {
	base, seconds, _ := mountspec.ParseTemplated(name)
	after := time.Duration(seconds) * time.Second
	if base == mountspec.BaseIdle {
		i.arm(armed{name: name}, i.last, after)
	} else if at, alive := i.talks[conversation]; alive {
		i.arm(armed{name, conversation}, at, after)
	}
}

func (i lockedTimers) arm(k armed, since time.Time, after time.Duration) {
	if _, runs := i.armed[k]; runs || i.closed {
		return
	}
	wait := max(0, time.Until(since.Add(after)))
	i.armed[k] = time.AfterFunc(wait, func() { i.fire(k, after) })
}

// fire ends one wait: it emits, sleeps for the rest, or finds no subscriber.
func (i *idleTimers) fire(k armed, after time.Duration) {
	locked := i.lock()
	delete(i.armed, k)
	since, alive := i.last, true
	if k.conversation != "" {
		since, alive = i.talks[k.conversation]
	}
	if !alive || i.users[k.name] == 0 || i.closed {
		i.mu.Unlock()
		return
	}
	now := time.Now()
	if now.Sub(since) < after {
		locked.arm(k, since, after)
		i.mu.Unlock()
		return
	}
	i.mu.Unlock()
	e := Event{Name: k.name, EmittedAt: now, Source: Source{Kind: SourceHost, ID: "wsmount"},
		Payload: map[string]string{"idleSeconds": strconv.Itoa(int(now.Sub(since) / time.Second))}}
	if k.conversation != "" {
		e.Payload[PayloadConversation] = k.conversation
	}
	i.emit(e)
}

func (i *idleTimers) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	for k, timer := range i.armed {
		timer.Stop()
		delete(i.armed, k)
	}
}

package lifecycle

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

// record returns a handler and what it has been given so far: names, and behind a slash
// the conversation. The bus is closed by done, which waits for all deliveries.
func record(b *Bus) (handler func(Event), done func() []string) {
	var mu sync.Mutex
	var names []string
	return func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			if id := e.Payload[PayloadConversation]; id != "" {
				e.Name += "/" + id
			}
			names = append(names, e.Name)
		}, func() []string {
			b.Close()
			mu.Lock()
			defer mu.Unlock()
			return names
		}
}

func TestDelivery(t *testing.T) {
	tests := []struct {
		name      string
		subscribe string
		emit      []string
		want      []string
	}{
		{"by name", "turn-end", []string{"turn-start", "turn-end", "write"}, []string{"turn-end"}},
		{"an alias is resolved at subscription", "per-turn", []string{"turn-end"}, []string{"turn-end"}},
		{"an alias is emitted as its event", "turn-end", []string{"per-turn"}, []string{"turn-end"}},
		{"each-write is write", "each-write", []string{"write", "delete"}, []string{"write"}},
		{"per-conversation", "per-conversation", []string{"conversation-end"}, []string{"conversation-end"}},
		{"per-commit", "per-commit", []string{"storage-commit-completed"}, []string{"storage-commit-completed"}},
		{"any, in order", "*", []string{"write", "acme:sync", "delete"}, []string{"write", "acme:sync", "delete"}},
		{"a host's own name", "acme:sync", []string{"acme:sync", "other:sync"}, []string{"acme:sync"}},
		{"unknown is skipped", "*", []string{"turn-strat", "", "idle-0", "idle-bad"}, nil},
		{"unknown subscription never fires", "turn-strat", []string{"turn-strat", "turn-start"}, nil},
	}
	for _, tt := range tests {
		b := New(Options{})
		handler, done := record(b)
		b.On(tt.subscribe, handler)
		for _, name := range tt.emit {
			b.Emit(Event{Name: name})
		}
		assert.Slice(t, done(), tt.want, tt.name)
	}
}

func TestEmitSaysWhetherTheNameIsKnown(t *testing.T) {
	b := New(Options{})
	defer b.Close()
	for name, want := range map[string]bool{"write": true, "per-turn": true, "idle-30": true,
		"conversation-idle-600": true, "acme:x": true, "turn-strat": false, "idle-0": false} {
		assert.Equal(t, b.Emit(Event{Name: name}), want, name)
	}
}

func TestUnknownNameIsLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	b := New(Options{Log: slog.New(slog.NewTextHandler(&out, nil))})
	for range 3 {
		b.Emit(Event{Name: "turn-strat"})
	}
	b.Close()
	assert.Equal(t, strings.Count(out.String(), "turn-strat"), 1, "logged", out.String())
}

// A handler that never returns must not hold Emit, and its loss must be counted.
func TestSlowSubscriberMissesAndIsTold(t *testing.T) { synctest.Test(t, slowSubscriber) }

func slowSubscriber(t *testing.T) {
	b := New(Options{Queue: 2})
	entered, release := make(chan struct{}), make(chan struct{})
	var got []string
	b.On("write", func(e Event) {
		if len(got) == 0 {
			close(entered)
			<-release
		}
		got = append(got, fmt.Sprintf("%s missed %d", e.Payload["path"], e.Missed))
	})
	write := func(path string) { b.Emit(Event{Name: "write", Payload: map[string]string{"path": path}}) }
	write("a")
	<-entered // "a" is being handled, the queue is empty
	for _, path := range []string{"b", "c", "lost", "lost"} {
		write(path)
	}
	close(release)
	synctest.Wait() // for the queue to be empty
	write("d")
	b.Close()
	want := []string{"a missed 0", "b missed 0", "c missed 0", "d missed 2"}
	assert.Slice(t, got, want)
}

func TestUnsubscribe(t *testing.T) {
	b := New(Options{})
	handler, done := record(b)
	stop := b.On("write", handler)
	stop()
	stop() // twice is harmless
	b.Emit(Event{Name: "write"})
	assert.Equal(t, len(done()), 0, "after unsubscribing")
	b.On("write", handler) // after Close: nothing, and no leak
}

func TestEnvelope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{})
		var got Event
		b.On("*", func(e Event) { got = e })
		b.Emit(Event{Name: "delete", Source: Source{SourceStorage, "@acme/a"}, Payload: map[string]string{"path": "x"}})
		b.Close()
		assert.True(t, got.EmittedAt.Equal(time.Now()) && got.Source.ID == "@acme/a" && got.Payload["path"] == "x", got)
	})
}

func TestConcurrentUse(t *testing.T) {
	b := New(Options{Queue: 4})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				stop := b.On("idle-1", func(Event) {})
				b.Emit(Event{Name: "write", Payload: map[string]string{PayloadConversation: "c"}})
				stop()
			}
		})
	}
	wg.Wait()
	b.Close()
}

package lifecycle

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

// play does one step after the other. A number is seconds that pass, a name an event, and
// name/c one of the conversation c.
func play(b *Bus, steps string) {
	for _, step := range strings.Fields(steps) {
		if seconds, err := strconv.Atoi(step); err == nil {
			time.Sleep(time.Duration(seconds) * time.Second)
			synctest.Wait()
			continue
		}
		name, conversation, _ := strings.Cut(step, "/")
		b.Emit(Event{Name: name, Payload: map[string]string{PayloadConversation: conversation}})
	}
}

func TestIdle(t *testing.T) {
	for _, c := range []struct{ name, before, on, steps, want string }{
		{"once per silence", "", "idle-30", "29 write 29 write 300 delete 30", "idle-30 idle-30"},
		{"an idle event is no activity, also when somebody else emits it", "", "idle-30", "20 idle-10 10", "idle-30"},
		{"thresholds are independent", "", "idle-10 idle-20 idle-40", "25", "idle-10 idle-20"},
		{"conversations", "", "conversation-idle-60", "turn-end/a 30 turn-end/b turn-end/ended conversation-end/ended write 30 120",
			"conversation-idle-60/a conversation-idle-60/b"},
		{"a conversation before the subscription", "turn-end/a 50", "conversation-idle-60", "10", "conversation-idle-60/a"},
		{"a conversation that goes on", "", "conversation-idle-60", "turn-end/a 30 tool-call/a 59", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(Options{})
				play(b, c.before)
				handler, done := record(b)
				for _, name := range strings.Fields(c.on) {
					b.On(name, func(e Event) {
						assert.True(t, strings.HasSuffix(name, "-"+e.Payload["idleSeconds"]), "idle seconds", e)
						handler(e)
					})
				}
				play(b, c.steps)
				got := done()
				slices.Sort(got) // each subscriber has its own queue
				assert.Slice(t, got, strings.Fields(c.want))
			})
		})
	}
}

func TestConversationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{})
		defer b.Close()
		for n := range maxConversations + 10 {
			play(b, "1 turn-end/c"+strconv.Itoa(n))
		}
		assert.Equal(t, len(b.idle.talks), maxConversations, "conversations")
		_, quietest := b.idle.talks["c9"]
		_, next := b.idle.talks["c10"]
		assert.True(t, !quietest && next, "the quietest ten were dropped")
	})
}

// Who listens to everything gets the idle events that somebody asked for, and no longer
// than he asks.
func TestTimersStopWithoutSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{})
		handler, done := record(b)
		b.On(Any, handler)
		stop := b.On("idle-5", handler)
		play(b, "4")
		stop()
		play(b, "60 write")
		assert.Equal(t, len(b.idle.armed), 0, "timers wait for nobody")
		b.On("idle-5", handler)
		assert.Slice(t, done(), []string{"write"})
		assert.Equal(t, len(b.idle.armed), 0, "timers are left after Close")
	})
}

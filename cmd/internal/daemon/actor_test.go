package daemon

import (
	"testing"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
)

// The history is told of the turn and the conversation until they have ended, and of whose
// they are until somebody else's begin.
func TestActor(t *testing.T) {
	var got cache.Actor
	a := &actor{tell: func(now cache.Actor) { got = now }}
	for _, c := range []struct {
		event  mountspec.Trigger
		vars   map[string]string
		ended  bool
		want   cache.Actor
		inTurn bool
	}{
		{"workspace-open", nil, false, cache.Actor{Event: "workspace-open"}, false},
		{"turn-start", map[string]string{"conversationId": "c", "turnId": "1", "operator": "bob"}, false, cache.Actor{Name: "bob", Event: "turn-start", Turn: "1", Conversation: "c"}, true},
		{"tool-call", nil, true, cache.Actor{Name: "bob", Event: "tool-call", Turn: "1", Conversation: "c"}, true},
		{"turn-end", nil, false, cache.Actor{Name: "bob", Event: "turn-end", Turn: "1", Conversation: "c"}, false},
		{"turn-end", nil, true, cache.Actor{Name: "bob", Event: "turn-end", Conversation: "c"}, false},
		{"turn-start", map[string]string{"turnId": "2"}, true, cache.Actor{Name: "bob", Event: "turn-start", Turn: "2", Conversation: "c"}, true},
		{"turn-error", nil, true, cache.Actor{Name: "bob", Event: "turn-error", Conversation: "c"}, false},
		{"conversation-end", nil, true, cache.Actor{Name: "bob", Event: "conversation-end"}, false},
	} {
		a.follow(c.event, c.vars)
		if c.ended {
			a.ended(c.event)
		}
		assert.Equal(t, got, c.want, c.event)
		assert.Equal(t, a.now().inTurn, c.inTurn, c.event, "in a turn")
	}
}

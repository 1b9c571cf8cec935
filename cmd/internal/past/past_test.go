package past

import (
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/integration/assert"
)

func TestState(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]cache.State{
		"12":                   {Version: "12"},
		"turn:7":               {Turn: "7"},
		"turn:a:b":             {Turn: "a:b"},
		"conversation:c":       {Conversation: "c"},
		"event:turn-start":     {Event: "turn-start"},
		"2h":                   {Time: now.Add(-2 * time.Hour)},
		"2026-11-20T10:00:00Z": {Time: now.Add(-2 * time.Hour)},
	} {
		got, err := State("--to", s, true, now)
		want.Before = true
		assert.True(t, err == nil && got == want, s, got, err)
		assert.Equal(t, assert.Of(State("--to", got.Name(), true, now)).OK(t).Name(), got.Name(), s, "its name", got.Name())
	}
}

package past

import (
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache"
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
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v", s, got, err)
		}
		if again, err := State("--to", got.Name(), true, now); err != nil || again.Name() != got.Name() {
			t.Errorf("%q: its name %q is %+v, %v", s, got.Name(), again, err)
		}
	}
}

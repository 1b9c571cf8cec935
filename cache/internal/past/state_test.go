package past

import (
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/history/historytest"
	"github.com/wsmount/wsmount/integration/assert"
)

// A state has one name, and each kind of name leads to the state after it, or before.
func TestStates(t *testing.T) {
	w := newWorld(t)
	at := map[string]time.Time{}
	for _, put := range []struct {
		content string
		by      history.Actor
	}{
		{"0", history.Actor{}},
		{"1", history.Actor{Turn: "1", Conversation: "x", Event: "tool-call"}},
		{"2", history.Actor{Turn: "2", Conversation: "x", Event: "turn-start"}},
		{"3", history.Actor{Turn: "2", Conversation: "x", Event: "tool-call"}},
		{"4", history.Actor{Turn: "3", Conversation: "y", Event: "tool-call"}},
		{"5", history.Actor{Turn: "3", Conversation: "y", Event: "tool-call"}},
		{"6", history.Actor{}},
	} {
		w.Keeper.SetActor(put.by)
		w.Do("put f "+put.content, "wait")
		at[put.content] = w.Now()
	}
	list := w.versions(LogFilter{Path: "f", Turn: "2"})
	for _, test := range []struct {
		name, called  string
		s             State
		after, before string
	}{
		{"version", list[0].ID, State{Version: list[0].ID}, "3", "2"},
		{"time", at["2"].Format(time.RFC3339Nano), State{Time: at["2"]}, "2", "2"},
		{"time of a change", list[0].Time.Format(time.RFC3339Nano), State{Time: list[0].Time}, "3", "2"},
		{"event", "event:turn-start", State{Event: "turn-start"}, "2", "1"},
		{"event of many turns", "event:tool-call", State{Event: "tool-call"}, "5", "3"},
		{"turn", "turn:2", State{Turn: "2"}, "3", "1"},
		{"conversation", "conversation:x", State{Conversation: "x"}, "3", "0"},
		{"turn of a conversation", "turn:3 conversation:y", State{Turn: "3", Conversation: "y"}, "5", "3"},
	} {
		assert.Equal(t, test.s.Name(), test.called, test.name)
		for _, want := range []string{test.after, test.before} {
			pl := assert.Of(w.past.Plan(t.Context(), "f", test.s)).OK(t)
			assert.Must(t, len(pl.Items) == 1, test.name, "before", test.s.Before, "got", pl)
			r, _, err := w.past.Open(pl.Items[0])
			assert.Equal(t, historytest.ReadAll(t, r, err), want, test.name, "before", test.s.Before)
			test.s.Before = true
		}
	}
}

// The state of a time to come is the one of now, and of a time long ago there is none.
func TestStateOfAnyYear(t *testing.T) {
	w := newWorld(t, "put f one", "put f two")
	for year, want := range map[int]int{1600: 1, 2500: 0} {
		for _, before := range []bool{false, true} {
			pl := assert.Of(w.past.Plan(t.Context(), "f", State{Time: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), Before: before})).OK(t)
			assert.Equal(t, len(pl.Items)+len(pl.Remove)+len(pl.Unsure), want, "year", year, "before", before, pl)
		}
	}
}

// A state with no name, or with two, is none; nor is one that never was.
func TestNoState(t *testing.T) {
	w := newWorld(t, "put f one")
	for _, test := range []struct {
		s    State
		want error
	}{
		{State{}, syscall.EINVAL},
		{State{Before: true}, syscall.EINVAL},
		{State{Version: "1", Turn: "7"}, syscall.EINVAL},
		{State{Event: "turn-start", Time: time.Unix(1, 0)}, syscall.EINVAL},
		{State{Event: "no-such"}, ErrNoVersion},
		{State{Version: "4711"}, ErrNoVersion},
		{State{Version: "4711", Before: true}, ErrNoVersion},
		{State{Commit: "none such"}, ErrNoVersion},
	} {
		assert.Is(t, assert.ErrOf(w.past.Restore(t.Context(), changes{w}, RestoreOptions{To: test.s})), test.want, "restore", test.s)
		assert.Is(t, assert.ErrOf(w.past.Diff(t.Context(), DiffOptions{From: test.s})), map[bool]error{false: test.want, true: syscall.EINVAL}[test.s.IsZero()], "diff", test.s)
	}
}

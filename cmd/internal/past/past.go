// Package past reads the times and states of the past that a user writes, and names changes of files.
//
//	state, err := past.State("--to", "turn:7", false, time.Now())
package past

import (
	"strconv"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
)

// StateForms is how a state may be written, for the help.
const StateForms = "a version that `wsmount log` names, a time, event:NAME, turn:ID, conversation:ID or commit:NAME"

// State reads a state that name was given.
func State(name, s string, before bool, now time.Time) (state cache.State, err error) {
	state.Before = before
	kind, id, _ := strings.Cut(s, ":")
	switch {
	case kind == "event" && id != "":
		state.Event = id
		return state, nil
	case kind == "turn" && id != "":
		state.Turn = id
		return state, nil
	case kind == "conversation" && id != "":
		state.Conversation = id
		return state, nil
	case kind == "commit" && id != "":
		state.Commit = id
		return state, nil
	}
	if _, err := strconv.ParseUint(s, 10, 64); err == nil {
		state.Version = s
		return state, nil
	}
	if s != "" {
		state.Time, err = Time(name, s, now)
	}
	if s == "" || err != nil {
		return state, exit.New(exit.Usage, "%s %q is not a state", name, wrap.OneLine(s)).
			Hint("a version that `wsmount log` names, a time such as '2026-11-20 15:04' or 2h, event:NAME, turn:ID, conversation:ID or commit:NAME")
	}
	return state, nil
}

// timeForms are how a time may be written, in local time where it names no
// other.
var timeForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// Time reads a time that name was given, or how long ago it was; nothing is the zero time.
func Time(name, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, form := range timeForms {
		if t, err := time.ParseInLocation(form, s, now.Location()); err == nil {
			return t, nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, exit.New(exit.Usage, "%s %q is not a time", name, wrap.OneLine(s)).
		Hint("2026-11-20, '2026-11-20 15:04', 2026-11-20T15:04:05Z, or 2h for two hours ago")
}

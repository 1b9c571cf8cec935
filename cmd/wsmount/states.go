package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// stateForms is how a state of the past may be written, for the help.
const stateForms = "a version that `wsmount log` names, a time, event:NAME, turn:ID, conversation:ID or commit:NAME"

// parseState reads a state of the past that name was given.
func parseState(name, s string, before bool, now time.Time) (state cache.State, err error) {
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
		state.Time, err = parseTime(name, s, now)
	}
	if s == "" || err != nil {
		return state, exit.New(exit.Usage, "%s %q is not a state", name, oneLine(s)).
			Hint("a version that `wsmount log` names, a time such as '2026-11-20 15:04' or 2h, event:NAME, turn:ID, conversation:ID or commit:NAME")
	}
	return state, nil
}

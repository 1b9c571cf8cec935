package past

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// State names a state of the past: by one of Version, Time, Event, Commit, and Turn or
// Conversation, which may be combined.
//
// It is the state after the last change with that name: after that version, up to and with that
// time, of that turn. Of a file, a Version is its content, and of all else the state after it.
type State struct {
	Version      string    `json:"version,omitempty"`
	Time         time.Time `json:"time,omitzero"`
	Event        string    `json:"event,omitempty"`
	Turn         string    `json:"turn,omitempty"`
	Conversation string    `json:"conversation,omitempty"`
	Commit       string    `json:"commit,omitempty"` // a revision of the store, or enough of its name

	// Before is the state before the first such change. An event comes again and
	// again: it is the one before the last run of changes of that event, which
	// ends where a change of another event, turn or conversation comes between.
	// Before a commit is the one that it was made of, the first if there are two.
	Before bool `json:"before,omitempty"`
}

// IsZero reports whether it names no state.
func (s State) IsZero() bool { return s.kinds() == 0 }

// kinds is how many of the names that exclude each other are given.
func (s State) kinds() (n int) {
	for _, given := range []bool{s.Version != "", !s.Time.IsZero(), s.Event != "", s.Commit != "", s.Turn+s.Conversation != ""} {
		if given {
			n++
		}
	}
	return n
}

func (s State) check() error {
	if s.kinds() != 1 {
		return fmt.Errorf("one of version, time, event, commit, and turn or conversation is needed: %w", syscall.EINVAL)
	}
	return nil
}

// Name is the form in which a person writes it, without Before.
func (s State) Name() string {
	var names []string
	for _, n := range []struct{ kind, name string }{
		{"", s.Version}, {"event:", s.Event}, {"commit:", s.Commit}, {"turn:", s.Turn}, {"conversation:", s.Conversation}} {
		if n.name != "" {
			names = append(names, n.kind+n.name)
		}
	}
	if !s.Time.IsZero() {
		names = append(names, s.Time.Format(time.RFC3339Nano))
	}
	return strings.Join(names, " ")
}

// cutOf is the record before which a state ends.
func (h *Past) cutOf(ctx context.Context, s State) (uint64, error) {
	switch {
	case s.Version != "":
		return h.cutAtVersion(s)
	case !s.Time.IsZero():
		return h.cutAtTime(ctx, s)
	}
	first, last, err := h.runOf(ctx, s)
	switch {
	case err != nil:
		return 0, err
	case last == 0:
		return 0, history.Unchanged{By: s.Name(), Err: ErrNoVersion}
	case s.Before:
		return first, nil
	}
	return last + 1, nil
}

func (h *Past) cutAtVersion(s State) (uint64, error) {
	id, ok := parseID(s.Version)
	err := h.o.Tree.View(func(v *tree.View) error {
		if !ok || history.Get(v, id) == nil {
			return fmt.Errorf("%q: %w", s.Version, ErrNoVersion)
		}
		return nil
	})
	if !s.Before {
		id++
	}
	return id, err
}

func (h *Past) cutAtTime(ctx context.Context, s State) (uint64, error) {
	cut, at := ^uint64(0), table.Nanoseconds(s.Time)
	if s.Before && at > math.MinInt64 {
		at--
	}
	err := h.eachRecord(ctx, func(v *tree.View, id uint64, r *history.Record) {
		if r.Time > at {
			cut = min(cut, id)
		}
	})
	return cut, err
}

// runOf finds the first and the last record of a turn or a conversation, or of
// the last run of an event; 0 when there is none.
func (h *Past) runOf(ctx context.Context, s State) (first, last uint64, err error) {
	f := LogFilter{Event: s.Event, Turn: s.Turn, Conversation: s.Conversation}
	var before history.Actor
	err = h.eachRecord(ctx, func(v *tree.View, id uint64, r *history.Record) {
		if f.matches(r) {
			if first == 0 || s.Event != "" && r.Actor != before {
				first = id
			}
			last = id
		}
		before = r.Actor
	})
	return first, last, err
}

// reachOf says which part of a state the history does not know, because it does not reach back so
// far: to a time, or beyond its first record.
func (h *Past) reachOf(s State, before bool) error {
	v := h.o.Tree.Lock()
	defer h.o.Tree.Unlock()
	last, _ := strconv.ParseInt(string(v.Get(history.PrunedKey)), 16, 64)
	switch {
	case last == 0, s.Time.IsZero() && (before || !s.Before), !s.Time.IsZero() && table.Nanoseconds(s.Time) >= last:
		return nil
	}
	return fmt.Errorf("what happened up to %s is not known any more", time.Unix(0, last).Format(time.RFC3339))
}

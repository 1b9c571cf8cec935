package ui

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/progress"
	"github.com/wsmount/wsmount/cmd/internal/statustext"
)

// A row is one of package statustext.
type row struct{ Name, Value string }

// rowsOf are the rows that f gives, each once: names that say the same as the row before, "",
// follow it.
func rowsOf(f func(statustext.Row)) (list []row) {
	f(func(name, value string) {
		if value != "" {
			list = append(list, row{name, visible(value)})
		}
	})
	return list
}

type overviewBody struct {
	Reasons []control.Reason
	Rows    []row
	Parts   []overviewPart
}

type overviewPart struct {
	At, Name string
	Rows     []row
}

// overview shows the state of the mount, with the reasons for restrictions and failures first.
func overview(_ context.Context, a ask) (view, error) {
	var b overviewBody
	now := a.now()
	b.Rows = rowsOf(func(r statustext.Row) { statustext.Mount(r, a.status, now) })
	for _, p := range a.sortedParts() {
		b.Reasons = append(b.Reasons, p.Reasons()...)
		b.Parts = append(b.Parts, overviewPart{p.At, p.Name, rowsOf(func(r statustext.Row) { statustext.Part(r, p, now) })})
	}
	return view{Page: "overview", Title: "Overview", Body: b}, nil
}

// sortedParts has each part after the one that it lies in.
func (a ask) sortedParts() []control.Part {
	return slices.SortedStableFunc(slices.Values(a.status.Parts), func(x, y control.Part) int { return strings.Compare(x.At, y.At) })
}

type queueBody struct {
	Parts    []queuePart
	ReadOnly string // why nothing can be committed
	Halted   bool   // a commit waits for a person's word
	Empty    bool
}

type queuePart struct {
	control.Part
	Unsaved string
	Sending []sending
	Reasons []control.Reason
	Recent  []control.Failure // the newest first
}

// A sending is a change on its way to the store.
type sending struct {
	control.Transfer
	Text string
}

// queue shows the changes that the stores do not have yet, and failures.
func queue(_ context.Context, a ask) (view, error) {
	b := queueBody{ReadOnly: allReadOnly(a.status), Empty: true}
	now := a.now()
	for _, p := range a.sortedParts() {
		q := queuePart{Part: p, Reasons: p.Reasons(), Recent: slices.Clone(p.Recent)}
		slices.Reverse(q.Recent)
		for _, r := range rowsOf(func(r statustext.Row) { statustext.Part(r, p, now) }) {
			if r.Name == "unsaved" {
				q.Unsaved = r.Value
			}
		}
		if c := p.Copy; c != nil {
			for _, t := range c.InFlight {
				q.Sending = append(q.Sending, sending{t, progress.Transfer(t.Sent, t.Size, time.Duration(t.Seconds*float64(time.Second)))})
			}
			for _, h := range c.Halted {
				b.Halted = b.Halted || strings.HasPrefix(h, control.HaltedCommit)
			}
		}
		b.Empty = b.Empty && p.Copy == nil
		b.Parts = append(b.Parts, q)
	}
	return view{Page: "queue", Title: "Queue and errors", Body: b}, nil
}

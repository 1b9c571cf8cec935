package inforce

import (
	"context"
	"slices"
	"time"

	"github.com/wsmount/wsmount/mountspec/host"
)

// outdatedEvery is how long a change of what was accepted may go unseen.
const outdatedEvery = 5 * time.Second

// Outdated tells, until ctx ends, of the parts that go on with what was accepted before: a
// mount follows the facts of the host, and not what is accepted while it stands. look says
// of one how it is, or "". told is called whenever that changes.
func Outdated(ctx context.Context, parts []Part, look func(*host.Resolved) string, told func(notes []string)) {
	var before []string
	for {
		var notes []string
		for _, p := range parts {
			if p.Workspace == nil {
				continue
			}
			if note := look(p.Workspace); note != "" && !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
		if !slices.Equal(notes, before) {
			before = notes
			told(notes)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(outdatedEvery):
		}
	}
}

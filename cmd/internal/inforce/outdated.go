package inforce

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/mountspec/host"
)

// outdatedEvery is how long a change of what was accepted may go unseen.
const outdatedEvery = 5 * time.Second

// Outdated are notes of the parts that go on with what was accepted before: a mount follows
// the facts of the host, and not what is accepted while it stands.
type Outdated struct{ notes atomic.Pointer[[]string] }

// After are notes, and then those.
func (o *Outdated) After(notes []string) []string {
	if more := o.notes.Load(); more != nil {
		return slices.Concat(notes, *more)
	}
	return notes
}

// Watch looks at the parts until ctx ends. look says of one what it goes on with, or "".
// changed is told the notes whenever they are others.
func (o *Outdated) Watch(ctx context.Context, parts []Part, look func(*host.Resolved) string, changed func(notes []string)) {
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
		if !slices.Equal(notes, o.After(nil)) {
			o.notes.Store(&notes)
			changed(notes)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(outdatedEvery):
		}
	}
}

package inforce

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/mountspec/host"
)

// outdatedEvery is how long a newly accepted manifest may go unnoticed.
const outdatedEvery = 5 * time.Second

// Outdated are notes on the parts that still use a manifest accepted before: a mount
// follows the host's facts, but not manifests that are accepted while it stands.
type Outdated struct{ notes atomic.Pointer[[]string] }

// After returns notes, followed by its own.
func (o *Outdated) After(notes []string) []string {
	if more := o.notes.Load(); more != nil {
		return slices.Concat(notes, *more)
	}
	return notes
}

// Watch looks at the parts until ctx ends. look returns the note on a part, or "".
// changed is called with the notes whenever they change.
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

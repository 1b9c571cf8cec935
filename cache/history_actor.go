package cache

import (
	"github.com/wsmount/wsmount/cache/internal/history"
)

// Actor says on whose behalf files change, for the history.
type Actor = history.Actor

// SetActor says on whose behalf what changes from now on does.
func (v *Volume) SetActor(a Actor) { v.history.SetActor(a) }

package control

import (
	"cmp"
	"slices"
	"sync"

	"github.com/wsmount/wsmount/mountspec"
)

// An Outcome is how often an event, or a request, had a result.
type Outcome struct {
	Event  string `json:"event"`  // a name of AIP-37, pull, commit, push, or one of those below
	Result string `json:"result"` // done, put-off, held-back, conflict or failed
	Count  uint64 `json:"count"`
}

const (
	// EventByItself stands for work that was due by time, or because of a look at the tree.
	EventByItself = "by-itself"
	// eventOfHost stands for events that only a host knows, the names of which are unbounded.
	eventOfHost = "of-host"
)

// Outcomes counts them. The zero value has none; its methods may be called concurrently.
type Outcomes struct {
	mu     sync.Mutex // guards counts
	counts map[[2]string]uint64
}

// Add counts the result of an event.
func (o *Outcomes) Add(event string, r EventResult, err error) {
	event = string(mountspec.Trigger(event).Resolve())
	if base, _, idle := mountspec.ParseTemplated(event); idle {
		event = base
	} else if mountspec.IsNamespaced(event) {
		event = eventOfHost
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.counts == nil {
		o.counts = map[[2]string]uint64{}
	}
	o.counts[[2]string{event, r.outcome(err)}]++
}

// outcome is the worst of its results.
func (r EventResult) outcome(err error) string {
	switch {
	case err != nil || len(r.Failed) > 0:
		return "failed"
	case r.Conflicts > 0:
		return "conflict"
	case r.HeldBack > 0:
		return "held-back"
	case len(r.PutOff) > 0:
		return "put-off"
	}
	return "done"
}

// List returns them sorted by name.
func (o *Outcomes) List() (list []Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for of, n := range o.counts {
		list = append(list, Outcome{of[0], of[1], n})
	}
	slices.SortFunc(list, func(a, b Outcome) int { return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Result, b.Result)) })
	return list
}

package tree

import "github.com/wsmount/wsmount/cache/internal/table"

// An Observation is a look at the remote that takes a while. Of a name that changes
// meanwhile it may show the state before or after, and so counts for nothing.
type Observation struct {
	// changed are those names: true when we changed it at the remote, false when another
	// observation found it changed.
	changed map[table.Link]bool
}

// Observe begins an observation, before the remote is asked. EndObservation follows once
// its results have been used.
func (v *View) Observe() *Observation {
	o := &Observation{changed: map[table.Link]bool{}}
	v.guarded.observations[o] = struct{}{}
	return o
}

// EndObservation ends an observation.
func (v *View) EndObservation(o *Observation) { delete(v.guarded.observations, o) }

// Observe is View.Observe, until end, for callers without the lock.
func (t *Tree) Observe() (o *Observation, end func()) {
	o = t.Lock().Observe()
	t.Unlock()
	return o, func() {
		t.Lock().EndObservation(o)
		t.Unlock()
	}
}

// IsObserved reports whether an observation of the remote is under way.
func (v *View) IsObserved() bool { return len(v.guarded.observations) > 0 }

// IsOutdated reports whether an observation may show an outdated state of a name; ours,
// whether that is because of a change that we made at the remote.
func (v *View) IsOutdated(o *Observation, l table.Link) (outdated, ours bool) {
	ours, outdated = o.changed[l]
	return outdated, ours
}

// Found says that an observation, or nil, found some names changed: all others that are
// under way may have missed it.
func (v *View) Found(by *Observation, names ...table.Link) {
	for o := range v.guarded.observations {
		for _, l := range names {
			if o != by && !o.changed[l] { // a name that we changed stays marked
				o.changed[l] = false
			}
		}
	}
}

// ChangedByUs says that we changed a name at the remote, which the observations that are
// under way may have missed.
func (v *View) ChangedByUs(l table.Link) {
	for o := range v.guarded.observations {
		o.changed[l] = true
	}
}

// Succeed copies the marks of names in a directory that was removed to the directory that
// took its place.
func (v *View) Succeed(old, dir table.Ino) {
	for o := range v.guarded.observations {
		for l, ours := range o.changed {
			if l.Dir == old {
				o.changed[table.Link{Dir: dir, Name: l.Name}] = ours
			}
		}
	}
}

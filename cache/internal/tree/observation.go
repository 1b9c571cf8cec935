package tree

import "github.com/wsmount/wsmount/cache/internal/table"

// An Observation is a look at the remote that takes a while. Of a name that changes
// meanwhile it may show one state or the other, and what it says counts for nothing.
type Observation struct {
	// changed are those names: true when we changed it at the remote, false when another
	// look found something else under it.
	changed map[table.Link]bool
}

// Observe begins a look, before the remote is asked. EndObservation follows once what it
// showed has been used.
func (v *View) Observe() *Observation {
	o := &Observation{changed: map[table.Link]bool{}}
	v.guarded.observations[o] = struct{}{}
	return o
}

// EndObservation ends what Observe began.
func (v *View) EndObservation(o *Observation) { delete(v.guarded.observations, o) }

// Observe is View.Observe, until end, for who does not have the lock.
func (t *Tree) Observe() (o *Observation, end func()) {
	o = t.Lock().Observe()
	t.Unlock()
	return o, func() {
		t.Lock().EndObservation(o)
		t.Unlock()
	}
}

// IsObserved reports whether a look at the remote is under way.
func (v *View) IsObserved() bool { return len(v.guarded.observations) > 0 }

// IsOutdated reports whether what an observation shows of a name may be of the past; ours,
// whether that is because of a change that we made at the remote.
func (v *View) IsOutdated(o *Observation, l table.Link) (outdated, ours bool) {
	ours, outdated = o.changed[l]
	return outdated, ours
}

// Found says that one look, or nil, found something else under some names: all others that
// are under way may have missed it.
func (v *View) Found(by *Observation, names ...table.Link) {
	for o := range v.guarded.observations {
		for _, l := range names {
			if o != by && !o.changed[l] { // what we changed stays marked
				o.changed[l] = false
			}
		}
	}
}

// ChangedByUs says that we changed a name at the remote, which the looks that are under way
// may have missed.
func (v *View) ChangedByUs(l table.Link) {
	for o := range v.guarded.observations {
		o.changed[l] = true
	}
}

// Succeed has what is known of names in a directory that was removed count for those in
// the one that took its place.
func (v *View) Succeed(old, dir table.Ino) {
	for o := range v.guarded.observations {
		for l, ours := range o.changed {
			if l.Dir == old {
				o.changed[table.Link{Dir: dir, Name: l.Name}] = ours
			}
		}
	}
}

package cache

import "github.com/wsmount/wsmount/cache/internal/table"

// observation is a look at the backend that takes a while. What we change there
// meanwhile it may show or not.
type observation struct {
	// touched are names of which the backend may have something else than the
	// look shows: true if we changed it, false if another look found it.
	touched map[table.Link]bool
}

// found says that another look found something else under a name.
func (l *observation) found(name table.Link) {
	if !l.touched[name] { // what we changed stays marked
		l.touched[name] = false
	}
}

// beginObservation is called before the backend is asked, endListing after what it
// said has been used.
func (v *Volume) beginObservation() *observation {
	locked := v.lock()
	defer locked.unlock()
	return locked.newObservation()
}

// newObservation is beginListing.
func (v *View) newObservation() *observation {
	l := &observation{touched: map[table.Link]bool{}}
	v.observations[l] = struct{}{}
	return l
}

func (v *Volume) endObservation(l *observation) {
	locked := v.lock()
	defer locked.unlock()
	delete(locked.observations, l)
}

package cache

import "github.com/wsmount/wsmount/cache/internal/tree"

// beginObservation is called before the backend is asked, endObservation after what it
// said has been used.
func (v *Volume) beginObservation() *tree.Observation {
	locked := v.lock()
	defer locked.unlock()
	return locked.Observe()
}

func (v *Volume) endObservation(o *tree.Observation) {
	locked := v.lock()
	defer locked.unlock()
	locked.EndObservation(o)
}

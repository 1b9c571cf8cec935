//go:build soak

package crash

import "time"

// A storage that is slow differs for a program from one that hangs in that it answers
// in the end, which takes as long as it says.
func init() {
	outages["slow"] = func(s *stage) { s.store.Switches().Delay(5 * time.Second) }
}

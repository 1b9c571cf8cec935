// Package awake measures time in which this process runs. While the machine stands still,
// or runs other programs alone, no limit passes: the awaited program did not run either.
package awake

import "time"

// looks are how many parts a limit has. Of each one passes at least, and of a time in
// which this process does not run one at most.
const looks = 100

// Within waits for a value from a channel, or its close, and says whether that came
// within a limit.
func Within[V any](limit time.Duration, comes <-chan V) (v V, came bool) {
	for range looks {
		select {
		case v = <-comes:
			return v, true
		case <-time.After(limit / looks):
		}
	}
	select {
	case v = <-comes:
		return v, true
	default:
		return v, false
	}
}

//go:build race

package cache

// The race detector is slow: it sees every fifth accident, and fewer steps of
// the POSIX suite's exercises.
const (
	accidentStep  = 5
	exerciseSteps = "600"
)

//go:build !race

package harness

// Race says that this test and the program are built with the race detector.
const Race = false

//go:build race

package harness

// Race says that this test and the program are built with the race detector,
// which makes both several times slower.
const Race = true

//go:build race

package table

// fullStep is every how many commits a disk gets full. The race detector is slow;
// without it make model tries more of them.
const fullStep = 307

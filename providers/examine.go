package providers

import "context"

// Examiner examines a service for a person who considers using it.
type Examiner interface {
	// Examine checks the conditions of a mount of this provider, and its speed. It takes as
	// long as ctx allows. It changes nothing but scratch entries of its own, which it removes
	// and reports; a provider that was opened for reading makes none, and reports the checks
	// left out.
	Examine(ctx context.Context) []Finding
}

// Finding is the result of one check. One that is not Good has advice.
type Finding struct {
	Name  string // a word: "clock"
	Grade Grade
	Says  string
	Do    string
}

// Grade is the outcome of a Finding.
type Grade uint8

// The grades.
const (
	Good Grade = iota
	Less       // it works, with less than possible
	Bad        // it does not work
)

package providers

import "context"

// Examiner explains a service to a person who wants to know whether it will do.
type Examiner interface {
	// Examine looks at what a mount of this provider depends on, and how fast it
	// is. It takes as long as ctx lets it. It changes nothing but scratch entries
	// of its own, which it removes and says; a provider that was opened for
	// reading makes none, and says what was not tried.
	Examine(ctx context.Context) []Finding
}

// Finding is one thing that was looked at. One that is not Good says what to do.
type Finding struct {
	Name  string // a word: "clock"
	Grade Grade
	Says  string
	Do    string
}

// Grade says how a Finding came out.
type Grade uint8

// The grades.
const (
	Good Grade = iota
	Less       // it works, with less than there could be
	Bad        // it does not work
)

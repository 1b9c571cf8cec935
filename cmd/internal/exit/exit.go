// Package exit knows how wsmount ends: the exit codes, which scripts may rely
// on, and the error that carries one together with the two lines a person
// reads: the failure, and the advice.
//
//	return exit.New(exit.Usage, "two arguments are needed, got 1").
//		Hint("wsmount mount WORKSPACE MOUNTPOINT")
package exit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/wrap"
)

// A Code is the exit status of the program.
type Code int

const (
	Done         Code = 0 // the request is done
	Failed       Code = 1 // it failed for a reason that no other code names
	Usage        Code = 2 // the command line is wrong
	Manifest     Code = 3 // a manifest or the host configuration is invalid
	Unresolvable Code = 4 // an address, a reference or a mount does not lead anywhere
	Denied       Code = 5 // authentication failed, or the host did not grant it
	Unreachable  Code = 6 // the backend does not answer
	Unsafe       Code = 7 // a change that the policy wanted sent is not safe yet
	Conflict     Code = 8 // the backend and the working copy went apart
)

// String names the code, for --json and the log.
func (c Code) String() string {
	names := [...]string{"done", "failed", "usage", "manifest-invalid", "unresolvable",
		"denied", "unreachable", "unsafe", "conflict"}
	if c < 0 || int(c) >= len(names) {
		return fmt.Sprintf("code-%d", int(c))
	}
	return names[c]
}

// An Error is a refusal or a failure as the program reports it.
type Error struct {
	Code   Code
	What   string // one line, lower case, without a full stop
	Advice string // one line: the next step; may be empty
	Err    error  // the cause, already part of What; may be nil
	// Details are further lines about the failure, such as entries that were passed over.
	Details []string
}

// New returns an Error with a formatted What. A %w in the format becomes Err.
func New(c Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: c, What: err.Error(), Err: errors.Unwrap(err)}
}

// Hint sets the advice and returns the error.
func (e *Error) Hint(format string, args ...any) *Error {
	e.Advice = fmt.Sprintf(format, args...)
	return e
}

func (e *Error) Error() string { return e.What }

// Text is the error as a user reads it: the failure, its details and the advice, a line
// each.
func (e *Error) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wsmount: %s\n", wrap.OneLine(e.What))
	for _, d := range e.Details {
		fmt.Fprintf(&b, "  %s\n", wrap.OneLine(d))
	}
	if e.Advice != "" {
		fmt.Fprintf(&b, "hint: %s\n", wrap.OneLine(e.Advice))
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// From returns err as an *Error: itself when it is or wraps one, else one with
// the code Failed. From(nil) is nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: Failed, What: err.Error(), Err: err}
}

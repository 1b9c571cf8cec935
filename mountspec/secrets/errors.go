package secrets

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wsmount/wsmount/mountspec/host/hostfile"
)

// Code is the upstream code of all errors of this package (AIP-35, ADAPTER), for callers to print.
const Code = "storage_auth_unresolvable"

// An Error says why a secret is not available. Name is a slug or the name
// of an environment variable; no part of a value is in any field.
type Error struct {
	Name   string
	Reason string
	Hint   string
	// Denied: the host, or the inventory's access list, does not grant it.
	// Otherwise it could not be found or fetched.
	Denied bool
}

func (e *Error) Error() string {
	return fmt.Sprintf("secret %s: %s", e.Name, e.Reason)
}

// Line is the error and what to do about it in one line.
func (e *Error) Line() string { return e.Error() + "; " + e.Hint }

// All are the errors of this package in err: one for each secret that is not available.
func All(err error) (out []*Error) {
	switch e := err.(type) {
	case *Error:
		return []*Error{e}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			out = append(out, All(one)...)
		}
	case interface{ Unwrap() error }:
		return All(e.Unwrap())
	}
	return out
}

func denied(name, reason, hint string) *Error {
	return &Error{Name: name, Reason: reason, Hint: hint, Denied: true}
}

func missing(name, reason, hint string) *Error {
	return &Error{Name: name, Reason: reason, Hint: hint}
}

func unrecorded(name string, err error) *Error {
	return missing(name, "the audit log cannot be written, so it is not fetched: "+err.Error(), "make room for the audit log")
}

func unfetched(name, source string, err error) *Error {
	hint := "correct it in secrets of the host configuration"
	var h *hostfile.Error
	text := err.Error()
	if errors.As(err, &h) {
		hint = h.Hint
	}
	var unset *unsetError
	if errors.As(err, &unset) { // which says where each was looked for
		return missing(name, text, "set "+strings.Join(unset.names, ", ")+" where wsmount is started")
	}
	if _, path, ok := strings.Cut(source, " "); ok { // "file /x: /x: ..." says it twice
		text = strings.TrimPrefix(text, path+": ")
	}
	return missing(name, source+": "+text, hint)
}

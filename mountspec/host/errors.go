package host

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// A Class groups errors by the reaction of a caller.
type Class int

const (
	// Invalid: a manifest, or the host configuration, is wrong.
	Invalid Class = iota
	// Unresolvable: something that is named cannot be found.
	Unresolvable
	// Denied: the host does not grant it, or a credential is not available.
	Denied
)

// ExitCode is the exit status of the command line for the class.
func (c Class) ExitCode() int { return int(c) + 3 }

// Upstream codes (AIP-35 and AIP-36, ADAPTER "Error codes").
const (
	CodeStorageRef = "storage_ref_unresolvable"
	CodeStorageCfg = "storage_config_invalid"
	CodeAuth       = "storage_auth_unresolvable"
	CodeProvider   = "storage_provider_unknown"
	CodeSandboxRef = "sandbox_ref_unresolvable"
	CodeSandboxRO  = "sandbox_read_only"
)

// An Error is one refusal.
type Error struct {
	Class Class
	Code  string   // upstream code, or empty
	What  string   // the problem, on one line
	Where string   // file:line, address or path, or empty
	Hint  string   // advice
	Chain []string // the workspaces that led here, outermost first
	Err   error    // the cause, or nil
	// Skipped are manifests and directories that could have been meant, each with
	// the reason why it was passed over.
	Skipped []string
	// Steps are the steps before the error, as in Resolved.Explain.
	Steps []Step
}

// Error is one line: Where, Code, What, Err, and the chain of workspaces.
func (e *Error) Error() string {
	var b strings.Builder
	for _, s := range []string{e.Where, e.Code} {
		if s != "" {
			b.WriteString(s + ": ")
		}
	}
	b.WriteString(e.What)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if len(e.Chain) > 1 {
		fmt.Fprintf(&b, " (by way of %s)", strings.Join(e.Chain, " -> "))
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// ExitCode is that of the class.
func (e *Error) ExitCode() int { return e.Class.ExitCode() }

func invalid(where string, err error, hint string) *Error {
	return &Error{Class: Invalid, Where: where, What: "the manifest is not valid", Err: err, Hint: hint}
}

func unresolvable(code, where, hint, format string, args ...any) *Error {
	return &Error{Class: Unresolvable, Code: code, Where: where, Hint: hint, What: fmt.Sprintf(format, args...)}
}

func denied(code, where, hint, format string, args ...any) *Error {
	return &Error{Class: Denied, Code: code, Where: where, Hint: hint, What: fmt.Sprintf(format, args...)}
}

// unrecorded refuses an action that cannot be recorded: nothing is granted without a record.
func unrecorded(code, where string, err error) *Error {
	return &Error{Class: Denied, Code: code, Where: where, What: "the audit log cannot be written", Err: err, Hint: "make room for the audit log"}
}

// fileError turns an error about a file into an *Error: an absent file is
// unresolvable, one that others can write is denied.
func fileError(code, where string, err error) *Error {
	e := &Error{Class: Unresolvable, Code: code, Where: where, What: "cannot be read", Err: err, Hint: "check that the file exists and is readable"}
	var h *hostfile.Error
	switch {
	case errors.As(err, &h):
		e.Class, e.What, e.Hint = Denied, "is not trusted", h.Hint
	case errors.Is(err, fs.ErrNotExist):
		e.What, e.Err, e.Hint = "does not exist", nil, "create it, or correct what names it"
	}
	return e
}

// secretError turns a refusal of package secrets into an *Error.
func secretError(where string, err error) *Error {
	out := &Error{Class: Denied, Where: where, What: "its credentials are not available", Err: err}
	var s *secrets.Error
	if errors.As(err, &s) {
		out.Hint = s.Hint
	}
	return out
}

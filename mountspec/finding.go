package mountspec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Severity says whether a finding refuses a manifest.
type Severity int

const (
	// Error refuses the manifest.
	Error Severity = iota
	// Warning is said and never refuses, unless Options.Strict promotes it.
	Warning
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Codes are the error codes of AIP-35 and AIP-36, ADAPTER "Error codes".
// A finding that none of them describes has an empty Code.
const (
	CodeConfigInvalid       = "storage_config_invalid"
	CodeProviderUnknown     = "storage_provider_unknown"
	CodeRefUnresolvable     = "storage_ref_unresolvable"
	CodeAuthUnresolvable    = "storage_auth_unresolvable"
	CodeSandboxUnresolvable = "sandbox_ref_unresolvable"
)

// Pos is a place in a source file. Line and Column count from 1 and are the
// file's own, not those of the frontmatter; a zero Line means "not from a file".
type Pos struct {
	File         string
	Line, Column int
}

// String prints file:line:column, leaving out zero parts.
func (p Pos) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// A Finding is one error, or noteworthy point, in a manifest.
type Finding struct {
	Severity Severity
	File     string
	Line     int    // from 1, in the file
	Column   int    // from 1, in bytes
	Path     string // document path, such as storage.inline.sync.mode
	Rule     string // short stable id, such as "unknown-key"
	Code     string // upstream error code, such as CodeConfigInvalid, or empty
	Message  string // describes the error; never holds a value that looks like a credential
	Hint     string // advice, or empty
}

// Pos returns where the finding is.
func (f Finding) Pos() Pos { return Pos{f.File, f.Line, f.Column} }

// String prints the finding on one line: place, severity, message, rule, hint.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s: ", f.Pos(), f.Severity)
	if f.Code != "" {
		fmt.Fprintf(&b, "%s: ", f.Code)
	}
	if f.Path != "" {
		fmt.Fprintf(&b, "%s: ", f.Path)
	}
	fmt.Fprintf(&b, "%s [%s]", f.Message, f.Rule)
	if f.Hint != "" {
		fmt.Fprintf(&b, "; %s", f.Hint)
	}
	return b.String()
}

// Findings is the result of one parse, sorted by position. As an error it prints
// one finding per line.
type Findings []Finding

// Error prints every finding, one per line.
func (fs Findings) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Err returns the findings of severity Error as an error, or nil when there are none.
func (fs Findings) Err() error {
	if errs := fs.Filter(Error); len(errs) > 0 {
		return errs
	}
	return nil
}

// Filter returns the findings of one severity, in order.
func (fs Findings) Filter(s Severity) Findings {
	var out Findings
	for _, f := range fs {
		if f.Severity == s {
			out = append(out, f)
		}
	}
	return out
}

// Has reports whether a finding carries the rule.
func (fs Findings) Has(rule string) bool {
	return slices.ContainsFunc(fs, func(f Finding) bool { return f.Rule == rule })
}

// refuses reports whether the manifest itself is wrong. A provider that this
// build does not know refuses a mount, yet says nothing against the manifest.
func (fs Findings) refuses() bool {
	return slices.ContainsFunc(fs, func(f Finding) bool {
		return f.Severity == Error && f.Code != CodeProviderUnknown
	})
}

func (fs Findings) sort() {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Rule, b.Rule))
	})
}

// show quotes an untrusted value for a message: escaped, short, and not at all
// when it looks like a credential.
func show(s string) string {
	const limit = 60
	if credentialShape(s) != "" {
		return "[redacted]"
	}
	if len(s) > limit {
		return strconv.QuoteToASCII(s[:limit]) + "..."
	}
	return strconv.QuoteToASCII(s)
}

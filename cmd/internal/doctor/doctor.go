// Package doctor says whether this machine can mount, and this workspace be
// mounted, before a user tries. It goes the mount's own way, package daemon's
// Resolve, up to the mount itself, and looks at the kernel, the limits and
// the directories.
//
// It promises to change nothing on this machine but the audit log, when secrets
// are used: no directory is made, no file written, nothing mounted. Of a store in
// a network it tries a scratch key, which it removes, and says so; none where the
// workspace is read-only. Every line that is not ok says what to do.
//
//	checks := append(doctor.Machine(), doctor.State(root)...)
//	checks = append(checks, doctor.Workspace(tree, err)...)
//	checks = append(checks, doctor.Stores(ctx, tree)...)
//	os.Exit(int(doctor.Diagnose(checks).Exit))
package doctor

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// Level says how a check came out.
type Level string

const (
	OK      Level = "ok"
	Note    Level = "note"    // it works, with less than there could be
	Problem Level = "problem" // it does not work
)

// A Check is the result of one look.
type Check struct {
	Name  string    `json:"name"`
	Level Level     `json:"level"`
	Says  string    `json:"says"`
	Do    string    `json:"do,omitempty"` // advice
	Code  exit.Code `json:"-"`            // of a problem
}

func ok(name, format string, args ...any) Check {
	return Check{Name: name, Level: OK, Says: fmt.Sprintf(format, args...)}
}

func note(name, do, format string, args ...any) Check {
	return Check{Name: name, Level: Note, Says: fmt.Sprintf(format, args...), Do: do}
}

func problem(name, do, format string, args ...any) Check {
	return Check{Name: name, Level: Problem, Says: fmt.Sprintf(format, args...), Do: do, Code: exit.Failed}
}

// refused is a problem that the program already has words for.
func refused(name string, err error) Check {
	e := exit.From(err)
	return Check{Name: name, Level: Problem, Says: e.What, Do: e.Advice, Code: e.Code}
}

// everything is refused, and a note for each of its details.
func everything(name string, err error) (out []Check) {
	for _, detail := range exit.From(err).Details {
		says, do, _ := strings.Cut(detail, "; ")
		out = append(out, note(name, cmp.Or(do, "correct it, if it is the one that is meant"), "%s", says))
	}
	return append(out, refused(name, err))
}

// Worst is the exit code for a list of checks: that of its first problem.
func Worst(checks []Check) exit.Code {
	for _, c := range checks {
		if c.Level == Problem {
			return c.Code
		}
	}
	return exit.Done
}

// Diagnosis is all checks, as `wsmount doctor --json` prints them.
type Diagnosis struct {
	Schema string    `json:"schema"` // wsmount.doctor/v1
	Checks []Check   `json:"checks"`
	Exit   exit.Code `json:"exit"`
}

// Diagnose sums up checks.
func Diagnose(checks []Check) Diagnosis { return Diagnosis{"wsmount.doctor/v1", checks, Worst(checks)} }

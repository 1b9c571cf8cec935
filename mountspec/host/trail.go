package host

import (
	"slices"

	"github.com/wsmount/wsmount/mountspec/audit"
)

// A trail is what was looked at on the way to a workspace, for Explain and for errors.
type trail struct {
	steps  []Step
	passed []string // what the search path led to and was skipped, with why
}

func (t *trail) step(subject, result string) {
	t.steps = append(t.steps, Step{Subject: subject, Result: result})
}

// skip is a step past something that may have been meant.
func (t *trail) skip(subject, why string) {
	t.step(subject, "skipped: "+why)
	t.passed = append(t.passed, subject+": "+why)
}

func (t *trail) defaulted(subject, result string) {
	t.steps = append(t.steps, Step{subject, result, true})
}

// fork is a trail of its own that goes on from what was skipped.
func (t *trail) fork() *trail { return &trail{passed: slices.Clone(t.passed)} }

func (r *Resolver) recordVerb(verb string, e Entry) error {
	rec := audit.Registration{Workspace: e.Address.String(), Verb: verb, Manifest: e.Path, Digest: e.Fingerprint}
	if len(e.Files) > 0 {
		rec.Digest = e.Files[0].SHA256
	}
	return r.o.Audit.Write(rec)
}

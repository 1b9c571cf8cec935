package host

import (
	"slices"

	"github.com/wsmount/wsmount/mountspec/audit"
)

// A trail is the steps on the way to a workspace, for Explain and for errors.
type trail struct {
	steps  []Step
	passed []string // skipped paths of the search path, with the reasons
}

func (t *trail) step(subject, result string) {
	t.steps = append(t.steps, Step{Subject: subject, Result: result})
}

// skip records a step past a path that may have been meant.
func (t *trail) skip(subject, why string) {
	t.step(subject, "skipped: "+why)
	t.passed = append(t.passed, subject+": "+why)
}

func (t *trail) defaulted(subject, result string) {
	t.steps = append(t.steps, Step{subject, result, true})
}

// fork is a new trail that begins with the skipped paths.
func (t *trail) fork() *trail { return &trail{passed: slices.Clone(t.passed)} }

func (r *Resolver) recordVerb(verb string, e Entry) error {
	rec := audit.Registration{Workspace: e.Address.String(), Verb: verb, Manifest: e.Path, Digest: e.Fingerprint}
	if len(e.Files) > 0 {
		rec.Digest = e.Files[0].SHA256
	}
	return r.o.Audit.Write(rec)
}

package host

import (
	"context"

	"github.com/wsmount/wsmount/mountspec"
)

// A session is one call of Resolve, or the part of it for one workspace:
// the registry as it was at the beginning, and what was looked at.
type session struct {
	ctx    context.Context
	r      *Resolver
	o      ResolveOptions
	reg    *registryFile
	steps  []Step
	chain  []string               // workspaces on the way here, as they were named
	places []string               // and their manifests
	others map[string]whereabouts // where workspaces of the configuration lie, found once
	passed []string               // what the search path led to and was skipped, with why
	met    []string               // addresses of the manifests that the search path led to
}

// whereabouts is the location of a workspace, or why it is not known.
type whereabouts struct {
	loc Location
	err error
}

func (s *session) step(subject, result string) {
	s.steps = append(s.steps, Step{Subject: subject, Result: result})
}

// skip is a step past something that may have been meant.
func (s *session) skip(subject, why string) {
	s.step(subject, "skipped: "+why)
	s.passed = append(s.passed, subject+": "+why)
}

func (s *session) defaulted(subject, result string) {
	s.steps = append(s.steps, Step{subject, result, true})
}

func (s *session) parse() mountspec.Options {
	return mountspec.Options{Strict: s.o.Strict, Registered: s.r.o.Providers}
}

// child is a session for a workspace below this one.
func (s *session) child(name string) *session {
	c := *s
	c.steps = nil
	c.chain = append(append([]string{}, s.chain...), name)
	return &c
}

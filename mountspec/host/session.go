package host

import (
	"context"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/ondisk"
	"github.com/wsmount/wsmount/mountspec/host/registry"
)

// A session is one call of Resolve, or the part of it for one workspace: the
// registry as it was at the beginning, and the steps so far. It reads the manifests;
// its parts find them, follow their references and decide on the host's grants.
type session struct {
	*trail
	ctx    context.Context
	r      *Resolver
	o      ResolveOptions
	reg    *registry.File
	finder finder
	refs   references
	grants granter
	chain  []string // the workspaces above this one, as they were named
	places []string // and their manifests
	others *otherPlaces
	disks  *ondisk.Disks // for the comparison that runs
}

// otherPlaces are the places of the configuration's workspaces, found once for a
// session and all below it.
type otherPlaces struct {
	kept   *keptPlaces // nil: not read yet
	places map[string]otherPlace
}

// An otherPlace is the location of a workspace, or why it is not known.
type otherPlace struct {
	loc  Location
	kept bool // its manifests were not read
	err  error
}

func (o *otherPlaces) keptPlaces(r *Resolver, reg *registry.File) *keptPlaces {
	if o.kept == nil {
		o.kept = r.keptPlaces(reg)
	}
	return o.kept
}

func (r *Resolver) session(ctx context.Context, reg *registry.File, o ResolveOptions) *session {
	s := &session{ctx: ctx, r: r, o: o, reg: reg, others: &otherPlaces{places: map[string]otherPlace{}}}
	return s.on(&trail{})
}

// on has a session record its steps on a trail.
func (s *session) on(t *trail) *session {
	s.trail = t
	s.finder = finder{trail: t, r: s.r, reg: s.reg, parse: s.parse(), met: s.finder.met}
	s.refs = references{trail: t, r: s.r, reg: s.reg}
	s.grants = granter{trail: t, r: s.r, reg: s.reg, named: s.o.Secrets}
	return s
}

func (s *session) parse() mountspec.Options {
	return mountspec.Options{Strict: s.o.Strict, Registered: s.r.o.Providers}
}

// child is a session for a workspace below this one.
func (s *session) child(name string) *session {
	c := *s
	c.chain = append(append([]string{}, s.chain...), name)
	return c.on(s.trail.fork())
}

// quiet is a session that discards its steps.
func (s *session) quiet() *session {
	c := *s
	return c.on(s.trail.fork())
}

// Package project says where in memory what belongs to a project lies, and where its
// state.
//
// It knows checkouts of this machine, names, and what a backend promises, and no backend:
// what it needs of one it asks of seam.Backend.
//
//	p, err := project.Resolve(ctx, b, "/home/ann/src/atlas/cmd") // which lies in a checkout
//	l, err := p.Locator.Child("decisions", "2026-11.md") // below projects/atlas
//
// # Slugs
//
// A checkout says which project it is of as agentm has it: with vault_project in its
// .harness/project.json, with github.repo there, or with its git remote origin, of which the
// last name counts. One that says nothing has the slug that it is registered with. The name
// of its directory means nothing, since others have it too.
//
// Two checkouts of this machine never come to one slug in silence: a slug that is registered
// for another is refused, and writing state registers it. Work trees of one git repository
// are one checkout in this. What another machine has registered, under a name that is not
// on this one, does not keep the first of this one out: the same project lies elsewhere there.
// That is registered too, so that the second is refused. Which roots this machine has registered it
// remembers apart from memory (Own): where such a one is not there any more, as after a move, all
// others are refused. Where both are registered by then, as
// when a disk was mounted later, or a checkout was moved and the repository cloned anew at its
// old place, both are refused, whichever is asked for: only a person knows which is meant, and
// says it by registering that one (Own.Settle), which displaces the other and names it. A root that
// does not answer, as on a server that is gone, is waited for no longer than a moment, and
// refuses its own slug alone.
//
// # State
//
// Plans and progress are a project's state. They lie in its checkout, in .harness, unless
// memory promises seam.Capabilities.Sync: then below projects/<slug>/_harness, which other
// machines see too. A checkout that says otherwise, in .harness/.project-mode, keeps its
// state to itself; that is asked first, so it needs no memory. So does one of no project. Memory that is configured
// and not to be had is an error, and never state in another place.
//
//	s, err := machine.State(ctx, "/home/ann/src/atlas")
//	err = s.Claim(ctx)
//	_, err = s.Backend.Write(ctx, l, plan)
//
// # Repositories
//
// _meta/repos.json lists the checkouts that agents know, on whatever backend is used. Its
// format is agentm's, byte for byte, and fields that are not known here stay. An entry has
// checkouts of further machines in a field of its own, which agentm does not know. Several may
// change it at once, and none loses what another wrote.
package project

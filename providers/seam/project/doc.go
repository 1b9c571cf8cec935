// Package project finds the place in memory of a project's files, and the place of its state.
//
// It knows checkouts of this machine, names, and a backend's promises, and no backend: it uses
// seam.Backend alone.
//
//	p, err := project.Resolve(ctx, b, "/home/ann/src/atlas/cmd") // which lies in a checkout
//	l, err := p.Locator.Child("decisions", "2026-11.md") // below projects/atlas
//
// # Slugs
//
// A checkout names its project as agentm has it: with vault_project in its .harness/project.json,
// with github.repo there, or with its git remote origin, of which the last name counts. One that
// names none has the slug that it is registered with. The name of its directory means nothing,
// since other checkouts have it too.
//
// Two checkouts of this machine never come to one slug in silence: a slug that is registered for
// another is refused, and writing state registers it. Work trees of one git repository count as
// one checkout. A registration by another machine, under a name that does not exist on this one,
// does not keep out the first of this one: the same project lies elsewhere on that machine. It is
// registered too, so that the second is refused. This machine remembers the roots that it has
// registered apart from memory (Own): where such a root is missing, as after a move, all others
// are refused. Where both are registered by then, as when a disk was mounted later, or a checkout
// was moved and the repository cloned anew at its old place, both are refused, whichever is asked
// for: only a person knows which is meant, and tells it by registering that one (Own.Settle),
// which displaces the other and names it. A root that does not answer, as on a server that is
// gone, is waited for no longer than a moment, and refuses its own slug alone.
//
// # State
//
// Plans and progress are a project's state. They lie in its checkout, in .harness, unless memory
// promises seam.Capabilities.Sync: then below projects/<slug>/_harness, which other machines see
// too. A checkout with another setting, in .harness/.project-mode, keeps its state to itself;
// that is read first, so it needs no memory. So does one of no project. Memory that is configured
// and cannot be had is an error, and never means state in another place.
//
//	s, err := machine.State(ctx, "/home/ann/src/atlas")
//	err = s.Claim(ctx)
//	_, err = s.Backend.Write(ctx, l, plan)
//
// # Repositories
//
// _meta/repos.json lists the checkouts that agents know, on whatever backend is used. Its format
// is agentm's, byte for byte, and unknown fields stay. An entry has checkouts of further machines
// in a field of its own, which agentm does not know. Several processes may change it at once, and
// none loses the change of another.
package project

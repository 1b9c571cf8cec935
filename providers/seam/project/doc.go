// Package project says where in memory what belongs to a project lies, and where its
// state.
//
// It knows names and what a backend promises, and no backend: what it needs of one it asks
// of seam.Backend.
//
//	p, err := project.Resolve(ctx, b, "/home/ann/src/atlas")
//	l, err := p.Locator.Child("decisions", "2026-11.md") // below projects/atlas
//
// # State
//
// Plans and progress are a project's state. They lie in its checkout, in .harness, unless
// memory promises seam.Capabilities.Sync: then below projects/<slug>/_harness, which other
// machines see too. A checkout that says otherwise, in .harness/.project-mode, keeps its
// state to itself; that is asked first, so it needs no memory. Memory that is configured
// and not to be had is an error, and never state in another place.
//
//	s, err := machine.State(ctx, "/home/ann/src/atlas")
//	_, err = s.Backend.Write(ctx, l, plan)
//
// # Repositories
//
// _meta/repos.json lists the checkouts that agents know, on whatever backend is used. Its
// format is agentm's, byte for byte, and fields that are not known here stay. Several may
// change it at once, and none loses what another wrote.
package project

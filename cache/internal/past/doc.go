// Package past describes earlier states of a working copy: the versions of its files, how a state
// of the past, by any of its names, differs from the present, and its content. It changes nothing:
// its user carries a [Plan] out.
//
//	p := past.New(past.Options{Tree: t, Store: s, Keeper: k, Remote: r, Volume: v, ...})
//	versions, err := p.Log(ctx, past.LogFilter{Path: "f"})
//	text, err := p.Diff(ctx, past.DiffOptions{Path: "f", From: past.State{Version: versions[1].ID}})
//	plan, err := p.Plan(ctx, "", past.State{Turn: "11", Before: true})
//
// The sources are the records of package history (before.go, names.go), and for a commit the
// remote (commit.go). A part that cannot be known is reported, not guessed ([Plan.Unsure]).
package past

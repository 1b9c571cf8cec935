// Package past says what a working copy was: the versions of its files, how a state of the
// past, by whatever it is called, differs from the present, and what is in it. It changes
// nothing: to carry a [Plan] out is for its user.
//
//	p := past.New(past.Options{Tree: t, Store: s, Keeper: k, Remote: r, Volume: v, ...})
//	versions, err := p.Log(ctx, past.LogFilter{Path: "f"})
//	text, err := p.Diff(ctx, past.DiffOptions{Path: "f", From: past.State{Version: versions[1].ID}})
//	plan, err := p.Plan(ctx, "", past.State{Turn: "11", Before: true})
//
// What was is told by the records of package history (before.go, names.go), and of a commit by
// the remote (commit.go). What cannot be known is said, not guessed ([Plan.Unsure]).
package past

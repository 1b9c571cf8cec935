// Package commit says how the remote is made equal to the tree by one change set: which names
// go, what depends on what, and what that is in terms of a provider. It sends nothing.
//
// A [Set] is made of a [Moment], a working copy as it was at one time, and without its lock.
// What cannot go keeps its place in the tree of the remote, and what depends on that stays
// out with it; content that a [Guard] stops, or that holds one of the [Secrets], is left out
// by itself. What turns out not to be known well enough is listed in the set, to be found out
// before another is made. What programs change after that moment is [Kept] as it was.
//
// The content of a set is read by [Bodies] while it is sent, and searched as it goes by. A set
// that is about to be sent is [Unresolved] until what it left is noted, and is in the
// table meanwhile.
//
//	s, err := commit.Collect(ctx, moment, due)
//	defer s.Made()
//	...
//	remote.Commit(ctx, providers.ChangeSet{Changes: s.Changes, Message: s.Message()})
package commit

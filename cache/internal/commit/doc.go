// Package commit makes the remote equal to the tree by change sets: which names go, what
// depends on what, what that is in terms of a provider, when a set is sent, and what becomes
// of it.
//
// A [Committer] sends one set at a time, when something is due or a commit was asked for. It
// stands in the place of an upload.Sender, which holds back for it what a set has to leave
// out. The head of the remote does not move while a set is sent, and what became of the last
// set is known before the next is made.
//
// A [Set] is made of a [Moment], a working copy as it was at one time, and without its lock.
// What cannot go keeps its place in the tree of the remote, and what depends on that stays
// out with it; content that a [Guard] stops, or that holds one of the [Secrets], is left out
// by itself. What turns out not to be known well enough is listed in the set, and found out
// before another is made. What programs change after that moment is [Kept] as it was.
//
// The content of a set is read by [Bodies] while it is sent, and searched as it goes by. A set
// that is about to be sent is [Unresolved] until what it left is noted, and is in the
// table meanwhile.
//
//	c := commit.NewCommitter(commit.CommitterOptions{Remote: r, Tree: t, Queue: q, ...})
//	for range q.Kicked() {
//		c.Look(t.Lock())
//		t.Unlock()
//	}
//	...
//	report, err := c.Commit(ctx, pending.Description{Message: "turn 7"}, due)
//
// What is needed of the rest of a working copy stands beside its user. Nothing here knows the
// conflict policy, how rules are learned, or what a push is.
package commit

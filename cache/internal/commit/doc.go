// Package commit makes the remote equal to the tree by change sets: it selects the names, finds
// their dependencies, translates them into a provider's changes, decides when a set is sent, and
// resolves its outcome.
//
// A [Committer] sends one set at a time, when names are due or a commit was asked for. It takes
// the place of an upload.Sender, which holds back for it the names that a set has to leave out.
// The head of the remote does not move while a set is sent, and the outcome of the last set is
// known before the next is made.
//
// A [Set] is made of a [Moment], a working copy as it was at one time, and without its lock. A
// name that cannot go keeps its place in the tree of the remote, and the names that depend on it
// stay out with it; content that a [Guard] stops, or that holds one of the [Secrets], is left out
// by itself. Missing rules and content are listed in the set, and loaded before another is made.
// Content that programs change after that moment is [Kept] as it was.
//
// The content of a set is read by [Bodies] while it is sent, and searched as it goes by. A set
// that is about to be sent is [Unresolved] until its result is noted, and is in the table
// meanwhile.
//
//	c := commit.NewCommitter(commit.CommitterOptions{Remote: r, Tree: t, Queue: q, ...})
//	for range q.Kicked() {
//		c.Look(t.Lock())
//		t.Unlock()
//	}
//	...
//	report, err := c.Commit(ctx, pending.Description{Message: "turn 7"}, due)
//
// Interfaces to the rest of a working copy stand beside their users. Nothing here knows the
// conflict policy, how rules are learned, or how a push works.
package commit

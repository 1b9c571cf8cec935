// Package revision handles the revisions of a remote that keeps whole ones, and the head that
// moves from one to another.
//
// A [Held] keeps the head where it is, and a [Moving] may move it. The records about revisions are
// in the table, so that one exists exactly if the names that it refers to do:
//
//	pull/level        the synced revision, whose names the table has as the remote side
//	pull/earlier      the previous heads
//	pull/upstream     the last revision of the tracked branch that the head has
//	pull/merging      the revision that the next commit merges
//	pull/first        when the first revision was made
//	pull/since        since when another is shown
//	pull/rewind       commits that are being taken back
//	engine/revision   the revision that the last commit made
//	engine/unpushed   commits that the remote does not have
//
// A [Follower] keeps the table in step with the head: after a crash in between, and when it moves
// the head to a revision that others have pushed, or to another branch. Local commits that others
// do not have are then made anew on top of theirs by the provider; where that fails, they are
// taken back by a soft reset, and are changes of the working copy again. A [Pusher] sends them,
// and a [Backlog] knows which are still to be sent.
//
//	f := revision.NewFollower(revision.Options{Provider: p, Tree: t, ...}, backlog)
//	report, err := f.Pull(w)
//	...
//	head, err := f.Hold(ctx)
//	defer head.Release()
//
// This package finds the differences between two revisions. Its user translates them to the names
// of a working copy, and decides about names that changed in both ([Names], [Comparison]).
package revision

// Package revision is about the revisions of a remote that keeps whole ones, and the head
// that moves from one to another.
//
// Whoever keeps the head where it is has a [Held], and whoever moves it a [Moving]. What the
// table says of revisions is in the table, and not beside it, so that each record is there
// exactly if the names are that it tells of:
//
//	pull/level        the synced revision, whose names the table has as the remote's
//	pull/earlier      the previous heads
//	pull/upstream     the last revision of the tracked branch that the head has
//	pull/merging      the revision that the next commit merges
//	pull/first        when the first revision was made
//	pull/since        since when another is shown
//	pull/rewind       commits that are being taken back
//	engine/revision   the revision that the last commit made
//	engine/unpushed   commits that the remote does not have
//
// A [Follower] keeps the table in step with the head: after a crash in between, and when it
// moves the head to what others have pushed, or to another branch. Commits that others have
// not are then made anew on top of theirs by the provider; where that cannot be, they are
// taken back by a soft reset, and are changes of the working copy again. A [Pusher] sends
// them, and a [Backlog] knows which are still to be sent.
//
//	f := revision.NewFollower(revision.Options{Provider: p, Tree: t, ...}, backlog)
//	report, err := f.Pull(w)
//	...
//	head, err := f.Hold(ctx)
//	defer head.Release()
//
// What differs between two revisions is found out here; what that is in the names of a
// working copy, and what becomes of a name that was changed in both, its user knows ([Names],
// [Comparison]).
package revision

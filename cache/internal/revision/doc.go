// Package revision is about the revisions of a remote that keeps whole ones, and the head
// that moves from one to another: its lock, and what the table says of revisions.
//
// That is in the table, and not beside it, so that each record is there exactly if the names
// are that it tells of:
//
//	pull/level        the synced revision, whose names the table has as the remote's
//	pull/earlier      the previous heads
//	pull/upstream     the last revision of the tracked branch that the head has
//	pull/merging      the revision that the next commit merges
//	pull/first        when the first revision was made
//	pull/since        since when another is shown
//	engine/revision   the revision that the last commit made
//	engine/unpushed   commits that the remote does not have
//
// It asks no remote, and decides nothing: what it is told it gives back, after a crash too.
package revision

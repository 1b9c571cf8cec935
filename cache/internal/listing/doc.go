// Package listing makes the names known that the remote has in directories. It knows how long
// they are believed, has one listing of a directory serve all who ask for it meanwhile, lists
// the directories that a walk is about to come to, and finds out for a pull what differs in
// all that are known. What becomes of a difference is package merge's.
//
//	names := listing.New(listing.Options{...})
//	err := names.Load(op, dir) // before a look at its names
//	c, err := names.CompareAll(w, remote)
//
// # How long names and content are believed
//
// With a TTL a directory counts as fresh for that long after its listing began,
// and what is in it, with it: one listing serves all. Then the next look asks
// the remote, and all who look meanwhile wait for the same answer. Who looks
// up names or attributes does so for a moment only, by what listings have taken
// lately: a remote that is slow or gone must not hold up an ls of what is
// known. Then names are shown as they were last seen, and marked stale in the
// status. An open is stricter: it waits at least MostWait for the answer, unless
// the remote is known not to give one, and then gives what is local (content
// that is not local waits for its fetch). Longer than StaleFor after the last
// answer it always waits, and fails when none comes in half of the patience; and
// a look at names waits however slow listings are, unless there was no answer
// lately. An open that shows nothing of what is there, and does not go on at its end,
// is no stricter than a look, as those of touch(1) and of >: what others made of the
// content meanwhile is found when it is sent.
//
// Without a TTL everything is fresh until a pull.
//
// Of a directory that was never listed nothing can be said: not that a name is
// there, nor that it is free. The kernel looks a name up before it makes it, and
// does not say what for, so that who was told that a name is free could be a
// reader of a file that is there. So all wait for the listing, for half of the
// patience, counted from when the remote ceased to answer: who comes later does
// not wait all of it again, and after that gets the error at once, while the
// listing is tried for the next.
package listing

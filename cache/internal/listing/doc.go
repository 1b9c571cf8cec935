// Package listing makes the remote's names in directories known. It knows how long they are
// believed, has one listing of a directory serve all callers that ask for it meanwhile, lists the
// directories that a walk is about to reach, and finds for a pull all differences in the known
// directories. Package merge decides about each difference.
//
//	names := listing.New(listing.Options{...})
//	err := names.Load(op, dir) // before a look at its names
//	c, err := names.CompareAll(w, remote)
//
// # How long names and content are believed
//
// With a TTL a directory counts as fresh for that long after its listing began, and so do its
// entries: one listing serves all. The next look after that asks the remote, and all looks
// meanwhile wait for the same answer. A look at names or attributes waits for a moment only, by
// the duration of recent listings: a remote that is slow or gone must not hold up an ls of known
// names. Then names are shown as they were last seen, and marked stale in the status. An open is
// stricter: it waits at least MostWait for the answer, unless the remote is known not to give one,
// and then gives the local content (content that is not local waits for its fetch). Longer than
// StaleFor after the last answer it always waits, and fails when none comes in half of the
// patience; and a look at names waits however slow listings are, unless there was no answer
// lately. An open that neither shows the present content nor appends to it is no stricter than a
// look, as those of touch(1) and of >: changes of the content by others are found when it is sent.
//
// Without a TTL everything is fresh until a pull.
//
// Of a directory that was never listed it is not known that a name exists, nor that it is free.
// The kernel looks a name up before it makes it, and does not say for which purpose, so the caller
// that is told that a name is free could be a reader of an existing file. So all wait for the
// listing, for half of the patience, counted from when the remote ceased to answer: a later caller
// does not wait all of it again, and after that gets the error at once, while the listing is tried
// for the next.
package listing

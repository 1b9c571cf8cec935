// Package upload makes the remote equal to the tree name by name: it finds the next operation for
// a name whose two sides differ, knows which operations may run beside each other, makes the
// request of each and notes the answer, and deals with the name when it fails.
//
//	s := upload.NewSender(upload.SenderOptions{Tree: t, Queue: q, Executor: x, ...})
//	for range q.Kicked() {
//		v := t.Lock()
//		s.Look(v)
//		t.Unlock()
//	}
//
// A [Sender] walks through the names that are due and begins the operations that may run beside
// those under way. It asks the [Planner] for the next operation of a name, by its record and those
// that it depends on, as they are at that moment. Neither keeps a log: the work left is the names
// that still differ, after a crash too, for all that both need to know is in the table. An [Order]
// holds the unfinished operations that a walk has passed: it says whether the next one may begin.
//
// An [Executor] makes one operation: one request, on condition of the known remote state. An
// Attempt stands in the table from before the request until the answer. When no answer comes, the
// planner has the executor resolve the outcome before any other operation on the name; a change
// that did not happen is made again under the same id, so that it happens once if it comes late.
// An operation that lost to another change returns the remote's error, and the attempt is gone; a
// [Judge] decides about the name then.
//
// A [Committer] makes commits of that: it waits for the names that differ when a commit is asked
// for, and reports the outcome of each. [Holds] know why a name is not sent, and a [Loop] has all
// of it looked at whenever there may be changes to send.
//
// [Jobs] are the names that are worked on: under way, resting after a failure that may pass, or
// held back after one that will not, and until when. [Backoff] counts failures across names, for
// the remote as a whole.
//
// A directory that the remote cannot rename hands its names over to a tombstone (tombstone.go),
// and one that comes back takes over those of the one that was removed (resurrect.go).
//
// All state in memory belongs to the tree: methods that read or change it take a View or a Tx, and
// no request is made while there is one. The interfaces to the rest of a working copy stand beside
// their users: [Volume], [Names], [Content] and [Rest] for an executor, [Host], [Judge] and
// [Monitor] for a sender, [Guard] for a committer. This package knows neither the conflict policy
// nor change sets.
package upload

// Package upload makes the remote equal to the tree name by name: which operation comes next
// for a name whose two sides differ, which may run beside each other, what each of them asks
// of the remote and notes of its answer, and what becomes of the name when it fails.
//
//	s := upload.NewSender(upload.SenderOptions{Tree: t, Queue: q, Executor: x, ...})
//	for range q.Kicked() {
//		v := t.Lock()
//		s.Look(v)
//		t.Unlock()
//	}
//
// A [Sender] walks through what is due and begins what may run beside what is under way. It
// asks the [Planner] what a name needs, which looks at its record, and at what it depends on,
// as they are at that moment. Neither keeps a log: what is still to be done is what still
// differs, after a crash too, for all that they need to know is in the table. An [Order] is
// what a walk has passed that is not done: it says whether the next operation may begin.
//
// An [Executor] makes one operation: one request, on condition of what is known to be there.
// What is about to be tried stands in the table as an Attempt until the answer is there. When
// none comes, the planner has the executor find out what became of the attempt before anything
// else is done about the name; one that did not happen is made again under the same id, so
// that it happens once if it comes late. Who came second to another change gets the error of
// the remote, and the attempt is gone; what follows is for a [Judge] to decide.
//
// A [Committer] makes commits of that: it waits for the names that differ when one is asked
// for, and says what became of each. [Holds] know why a name is not sent, and a [Loop] has all
// of it looked at whenever there may be something to send.
//
// [Jobs] are the names that are worked on: what is under way, rests after a failure that may
// pass, or is held back after one that will not, and until when. [Backoff] counts failures
// of whatever names, for the remote as a whole.
//
// A directory that the remote cannot rename hands its names over to a tombstone
// (tombstone.go), and one that comes back takes over those of the one that was removed
// (resurrect.go).
//
// All that is in memory belongs to the tree: what reads or changes it takes a View or a Tx, and
// no request is made while there is one. What is needed of the rest of a working copy stands
// beside its user: [Volume], [Names], [Content] and [Rest] for an executor, [Host], [Judge] and
// [Monitor] for a sender, [Guard] for a committer. Nothing here knows the conflict policy, nor
// what a change set is.
package upload

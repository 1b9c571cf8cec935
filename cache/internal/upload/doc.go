// Package upload makes the remote equal to the tree name by name: which operation comes next
// for a name whose two sides differ, which may run beside each other, and what each of them
// asks of the remote and notes of its answer.
//
// A [Planner] looks at the record of a name, and at what it depends on, as they are at that
// moment. It keeps no log: what is still to be done is what still differs, after a crash too,
// for all that it needs to know is in the table. An [Order] is what a walk through the names
// has passed that is not done: it says whether the next operation may begin beside that.
//
//	p.Begin(false)
//	defer p.End()
//	var before upload.Order
//	q.EachDue(v, func(l table.Link) bool {
//		verdict, op, _ := p.Plan(v, l)
//		if verdict == upload.Ready && before.Lets(op.Class(), noWait) {
//			start(op)
//		}
//		...
//	})
//
// An [Executor] makes one operation: one request, on condition of what is known to be there.
// What is about to be tried stands in the table as an Attempt until the answer is there. When
// none comes, the planner has the executor find out what became of the attempt before anything
// else is done about the name; one that did not happen is made again under the same id, so
// that it happens once if it comes late. What another change came before is for the caller to
// decide about: it gets the error of the remote, and the attempt is gone.
//
//	err := x.Do(ctx, &upload.Try{Operation: op, Unmade: &unmade, Sent: progress})
//
// [Jobs] are the names that are worked on: what is under way, rests after a failure that may
// pass, or is held back after one that will not, and until when. [Backoff] counts failures
// of whatever names, for the remote as a whole.
//
// A directory that the remote cannot rename hands its names over to a tombstone
// (tombstone.go), and one that comes back takes over those of the one that was removed
// (resurrect.go).
//
// What an executor needs of the rest of a working copy are [Volume], [Names] and [Content],
// and [Rest] within a transaction. It waits for nothing else, knows no policy, and tries
// nothing again but a part of large content.
package upload

// Package upload says how the remote is made equal to the tree name by name: which
// operation comes next for a name whose two sides differ, and which may run beside each
// other. It makes none.
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
// What is about to be tried stands in the table as an Attempt until the answer is there; the
// functions of attempt.go write and read what of it the table does not know.
package upload

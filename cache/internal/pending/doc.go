// Package pending knows the changes that the remote does not have yet: which of them are due to be
// sent, how many bytes of content they have, which files programs are still writing, and which
// callers wait for the remote. It sends nothing.
//
// A [Queue] follows each transaction of the tree, see [Queue.Committed]. The order of dirty names
// is the tree's own (table.Name.Seq): all names up to a place in that order are due, and the names
// that an operation made dirty, which are due with it ([Queue.EachDue]). Where changes become due
// by themselves they do so when the window that the first of them opened is over, or too many
// bytes have come together. Each time that there may be changes to send, the queue signals
// [Queue.Kicked].
//
//	q := pending.New(pending.Options{Now: time.Now, After: after, OnChange: true, Window: time.Second, Writers: w, Sender: s})
//	q.Resume(v)
//	w := &pending.Waiter{Ino: ino, Version: n.ContentVersion, Names: q.Structural(v)}
//	q.Ask(v)
//	q.Add(v, w)
//	<-w.Done()
//
// The title and the result of a commit are the same however changes are sent ([Description],
// [Report]), and so are the reasons why a change is not taken ([HeldBack], [Refusal]).
//
// The state that a method of a queue or of a waiter reads or changes belongs to the tree whose
// View it takes; one that takes none needs no lock. Only the [Sender] knows how a sending fails; a
// waiter hears of it when [Queue.NamesChanged], [Queue.Review] or [Queue.Stall] has the names
// looked at again.
package pending

// Package pending is what of a working copy the remote does not have yet: which of it is
// due to be sent, how many bytes of content that is, which of it programs are still
// writing, and who waits for it to arrive. It sends nothing.
//
// A [Queue] follows each transaction of the tree, see [Queue.Committed]. The order of what
// differs is the tree's own (table.Name.Seq): what is due is a place in that order, and the
// names that differ because of an operation, which are due with it ([Queue.EachDue]). Where
// changes become due by themselves they do so when a window is over that the first of them
// opened, or too much has come together. Each time that there may be something to send, the
// queue says so to whoever waits for [Queue.Kicked].
//
//	q := pending.New(pending.Options{Now: time.Now, After: after, OnChange: true, Window: time.Second, Writers: w, Sender: s})
//	q.Resume(v)
//	w := &pending.Waiter{Ino: ino, Version: n.ContentVersion, Names: q.Structural(v)}
//	q.Ask(v)
//	q.Add(v, w)
//	<-w.Done()
//
// What a commit is called, and what it says of itself, is the same however things are sent
// ([Description], [Report]), and so is why a change is not taken ([HeldBack], [Refusal]).
//
// What a method of a queue or of a waiter reads or changes belongs to the tree whose View it
// takes; one that takes none needs no lock. How a sending fails is for its [Sender] to know; a
// waiter hears of it when [Queue.NamesChanged], [Queue.Review] or [Queue.Stall] has the names
// looked at again.
package pending

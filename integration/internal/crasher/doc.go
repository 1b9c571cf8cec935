// Package crasher is a program that works in a directory while the file system
// under it is being killed, and that knows afterwards what must be there.
//
// A client does random operations, one at a time: it creates, overwrites in
// place, maps, truncates, renames, exchanges, links and removes. Before each it
// writes the operation to a log, and behind it that the operation was
// acknowledged, both O_DSYNC and outside the file system under test. From the
// log, Replay tells the state after any number of operations, and Check says
// how a directory differs from it.
//
// A client that meets the death of its file system keeps what it has open and
// mapped, says "dead", and waits for a line on its standard input: whether the
// operation that failed has happened after all ("done") or not ("undone").
// Then it goes on, first with what it still has open, which must fail.
//
//	func TestMain(m *testing.M) {
//		if crasher.IsClient() {
//			crasher.Main()
//			return
//		}
//		...
//	}
//	client, err := crasher.Start(crasher.Options{Dir: mnt + "/c1", Log: log, Seed: 1})
package crasher

// Package reconcile decides about a name under which the remote's entry has changed. It is the one
// place that does, for a listing that was due, for a pull of the whole tree, and for a change that
// the remote refused.
//
//	for {
//		a := reconcile.Decide(base, local, remote, policy)
//		... carry out a.Do ...
//		if a.Do.Ends() {
//			break
//		}
//	}
//
// It knows the three sides of one name as values: base, which is the last known remote entry,
// local, and remote. It does no I/O, reads no clock and knows no table. Facts that cost a request
// or a read, for instance whether two contents are the same, are unknown at first; where a
// decision depends on one, the action is to find it out.
//
// # What it promises
//
// There is an action for every combination of sides. No action loses content that the local side
// has and the remote does not, or the other way round: both stay under names of their own, or
// merged, or held until a person decides, or one is kept in the history first. Hosts that bring
// the same changes together have the same tree in the end, whichever was first.
package reconcile

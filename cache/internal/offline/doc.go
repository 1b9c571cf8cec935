// Package offline is about a working copy that is not mounted: what it has that the remote
// lacks ([Inspect]), that written elsewhere ([Export]), the content that it can do without
// given up ([ContentOf], [MakeRoomIn]), and its names made anew where the table is damaged
// ([Scan]).
//
//	report, err := offline.Inspect("/var/lib/ws/state", 100)
//
// It asks no remote. But for Scan it leaves the table as it is, so that the next start finds
// what it would have found. Each call has the state directory for as long as it takes, Inspect
// together with others of its kind and any other alone, and fails with state.ErrInUse when
// another process has it.
package offline

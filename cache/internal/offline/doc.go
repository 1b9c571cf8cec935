// Package offline serves a working copy that is not mounted: it lists the unsaved changes
// ([Inspect]), copies them elsewhere ([Export]), evicts clean content ([ContentOf],
// [MakeRoomIn]), and rebuilds the names where the table is damaged ([Scan]).
//
//	report, err := offline.Inspect("/var/lib/ws/state", 100)
//
// It asks no remote. But for Scan it leaves the table as it is, so that the next start does the
// same recovery. Each call locks the state directory while it runs, Inspect shared with other
// Inspects and any other call alone, and fails with state.ErrInUse when another process has the
// lock.
package offline

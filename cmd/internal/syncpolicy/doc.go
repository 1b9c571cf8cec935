// Package syncpolicy decides the actions of a working copy after an event: the sync block
// of a manifest (AIP-35, "The storage block" and "Sync semantics by provider") as one
// function of values.
//
// It promises that the answer depends on its arguments alone: there is no clock, no
// context, no lock and no I/O in it. It knows neither the working copy nor the store:
// its caller does the actions, and checks first the further needs of an action,
// such as a grant of the policy (AIP-38).
//
//	for _, a := range syncpolicy.Actions(sync, syncpolicy.On("turn-end"), state) {
//		...
//	}
package syncpolicy

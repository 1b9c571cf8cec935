// Package recovery repairs a working copy after the run before, and leaves it so that the next
// run can trust it.
//
// After a kill every byte that was written is in the content files: those of inodes with a
// dirty intent are taken as changed, unless they still have the digest of the remote's content.
// When the machine went down too, the disk may have lost unsynced writes, in any order: clean
// content is checked or dropped, changed content is suspect, and missing content is fetched
// again, or is lost, which is reported.
//
//	r := recovery.New(recovery.Options{Tree: t, Store: s, ...})
//	err := r.Run()         // before anything else changes the table
//	go r.Sweep()           // if r.IsToSweep: content to which nothing leads
//	...
//	err = recovery.Sync(t, s, dir, update) // at the end: the next start trusts what is on the disk
//
// Run changes the table in one transaction, so that after another kill all of it is done, or
// is done again. Content whose name did not reach the disk is never removed: Sweep puts it
// where a person finds it ([Dir]).
//
// # Records
//
//	instead/<inode>   kept content that is about to become its content
//	disk              the session ended with everything on the disk
//
// It asks no remote. The entries in the history, and conflicts, are made by the [Tx] of its
// user.
package recovery

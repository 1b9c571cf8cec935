// Package tree keeps the inodes and names of a working copy: the local and the last seen remote
// state of each name, the order of names whose two sides differ, and the one lock over all of it.
//
// A [View] reads and a [Tx] changes the tree; there is no other way to the table. Having
// one of them proves that the lock is held.
//
//	err := t.Update(func(tx *tree.Tx) error {
//		rec := tx.Record(l)
//		rec.Ino = ino
//		tx.SetName(l, rec)
//		return nil
//	}, nil)
//
// A name has two sides. Its local one is Name.Ino, its remote one Name.Remote; an inode
// knows the names that it has on each side (Links and RemoteLinks), so that a directory has
// a local and a remote path, which differ while a rename of it has not been sent. While the
// rename is under way the remote path is not known: see [View.Moving].
//
// Beside the table the lock guards state that is in memory alone: the kernel's references to
// inodes and its cached pages and attributes ([View.Refer]), stale dentries
// ([View.MarkStaleDentry]), and observations of the remote that are under way ([View.Observe]).
// State of another package is [Guarded] by it.
//
// Each change of a name, or of the inode behind it, ends with [Tx.Mark]: dirty names are
// ordered by the time at which they became dirty. An inode that loses its last name goes by
// [Tx.Shed]. An [Observer] is told of both within the transaction, for the rest of the
// volume, and [Pins] say which inodes are in use.
//
// All methods of a View and a Tx are for the goroutine that got it, until it ends.
package tree

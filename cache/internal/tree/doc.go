// Package tree is the inodes and names of a working copy: what each name stands for
// locally, what the remote was last seen to have under it, and the one lock over both.
//
// Whoever reads has a [View], whoever changes has a [Tx]; there is no other way to the
// table. That the lock is held is said by having one of them.
//
//	err := t.Update(func(tx *tree.Tx) error {
//		rec := tx.Record(l)
//		rec.Ino = ino
//		tx.SetName(l, rec)
//		return nil
//	}, nil)
//
// A name has two sides. Its local one is Name.Ino, its remote one Name.Remote; an inode
// knows the names that it has on each side (Links and RemoteLinks), so that a directory
// has a local and a remote path, which differ while a rename of it has not been sent.
// While that is under way nobody can say where the remote has it: see [View.Moving].
//
// All methods of a View and a Tx are for the goroutine that got it, until it ends.
package tree

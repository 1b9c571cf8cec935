// Package tree is the inodes and names of a working copy: what each name stands for
// locally, what the remote was last seen to have under it, which of them differ, and the one
// lock over all of it.
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
// While that is under way no one can say where the remote has it: see [View.Moving].
//
// Beside the table the lock guards what is in memory alone: the kernel's references to inodes
// and what it may have of them ([View.Refer]), names that it takes for what they were
// ([View.MarkStaleDentry]), and looks at the remote that are under way ([View.Observe]).
//
// Each change of a name, or of what is behind it, ends with [Tx.Mark]: names whose sides
// differ are in the order in which they began to. An inode that loses its last name goes by
// [Tx.Shed]. What the rest of a volume has to do with either an [Observer] is told within
// the transaction, and [Pins] say which inodes are in use.
//
// All methods of a View and a Tx are for the goroutine that got it, until it ends.
package tree

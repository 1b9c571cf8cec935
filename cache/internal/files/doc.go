// Package files is about the content of files that is used: how it is opened and fetched,
// how what is written comes into the table and to the disk, and what is given up.
//
// An [OpenInode] is an inode whose content is in use, one for all of its users. They get it
// from the [Opener] and give it back there; which inodes are open the [OpenSet] says under a
// View of the tree.
//
//	oi, err := opener.Open(ino, files.ForUs)
//	...
//	snap, err := oi.Content().Snapshot(ctx)
//	...
//	opener.Release(oi)
//
// Before the first byte of an inode changes the table says that its content may be changing:
// its dirty intent. What was written since comes into the table by a metadata flush, at the
// latest with the last close, and the intent ends with it. A start after a crash asks the
// content of inodes with an intent what became of them.
//
// Locks, outermost first: that of an open inode ([LockedInode]), which orders its opening,
// intent and flush, then the lock of the tree. Reads and writes take neither.
//
// Content that is not local comes by the [Hydrator], when it is read, and by [Prefetch],
// before. [Eviction] chooses what may be given up, [Room] decides when, and content to which
// nothing leads any more goes by [DeferredUnlinks].
package files

// Package files is about the content of files in use: how it is opened and fetched, how
// written bytes come into the table and to the disk, and which content is evicted.
//
// An [OpenInode] is an inode whose content is in use, one for all of its users. They get it
// from the [Opener] and release it to the Opener; the [OpenSet] has the open inodes, under a
// View of the tree.
//
//	oi, err := opener.Open(ino, files.ForUs)
//	...
//	snap, err := oi.Content().Snapshot(ctx)
//	...
//	opener.Release(oi)
//
// Before the first byte of an inode changes the table says that its content may be
// changing: its dirty intent. The changes since come into the table by a metadata flush, at
// the latest with the last close, and the intent ends with it. A start after a crash takes
// the state of inodes with an intent from their content.
//
// Locks, outermost first: that of an open inode ([LockedInode]), which orders its opening,
// intent and flush, then the lock of the tree. Reads and writes take neither.
//
// Content that is not local comes by the [Hydrator], when it is read, and by [Prefetch],
// before. [Eviction] chooses the content that may be evicted, [Room] decides when, and
// content that is not reachable any more goes by [DeferredUnlinks].
package files

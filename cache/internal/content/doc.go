// Package content keeps the bytes of a working copy: one file per inode on a local disk,
// filled block by block from a source.
//
// It knows inode numbers, blocks, descriptors and disks. It knows nothing of names, of providers,
// nor of the kernel's protocol: the caller says where missing bytes come from (a [Source]), which
// content may be evicted ([Store.Clean]), and what a change of bytes means.
//
//	s, err := content.Open(dir, content.Options{Limit: 10 << 30})
//	f, err := s.Sparse(ino, "plans/q3.md", size, digest) // not local yet
//	f.SetSource(func(ctx context.Context, off, n int64, w io.WriterAt) error { ... })
//	n, err := f.ReadAt(ctx, buf, 0) // fetches missing blocks
//	n, err = f.WriteAt(ctx, data, 4096)
//	snap, err := f.Snapshot(ctx) // one state, to be sent while writes go on
//	f.Release()
//
// # What it promises
//
// Presence survives SIGKILL. A block is marked present after its bytes were written, in a map of
// the file; a file without a map is whole. A file of one block needs no map: it has no name until
// it is whole. After another boot only blocks that a program wrote, or that [File.Sync] covered,
// still count as present: the disk may have kept a mark and lost its bytes. For the same reason
// the map of a file that a program changed goes only when its bytes are synced.
//
// Bytes that a program wrote are never overwritten by a fetch that comes late: a source's
// bytes go only into blocks that are still missing.
//
// A block counts as present when its source has returned without an error and every byte of
// the range came, never earlier: a source may find out at the end that it delivered the
// wrong bytes. When the last block arrives, and no program changed the file, the whole is
// compared with its digest first.
//
// A block is fetched once, however many callers ask for it. A caller that stops waiting
// leaves; the fetch ends when no caller waits any more.
//
// Of a file that is read on end, ranges are fetched ahead side by side, as many as keep the
// reader from waiting; of a file with scattered reads, little more than the reads.
// [Options.Budget] bounds the bytes that are under way at once. Content that was fetched
// ahead and never read ([Store.Unread]) is evicted before all else.
//
// Content that was ever served is unlinked and replaced, never truncated, punched or rewritten in
// place, except by the program's own calls: the kernel may still have it mapped.
//
// A snapshot is the content at one moment, however long it is read. Nothing is copied for
// it as long as there are no writes; a write copies the pieces that it is about to change
// first, so that writers wait for no upload.
//
// A full disk is met by the write that does not fit, not by a later close: content leaves a
// floor of the disk free, evicts clean content first, and a write to allocated blocks goes
// through. Missing blocks can still be read, without being kept. When others fill the disk
// to the brim, a ballast is given up, for deletes and databases.
//
// # On the disk
//
//	data/xx/<inode>   content; 1024 inodes that were made together share a directory
//	map/<inode>       which blocks of it are present; only while some are not
//	part/<number>     content that has no name yet; emptied by Open
//	history/xx/<id>   content that was kept
//	ballast           unless Options.BallastFile is another
//
// The path of a file is an extended attribute of its content. It is written a second after the
// file was released, if it still exists then: at once, it would make a small new file dearer than
// everything else in this package. So a file of 4 KiB that is created, written and released costs
// the same as open, pwrite and close in a plain directory (ratio 1.0 on ext4 and on tmpfs).
//
// # Descriptors
//
// A file in use has a read-only descriptor, for reading and for the kernel, and while it is
// being changed a second one. Only the second makes a lease fail, so that [File.Quiet] can
// tell foreign writers from ourselves. A file that is not in use has none. Directories of
// content are held open, 256 at most.
//
// # Parts and their locks
//
// A [Store] is put together from types that have one job each:
//
//	dirs        the directories: opens, syncs, asks; knows the abilities of the file system
//	names       the content and the map of one inode on the disk: makes and unlinks them
//	blocks      which blocks of one file are present, as its map says
//	inodes      inodes in memory: Files in use, accounts of changes, and
//	            known, which content is clean and when it was used
//	eviction    gives up clean content
//	room        the space on the disk, the caller's evictor, and the ballast
//	paths       paths that are to be written
//	history     content that was kept
//	work        the tasks in the background
//
// The state that a lock guards is a type of its own that only the lock gives, until unlock: see
// lock of File, dirs, inodes and room. A lockedFile is a File's locked state; bytes are changed
// through it, and read without. No system call is made while the inodes are locked. The order is:
// a file, the names of its inode, the inodes, then any other. None is held when a caller's
// function runs: a source, an evictor, or the function that is asked before an eviction.
package content

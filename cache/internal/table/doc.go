// Package table keeps the durable names of a working copy: inodes, names, the remote's last
// known entry under each name, the order of dirty names, and small records for other
// packages. It knows nothing of content.
//
//	t, err := table.Open(dir, table.Options{})
//	ino := t.Alloc()
//	t.Put(ino, &table.Inode{Mode: syscall.S_IFREG | 0o644})
//	t.SetName(dir, "report.md", table.Name{Ino: ino, Seq: t.NextSeq()})
//	t.Edit(dir).Mtime = now
//	err = t.Commit() // create(2) may return
//	err = t.Sync()   // fsync(2) may return
//
// # What it promises
//
// Changes collect in memory, where all reads see them, until Commit makes them in one step. When
// Commit returns they survive the end of the process by any means, SIGKILL too. When Sync
// returns, everything that was committed before it was called survives a power cut. A power cut
// leaves the state after some commit: all of those before it, nothing of those behind it.
//
// Dependent records change together: SetName keeps the names in an inode, the counts of a
// directory, the order of readdir and the order of dirty names, and Check verifies it all. Inode
// numbers, cookies of one directory and places in the order of dirty names are never given twice.
//
// When the disk is full Commit says so before anything has happened ([ErrFull]), and goes
// on when there is room. When a record cannot be read, or a log or manifest cannot be
// written, the table fails ([Table.Err]): it answers nothing more, rather than half of an
// answer, and its files stay as they were. A record that makes no sense is [ErrDamaged],
// never a panic and never a wrong answer that a checksum would have told.
//
// # Why so
//
// Below is Pebble, a log-structured merge tree in Go. A commit that Pebble syncs waits for its
// log to be written and for the disk. This package takes the disk away from under it: syncing a
// log does nothing until Sync (see disk). One write(2) remains, and that survives a kill.
// Pebble's own NoSync does not wait even for that, and loses commits that were acknowledged.
//
// Others, for the same commit of one create: SQLite (WAL, NORMAL) takes 26 us
// and Badger 6.4 us, where Pebble in this mode took 3.6 us on an idle machine;
// bbolt without sync is torn by a power cut.
//
// Figures, of two shared and busy processors, medians where it matters:
//
//	create (look up, inode, name, directory, commit)   10 us, of which the commit 6 us
//	Inode                         6 ns in memory, 5 us from the database
//	Name, there                   0.1 us in memory; 1.6 us in a directory in use, 3.8 us anywhere among 200 000
//	Name, not there               the same; 1.3 us and 3.2 us
//	Next, over 1000 entries       195 us
//	a thousand files in each of   1000 directories   10 000 directories
//	    to put there, each        6.6 us              26 us (in commits of 1000)
//	    memory after that         63 MiB              56 MiB
//	    and after 2 million reads 82 MiB              81 MiB
//	    on the disk               117 MiB             1118 MiB
//	    a name, there or not      6.6 us              20 us
//	    to open again             0.3 s               0.2 s
//
// Inodes are looked at far more often than names, and names far more often by uploads than
// by programs, for which the kernel keeps them. A decoded one is a hundred times faster
// than a stored one: some of both stay (see resident), and so does the fact that a name is
// missing. In the database a missing name costs no more than another: the levels above the
// last have Bloom filters, and the last is one search in blocks that the directory shares.
//
// Memory is bounded by Options, not by the number of records: blocks of the database, decoded
// inodes and names, and up to five memtables of 4 MiB under load. An empty table takes 0.3 MiB.
//
// # What a caller must know
//
// One lock of the caller is held over every method, but Sync, Err and those of a
// [Snapshot]. All may call Pebble; none waits for an fsync, except the first Commit
// of a session, a Commit that meets a log of 4 MiB that is full, and Alloc or
// NextSeq should they use up 8192 numbers faster than one fsync takes.
package table

// Package direct serves a local directory as a volume: the directory is the store, and the
// mount shows its present content, also when other processes change it meanwhile. It knows
// Linux system calls and nothing of FUSE.
//
//	v, err := direct.Open(ctx, "/srv/workspaces/acme", direct.Options{Watch: true})
//	...
//	server, err := fs.Serve("/mnt/ws", []fs.Part{{Volume: v}}, fs.Options{})
//
// # Promises
//
// It is as correct as the disk. Every call ends in the system call of the same name on the same
// file, and its errno is passed on; except syncfs(2), which the kernel does not pass on. The
// rest, left to us, is done by the kernel's rules: a file belongs to the caller that created it
// (see creds.as), its umask counts unless the parent has a default ACL, and a write by a caller
// that may not keep set-id bits and capabilities clears them. The kernel obeys O_DIRECT, our
// descriptors do not. Only quota and the blocks reserved for root are the daemon's when content
// is written, not the caller's.
//
// Set-id bits that a file gets while it is open for writing in passthrough stay if no write
// follows. A write's effect on them is applied when the attributes are next requested or a
// writer closes, and until then the file cannot be run: outside of the mount the disk answers
// ETXTBSY, for the writer has it open, and through the mount (where it was mounted with suid)
// we do. A file that lost bits to a write is run two seconds after the last writer closed it,
// so that the kernel goes by its mode as it is by then. The kernel does not name the caller of
// a write that it passes through: the write counts for the process that opened the file, so
// that root keeps the bits as on the disk, also where root gave its descriptor to another user;
// while a user has the file open too, root loses them. If the times are set by any user but the
// owner, or by any process outside, that counts as a write. Two more cases that the disk
// prevents are not seen: a write in the very moment in which the owner sets the times, and one
// after wsmount was killed. Capabilities need none of this, the disk clears them at every
// write. Stores through a mapping leave the bits, as on the disk.
//
// Nothing outside the root is reached. An inode is found by names opened one at a time relative
// to a descriptor, without following links, and must have the identity that the kernel was
// told: anything else is ESTALE, on which the kernel looks the name up again by itself. A name
// that leads to another mount is refused with EACCES, counted in Status: that mount was not
// granted with the directory, and its inode numbers could be taken for ours. File handles
// (open_by_handle_at) are not used, although root could: they open a file that was moved out of
// the tree as readily as one inside, and cost a call for each lookup.
//
// An inode that lost its name still answers while the kernel knows it, by a descriptor that is
// opened just before the name goes. Remembering only its attributes would save two system
// calls, but then it could not be opened again (by /proc/self/fd, of an O_PATH descriptor).
//
// ESTALE of open(2) stays between the kernel and us. The kernel looks up and opens once more
// after the first, and gives up after the second. A request that was overtaken by a change of
// our own starts over, without an ESTALE. Where a regular file was replaced between lookup and
// open, the lookups of the next second take a descriptor, so that the second open cannot fail:
// see hot, which does so for up to 64 names at a time.
//
// Open files leave the last descriptors of the process (256, or a quarter where there are few)
// to all other uses: they get EMFILE earlier, and names can still be listed, looked up, renamed
// and removed.
//
// # Identity
//
// A file is identified by (number, birth time, device) out of the one statx(2) that a lookup
// makes; the birth time stands for the generation, for numbers are used again. Where a disk
// keeps none, the file handle's generation takes its place. Numbers of inodes (fs.Ino) are ours
// and never given twice; see table. A known file costs about 140 bytes, and no descriptor.
//
// # Freshness
//
// With the watch the kernel believes names (also that a name does not exist) and attributes for
// 60 seconds, and is told of changes by others within 100 ms. It believes them for a second
// instead where no change would be reported: without the watch, in directories that have none,
// and for the attributes of files with several links (a change through another directory is not
// reported for this one). Attributes of a file that the kernel can write to by itself are not
// believed at all, for as long as a descriptor or a mapping is left. A read lease tells, which
// the disk grants only when no process can write; on a disk without leases they are believed
// for a second after the last close. A store through a mapping of another process shows when
// the disk learns of it, at msync or write-back. Two changes within one tick of the disk's
// clock that leave the size the same can be distinguished from Linux 6.13 on, whose time stamps
// become fine-grained once they were looked at; before, a tick is 1 to 10 ms.
//
// Our own changes are not looked at again where the report cannot hide another change: a
// removal or a creation alone. Any other report of a name within 10 ms costs one statx(2), for
// the kernel merges equal reports of our changes and of others'.
//
// Each change by others is also one `write` or `delete` event, when the writer has closed the
// file or left it alone for 50 ms. Changes through the mount are events when the file that
// wrote is released, and when names change; rmdir is a delete, mkdir is no event.
//
// When others rename or remove a directory, its old name is reported and the kernel unmounts
// any mount below that name, as it would on any lookup of it. A directory that still has its
// name is never reported.
//
// # Renames
//
// The flags of renameat2(2) through FUSE, on Linux 6.18 over ext4:
//
//	none              atomic, directories with all below in one step
//	RENAME_NOREPLACE  EEXIST by the disk, no race
//	RENAME_EXCHANGE   atomic, both inodes keep their numbers
//	RENAME_WHITEOUT   by callers with CAP_MKNOD: a device 0/0 stays behind
//
// The disk answers EINVAL where it cannot. link(2) of an O_TMPFILE works; a chmod of a symbolic
// link is EOPNOTSUPP, as on the disk.
//
// # Privileges
//
// As root the volume acts for every user. Without, it acts as its own user: it creates as
// itself, needs search permission only for directories that no process lists, and offers the
// kernel no descriptors to read and write by itself. /proc is needed for calls that have no
// form for O_PATH descriptors.
package direct

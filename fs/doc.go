// Package fs serves volumes to the kernel as one FUSE mount.
//
// It knows the kernel and nothing of storage: a [Volume] is a tree of numbered inodes, and
// their storage (a directory, a working copy, a snapshot) is the volume's own affair. It
// promises that a program in the mount sees one POSIX tree, whatever volumes it is made of, and
// that nothing in a read-only part, and no file that governs the mount, is changed from inside.
//
//	srv, err := fs.Serve("/mnt/ws", []fs.Part{
//		{Name: "@acme/marketing-ops", Volume: ops},
//		{Name: "@vendor/lib", At: "external/lib", Volume: lib, ReadOnly: "mount mode"},
//	}, fs.Options{})
//	...
//	err = srv.Unmount()
//	err = srv.Wait()
//
// Packages outside import it as wsfs.
//
// # Why the raw interface
//
// The front implements go-fuse's RawFileSystem, not its tree of nodes. A node of that tree
// costs 590 bytes, so a million names that were looked up once cost 590 MB; its create drops
// the caller's umask, which a default ACL needs; it merges equal inode numbers of two volumes;
// and it decides about passthrough once per file, not per open. Over the raw interface the
// front keeps nothing for an inode that is not open: the volume counts references, in the lock
// that maps its files to numbers.
//
// # Numbers
//
// A node id is a volume's slot (16 bits) and the volume's inode number (48 bits, never reused),
// so that an old request can never meet a new file. st_ino is made the same way from
// [Attr].Ino; the root volume's slot is 0, so its numbers are shown as they are. Each part of
// the tree has four slots: its volume, its .wsmount, the directories that must be shown on the
// way to a part below it and exist nowhere, and the names that its volume shows beside its own.
//
// # Composition
//
// A part stands at a path of the part whose own path is the longest prefix of it, on path
// boundaries. The volume's own entry of that name is hidden, not lost. The name cannot be
// removed, renamed or made (EBUSY, EEXIST), nor can a directory that leads to it; links and
// renames from one part to another are EXDEV. statfs, read-only and governing files are each
// part's own.
//
// # Which layer checks
//
// The kernel checks permissions (default_permissions) from modes, owners and
// ACLs, keeps flock and fcntl locks, and applies set-group-id to chmod. The
// front refuses changes in read-only parts and of governing files. The volume
// gives new inodes their owner, applies the umask unless the parent has a
// default ACL, and clears set-user-id bits when [Op].KillPriv says so. Special
// files never reach a volume once they are made: the kernel opens them.
//
// # What the kernel may cache
//
// Each answer carries how long a name and attributes may be believed, as the volume sees fit; a
// name that does not exist is remembered too. Pages stay in the kernel from one open to the
// next when the volume says that the content is the same ([Opened].KeepCache). No pages are
// kept of an inode for which the kernel may still have the size of another version
// ([Opened].NewAttr). A volume that learns of a change made behind the mount tells its
// [Notifier], and a worker tells the kernel.
//
// # Io modes
//
// An inode's open files are read and written either through the page cache, with misses and
// writes sent to the volume, or directly in a backing file of the volume (passthrough), at the
// speed of the disk under it. The kernel allows one of the two at a time for each inode: the
// first open chooses, and the last release frees the choice. A file that may be read but not
// written in passthrough (set-user-id bits, which such a write would not clear) is written
// through the daemon, one request at a time, while others read it in passthrough. Passthrough
// needs privilege, Linux 6.9, and files that do not lie on a stacked file system;
// [Server.Passthrough] says which is missing.
//
// # Errors
//
// A volume returns errnos or the kinds of errno.go, the only table. A failure that a person
// should know of (EIO, no space, a refusal by policy) is logged and told to [Options].OnFailure
// with part, operation and path. A panic in a request is EIO for its caller, a stack in the log
// and a number in Stats; the mount lives on.
//
// # Locks
//
// The front holds no lock of its own while it calls a volume, but for that of
// one open directory stream. A notification may block in the kernel on a lock
// that a request holds, so none is sent by a handler.
package fs

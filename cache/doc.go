// Package cache is a working copy: a POSIX tree over any [providers.Provider],
// served as an [fs.Volume].
//
// It knows inodes, content files and what the backend was last seen to hold.
// It knows no service, no kernel protocol and no manifest.
//
//	v, err := cache.Open(ctx, provider, cache.Options{StateDir: "/var/lib/ws/state"})
//	server, err := fs.Serve("/mnt/ws", []fs.Part{{Name: "@acme/ops", Volume: v}}, fs.Options{})
//	...
//	report, err := v.Commit(ctx, cache.CommitOptions{Message: "turn 7"})
//
// # Two trees over one set of inodes
//
// A working copy is two trees over the same inodes: what is here, and what the
// backend is known to hold. A name in a directory is one record with both
// sides of it: the inode that it has here, and the one that it has there, in
// which version. An inode knows its names in both trees (Links and Homes). So
//
//   - a rename, of a directory with a million entries too, changes one record;
//   - what has to be sent is not a log of steps but the set of names whose two
//     sides differ, in the order in which they began to. A create and a delete
//     of one name, or a write to a temporary file that is then renamed, leave
//     nothing or one change to send. After a crash there is nothing to replay;
//   - committing makes the far side of a name equal to the near one, pulling
//     the near side equal to the far one where nothing was changed here, and a
//     conflict is a name where both moved.
//
// Names, inodes and versions are in a database (internal/table), the content
// of each inode is a file (internal/content). Directories are listed at the
// backend when somebody first looks into them.
//
// # What it promises
//
// A call that changes a name or an attribute has returned when the database
// has it, which survives a kill of this process, and a loss of power as a
// prefix of what was done. It never waits for the backend, but for the first
// listing of a directory that nobody has looked into: there a new name waits as a
// look does, for half of Options.Patience. Once the backend has not answered for
// that long the error comes at once, until it answers again. With
// Options.ListRoot the root is listed before somebody asks.
//
// A file that a program opens for writing is known as perhaps changed before
// the open returns. What close returns for is Policy's: that the backend has
// the bytes, and every change of names before them, or that the working copy
// has them. fsync is the same, and on a working copy that does not wait it
// means the disk. A program that ends without closing is told nothing: the
// kernel closes for it, which waits for half a second at most, for all files
// together, and the bytes are sent afterwards.
//
// Each change at the backend is made on condition of the version that it
// started from and carries an operation id that was noted before, so that an
// answer that got lost is not taken for another's change, after a crash too.
// Who loses a race is up to Policy.Conflict; only LastWriterWins overwrites,
// and keeps what it overwrote in the history.
//
// A name that the backend cannot have (Capabilities.Names), and extended
// attributes for which it has no room, are refused when a program gives them.
// A change that the backend refuses stays here, is held back with its reason
// ([Volume.Status]), and does not hold others up. Writers never wait for a
// commit, and names for a few dozen of those in it at most, however many there are.
//
// # Fetching
//
// Content comes when it is read, in ranges of one version, and each of them once
// however many wait for it. Who reads a file on end, or the small files of a
// directory one after another, has the next of it fetched ahead, as long as that
// turns out to be of use; the second only of a service that is far away. What is
// opened to be read or appended to, or both, has its first bytes here when the open
// returns, a small file all of them, so that it is the open that finds a version
// gone, and takes the next one: a write never hears of it. Only O_WRONLY by itself
// fetches nothing before it must: all may be about to be overwritten. All that
// is under way at once, of the working copies of one mount together, stays within
// Options.Fetches.
//
// A backend that refuses is tried again for half of Options.Patience, at least each
// second: it can be restarted in that time, and no reader hears of it. When it has
// refused for that long, further reads fail after a second, until one is answered;
// each asks, so that the first after its return is.
//
// # Pulling
//
// A new version of a file is a new inode under the old name: who has the old
// one open keeps it, and a mapping or a passthrough descriptor never sees half
// of each. Only an inode becomes the new version itself of whose content nobody
// saw anything: who has it open, to write too, still waits for its first bytes. A directory
// stays the inode that it is as long as there is one of that name, so that what
// a sandbox has mounted below it stays; one that was removed here, and comes back
// because others have put something into it, is another. A file that lost its name
// to a pull while it was open, and is then written and closed, is a conflict of that
// name.
// Under the policies that merge, a text that was changed here and there becomes a
// new inode with both changes, where they are in other lines (lines.Merge), if
// what ours began from is at the backend, in one of the last revisions of it, or
// in the history.
//
// What was written into a part of a file, whose rest others took away before it came
// here, can be no version of it: it becomes a conflict copy, whatever the policy, with
// zeros for what is gone.
//
// A pull or a commit that would delete more than half of the entries, of at
// least 20, or leave the root empty, does nothing and waits for
// [Volume.Confirm].
//
// # The past
//
// A [State] is what a state of the past is called by. From the first thing that
// happened to each inode since, and from where its directories were, follows in
// what that state differs from the present: [Volume.Restore] makes it so, as a
// change like any other, and [Volume.Diff] shows it. What cannot be known is said,
// not guessed.
//
// # The kernel
//
// KeepCache is set when content is in the state of the last open. An O_RDONLY
// open of content that is all here and that nobody writes offers its file for
// passthrough; opens for writing always come through here, so that every write
// is seen. A directory that still exists is never notified: the kernel would
// unmount what is below.
//
// # After an unclean end
//
// After a kill, files that were open for writing are taken as changed. After a
// loss of power, changed content that was not synced is suspect: the database
// may have outlived its bytes. It is shown, and not sent over what the backend
// has until somebody says so. Clean content is fetched or checked again. A name
// whose end the disk did not get is back with its content, which goes only when
// the disk has the database that let go of it.
//
// # What stays here
//
// Excluded paths; devices, sockets and pipes; set-user-id and set-group-id
// bits; trusted.* and security.* attributes; owners without Options.MapIDs; what
// the provider's Capabilities leave out (symbolic links, empty directories,
// attributes, extended attributes). With Policy.Atomic, a change of a directory's
// attributes. Hard links hold within the volume; the backend gets a copy
// under each name. A directory, or a file whose content is not all here, does
// not cross the border between excluded and not by rename: EXDEV, and mv
// copies. A file that leaves for an excluded name is deleted at the backend, and
// that is reported (Status.Problems).
//
// With Options.IgnoreFile, what such files say is to be ignored and the backend
// does not have; what it has is sent whatever they say. That is decided at each
// commit, by the files as they are then, so a name goes when a rule ends. A
// directory that the backend has does not get an ignored name (EXDEV); one that
// it has not does, and what it has of a directory that is renamed goes along,
// as with git mv, whatever rules there are about the new place. Rules are read
// from the tree alone: nothing is like git's info/exclude, or a file of the user's.
//
// With [Guard], files that are too large or hold a secret, until they change.
//
// # What is not there yet, and what is wrong
//
// inotify watchers learn of files that a pull brought ([Nudge]), not that one is
// gone. What the storage was sent one by one just before a loss of power may come
// back as another's change.
package cache

// Package cache is a working copy: a POSIX tree over any [providers.Provider],
// served as an [fs.Volume].
//
// It knows inodes, content files and what the remote was last seen to hold. It knows
// no service, no kernel protocol and no manifest.
//
//	v, err := cache.Open(ctx, provider, cache.Options{StateDir: "/var/lib/ws/state"})
//	server, err := fs.Serve("/mnt/ws", []fs.Part{{Name: "@acme/ops", Volume: v}}, fs.Options{})
//	...
//	report, err := v.Commit(ctx, cache.CommitOptions{Message: "turn 7"})
//
// # Words
//
//	local, remote       the working copy, and the bucket or repository behind it
//	upstream            the branch that a git working copy follows
//	inode, dentry       as in the kernel; a dentry is a name in a directory
//	link, remote link   a name of an inode in the local tree, and in the remote one
//	dirty               a name whose two sides differ
//	seq                 place of a dirty name in the order in which names became dirty
//	commit window       dirty names up to a seq are due to be sent together
//	dirty intent        record that a program may change a file, made before it can
//	content version     number of a state of a file's content, from 1 on
//	flush metadata      take size and times of an open file into the database
//	hydrate             fetch content that is not local, in ranges, when it is read
//	prefetch            hydrate before it is asked for
//	evict               give up local content that the remote has
//	listing             what the remote has in a directory; shared by who asks meanwhile
//	observation         a look at the remote that takes a while, and what changed meanwhile
//	revalidate          ask the remote whether what is known of a name still holds
//	implied directory   directory that exists only because keys begin with its path
//	attributes unknown  what a listing left out and a look at the object would tell
//	operation, job      one request that changes the remote; the work on one dirty name
//	attempt             record of an operation whose answer is not known yet
//	resolve an outcome  find out what became of an attempt
//	change set          all changes of one commit, for a remote that takes them at once
//	snapshot            the database as it was at one moment, read without the lock
//	tombstone           keeps the old remote path of a directory that is being renamed
//	resurrect           make a directory again that the remote lost while it was renamed
//	conflict            a name that changed locally and on the remote
//	partial conflict    a conflict of a file whose missing content the remote lost
//	orphan conflict     a file that lost its name to a pull while it was open
//	conflict copy       NAME.conflict-HASH.EXT, which keeps the other side of a conflict
//	synced revision     the revision whose names the database has as the remote's
//	head lock           keeps the head where it is, or lets one move it
//	previous heads      revisions that the head was before
//	soft reset          take back commits that were not pushed, and keep their changes
//	mass-delete guard   stops a pull or commit that deletes suspiciously much
//	read breaker        lets reads fail at once while the remote refuses them
//	stale dentry        a name of which the kernel does not know yet that it changed
//	deferred unlink     content that goes once the disk has the database without it
//	offline report      what a working copy that is not mounted has not sent
//
// # Where things are
//
// The inodes and names of both sides, with the lock, the transaction, the references of
// the kernel and the order of what differs, are package tree; their records are package
// table, and bytes package content. What becomes of a name of which the two sides differ
// is decided by package reconcile, and carried out by package merge; what attributes are on
// each side is package attrs. The
// rule against mass deletions is package massdelete. The operations of the kernel are package
// ops, what a change of a name entails package local, and which names stay on this machine,
// by exclusion and ignore files, package rules. Package history notes what happens and
// keeps content, package past says what was and goes back to it, and package show lists it
// as files. Package listing makes the names known that the remote has, says how long a
// directory is believed, lists ahead of a walk and compares all for a pull,
// package files has what fetches of content need and the prefetch of small files, package
// pending what is dirty, when it is due and who waits for it. Package waiting has programs
// wait, as long as one is patient, and tries again what fails for a while. Package
// upload sends it name by name, and package commit as change sets: a volume has one of
// both as its [Committer]. Package revision follows the head of a store of whole
// revisions, moves it, and pushes what it has. Package state has the directory that a
// working copy is in, package recovery deals with what an unclean end left, and package
// offline with a working copy that is not mounted. Package chores keeps what a person is
// told, and package exiting tells closes that no one hears the answer of.
//
// Files here are named by topic: volume is what a volume has, and open how it begins; ops is what a
// volume does for the operations of the kernel,
// rules for those who learn ignore files; tree_ is what of inodes and names needs the rest of
// the volume, files_ open files and their content, listing what it
// does for listings, merge what a volume does for merges, pending what it does for what is to be sent, upload_ what
// a volume does for uploads, commit_ the same for change sets, revision what it does for its
// head, massdelete_ what a halt
// means for pulls and commits, history_ what a volume does for its history, and to go back,
// recovery_ what a start makes of what the run before left.
//
// Whoever holds the lock has a [View], and whoever changes the table a [Tx]; whoever keeps
// the head where it is has a revision.Held, and whoever moves it a revision.Moving.
//
// # Two trees over one set of inodes
//
// A working copy is two trees over the same inodes: the local one, and what the remote
// is known to hold. A name in a directory is one record with both sides of it: its
// local inode, and the remote's, in which version. An inode knows its names in both
// trees (Links and RemoteLinks). So
//
//   - a rename, of a directory with a million entries too, changes one record;
//   - what has to be sent is not a log of operations but the set of names whose two
//     sides differ, in the order in which they began to. A create and a delete of one
//     name, or a write to a temporary file that is then renamed, leave nothing or one
//     change to send. After a crash there is nothing to replay;
//   - committing makes the remote side of a name equal to the local one, pulling makes
//     the local side equal to the remote one where it is not dirty, and a conflict is a
//     name where both moved.
//
// Names, inodes and versions are in a database (internal/table), the content of each
// inode is a file (internal/content). A directory is listed at the remote when it is
// first looked into.
//
// # What it promises
//
// A call that changes a name or an attribute has returned when the database has it,
// which survives a kill of this process, and a loss of power as a prefix of what was
// done. It never waits for the remote, but for the first listing of a directory: there
// a new name waits as a lookup does, for half of Options.Patience. Once the remote has
// not answered for that long the error comes at once, until it answers again. With
// Options.ListRoot the root is listed at mount.
//
// A file that a program opens for writing is recorded as perhaps changed before the
// open returns. What close waits for is Policy's: that the remote has the bytes, and
// every change of names before them, or that the working copy has them. fsync is the
// same, and where the policy does not wait for the remote it means the disk. A program
// that ends without closing is told nothing: the kernel closes for it, which waits for
// half a second at most, for all files together, and the bytes are sent afterwards.
//
// Each change at the remote is made on condition of the version that it is based on and
// carries an operation id that was recorded before, so that an answer that got lost is
// not taken for the change of another writer, after a crash too. Policy.Conflict says
// which side wins a race; only LastWriterWins overwrites, and keeps what it overwrote in
// the history.
//
// A name that the remote cannot have (Capabilities.Names), and extended attributes for
// which it has no room, are refused at the call. A change that the remote refuses, for its
// quota too, which a close or fsync that waits is told, stays local, is held back with its
// reason ([Volume.Status]), and does not delay others. Writers never wait for a commit, and
// names for a few dozen of those in it at most, however many there are.
//
// # Hydration
//
// Content is fetched when it is read, in ranges of one version, and each range once
// however many readers wait for it. A reader of a file from start to end, or of the
// small files of a directory one after another, has the next of it prefetched as long as
// that turns out to be of use; the second only of a service that is far away. An open
// for reading or appending, or both, returns when the first bytes are local, all of them
// of a small file, so that it is the open that finds a version gone, and takes the next
// one: a write never hears of it. Only O_WRONLY by itself fetches nothing before it
// must: all may be about to be overwritten. All fetches under way at once, of the working
// copies of one mount together, stay within Options.Fetches.
//
// A remote that refuses reads is tried again for half of Options.Patience, at least each
// second: it can be restarted in that time without an error to a reader. When it has
// refused for that long, further reads fail after a second, until one is answered; each
// asks, so that the first after its return succeeds (the read breaker).
//
// # Pulling
//
// A new version of a file is a new inode under the old name: a program that has the old
// one open keeps it, and a mapping or a passthrough descriptor never sees half of each.
// Only an inode of whose content no program saw anything becomes the new version itself:
// whoever has it open still waits for its first bytes. A directory stays the inode that
// it is as long as there is one of that name, so that what a sandbox has mounted below it
// stays; one that was removed locally, and is restored because the remote added something
// to it, is another. A file that lost its name to a pull while it was open, and is then
// written and closed, is an orphan conflict.
//
// Under the policies that merge, a text that was modified on both sides becomes a new
// inode with both changes, where they are in other lines (lines.Merge), if the version
// that the local one is based on is at the remote, in one of the previous heads, or in
// the history.
//
// What was written into a part of a file, whose rest the remote lost before it was
// fetched, can be no version of it: it becomes a conflict copy, whatever the policy, with
// zeros for what is gone (a partial conflict).
//
// A pull or a commit that would delete more than half of the entries, of at least 20, or
// leave the root empty, does nothing and waits for [Volume.Confirm].
//
// # The past
//
// A [State] is what a state of the past is called by. From the first thing that happened
// to each inode since, and from where its directories were, follows in what that state
// differs from the present: [Volume.Restore] makes it so, as a change like any other, and
// [Volume.Diff] shows it. What cannot be known is said, not guessed.
//
// # The kernel
//
// KeepCache is set when content is in the state of the last open. An O_RDONLY open of
// content that is all local and that no program writes offers its file for passthrough;
// opens for writing always come through this package, so that every write is seen. A
// directory that still exists is never notified: the kernel would unmount what is below.
//
// # After an unclean end
//
// After a kill, files that were open for writing are taken as changed. After a loss of
// power, changed content that was not synced is suspect: the database may have outlived
// its bytes. It is shown, and does not replace what the remote has until a person says
// so; if it had arrived there whole, that is fetched again. Clean content is fetched or
// checked again. A name whose removal the disk did not get is back with its content, which
// goes only when the disk has the database that let go of it.
//
// # What is never sent
//
// Excluded paths; devices, sockets and pipes; set-user-id and set-group-id bits;
// trusted.* and security.* attributes; owners without Options.MapIDs; what the provider's
// Capabilities leave out (symbolic links, empty directories, attributes, extended
// attributes). With Policy.Atomic, a change of a directory's attributes. Hard links hold
// within the volume; the remote gets a copy under each name. A directory, or a file whose
// content is not all local, is not renamed from an excluded path to one that is not, or
// back: EXDEV, and mv copies. A file that leaves for an excluded name is deleted at the
// remote, and that is reported (Status.Problems).
//
// With Options.IgnoreFile, names that such files ignore and the remote does not have; what
// it has is sent whatever they say. That is decided at each commit, by the files as they
// are then, so a name goes when a rule ends. A directory that the remote has is not given
// an ignored name (EXDEV); one that it has not is, and what it has of a directory that is
// renamed goes along, as with git mv, whatever rules there are about the new place. Rules
// are read from the tree alone: nothing is like git's info/exclude, or a file of the user's.
//
// With [Guard], files that are too large or hold a secret, until they change.
//
// # Limits
//
// inotify watchers learn of files that a pull brought ([Nudge]), not that one is gone.
// What a remote was sent name by name just before a loss of power may come back as the
// change of another writer.
package cache

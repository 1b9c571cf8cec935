// Package cache is a working copy: a POSIX tree over any [providers.Provider],
// served as an [fs.Volume].
//
// It knows inodes, content files and the last known state of the remote. It knows
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
//	prefetch            hydrate before a program reads
//	evict               give up local content that the remote has
//	listing             the remote's entries of a directory; concurrent requests share one
//	observation         a look at the remote that takes a while, and the changes meanwhile
//	revalidate          ask the remote whether the known state of a name still holds
//	implied directory   directory that exists only because keys begin with its path
//	attributes unknown  attributes that a listing left out and a look at the object would tell
//	operation, job      one request that changes the remote; the work on one dirty name
//	attempt             record of an operation whose answer is not known yet
//	resolve an outcome  find out whether an attempt took effect
//	change set          all changes of one commit, for a remote that takes them at once
//	snapshot            the database as it was at one moment, read without the lock
//	tombstone           keeps the old remote path of a directory that is being renamed
//	resurrect           make a directory again that the remote lost while it was renamed
//	conflict            a name that changed locally and on the remote
//	partial conflict    a conflict of a file whose missing content the remote lost
//	orphan conflict     a file that lost its name to a pull while it was open
//	conflict copy       NAME.conflict-HASH.EXT, which keeps the other side of a conflict
//	synced revision     the revision whose names the database has as the remote side
//	head lock           keeps the head where it is, or lets one holder move it
//	previous heads      revisions that the head was before
//	soft reset          take back commits that were not pushed, and keep their changes
//	mass-delete guard   stops a pull or commit that deletes suspiciously much
//	read breaker        lets reads fail soon while the remote refuses them
//	stale dentry        a name that changed without the kernel's knowledge so far
//	deferred unlink     removal of content once the disk has the database without it
//	offline report      the unsent changes of a working copy that is not mounted
//
// # Where things are
//
// Package tree has the inodes and names of both sides, with the lock, the transaction, the
// kernel's references and the order of the dirty names; package table has their records, and
// package content the bytes. Package reconcile decides about a name whose two sides differ,
// and package merge carries that out; package attrs translates attributes between the sides.
// Package massdelete has the rule against mass deletions. Package ops has the operations of
// the kernel, package local the consequences of a change of a name, and package rules the
// names that stay local, by exclusion and ignore files. Package history records changes and
// keeps content, package past describes earlier states and goes back to them, and package
// show lists them as files. Package listing loads the remote's names, says how long a
// directory is believed, lists ahead of a walk and compares all for a pull. Package files has
// the tools for fetching content and the prefetch of small files. Package pending has the
// dirty names, when they are due, and the callers that wait for them. Package waiting makes
// programs wait within Options.Patience, and retries temporary failures. Package upload sends
// name by name, and package commit change sets: a volume has one of both as its [Committer].
// Package revision follows the head of a store of whole revisions, moves it, and pushes its
// commits. Package state has the directory of a working copy, package recovery repairs it
// after an unclean end, and package offline reads one that is not mounted. Package chores
// keeps the problems that a person is told, and package exiting recognizes the closes that
// the kernel makes for a program that ends, whose answer no program reads.
//
// The packages are cut where one side can be tested without the other. Recording the past
// (history) needs no remote, and reading it (past, show) no lock. Loading names (listing) is
// apart from the decision about them (reconcile), and that from carrying it out (merge), since
// the decision is a table without state. Waiting is apart from uploading, since readers wait too.
// Helpers that know nothing of a working copy (lines, ignore, needle, exactjson, budget, quota,
// gopath) are packages of their own so that they cannot come to know one.
//
// Files of this package are named by topic, mostly by the package that they connect to the
// volume: ops, rules, listing, merge, pending, revision, recovery, show, history_, upload_
// (name by name), commit_ (change sets), files_ (open files and their content) and tree_
// (inodes and names). volume has the fields, open the start, and massdelete the effect of a
// halt on pulls and commits.
//
// The holder of the lock has a [View], and a function that changes the table a [Tx]. A
// revision.Held keeps the head where it is, and a revision.Moving may move it.
//
// # Two trees over one set of inodes
//
// A working copy is two trees over the same inodes: the local one, and the known state of
// the remote. A name in a directory is one record with both sides of it: its
// local inode, and the remote's, in which version. An inode knows its names in both
// trees (Links and RemoteLinks). So
//
//   - a rename, of a directory with a million entries too, changes one record;
//   - the unsent changes are not a log of operations but the set of names whose two
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
// which survives a kill of this process, and a loss of power as a prefix of the changes
// made. It never waits for the remote, but for the first listing of a directory: a new name
// in it waits as a lookup does, for half of Options.Patience. Once the remote has
// not answered for that long the error comes at once, until it answers again. With
// Options.ListRoot the root is listed at mount.
//
// A file that a program opens for writing is recorded as perhaps changed before the
// open returns. Policy decides whether close waits until the remote has the bytes, and
// every change of names before them, or until the working copy has them. fsync is the
// same, and where the policy does not wait for the remote it means the disk. A program
// that ends without closing is told nothing: the kernel closes for it, which waits for
// half a second at most, for all files together, and the bytes are sent afterwards.
//
// Each change at the remote is made on condition of the version that it is based on and
// carries an operation id that was recorded before, so that an answer that got lost is
// not taken for the change of another writer, after a crash too. Policy.Conflict says
// which side wins a race; only LastWriterWins overwrites, and keeps the overwritten content
// in the history. Content that is too large for the history is not overwritten: that is a
// conflict.
//
// A name that the remote cannot have (Capabilities.Names), and extended attributes for
// which it has no room, are refused at the call. A change that the remote refuses, for its
// quota too, stays local, is held back with its reason ([Volume.Status]), and does not delay
// others; a close or fsync that waits gets the refusal as its error. Writers never wait for
// a commit, and requests for names wait for a few dozen of the commit's names at most,
// however many there are.
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
// Only an inode whose content no program has seen becomes the new version itself: a
// program that has it open still waits for its first bytes. A directory stays the inode that
// it is as long as there is one of that name, so that the mounts of a sandbox below it
// stay; one that was removed locally, and is restored because the remote added something
// to it, is another. A file that lost its name to a pull while it was open, and is then
// written and closed, is an orphan conflict.
//
// Under the policies that merge, a text that was modified on both sides becomes a new
// inode with both changes, where they are in other lines (lines.Merge), if the version
// that the local one is based on is at the remote, in one of the previous heads, or in
// the history.
//
// If part of a file was written, and the remote lost the rest before it was fetched, the
// result can be no version of the file: it becomes a conflict copy, whichever the policy,
// with zeros for the missing bytes (a partial conflict).
//
// A pull or a commit that would delete more than half of the entries, of at least 20, or
// leave the root empty, does nothing and waits for [Volume.Confirm].
//
// # The past
//
// A [State] names a state of the past. It is derived from the first event of each inode
// since, and from the earlier places of its directories: [Volume.Restore] brings it back, by
// changes like any other, and [Volume.Diff] shows the difference. A part that cannot be known
// is reported, not guessed.
//
// # The kernel
//
// KeepCache is set when content is in the state of the last open. An O_RDONLY open of
// content that is all local and that no program writes offers its file for passthrough;
// opens for writing always come through this package, so that every write is seen. A
// directory that still exists is never notified: the kernel would unmount all below.
//
// # After an unclean end
//
// After a kill, files that were open for writing are taken as changed. After a loss of
// power, changed content that was not synced is suspect: the database may have outlived
// its bytes. It is shown, and does not replace the remote's content until a person says
// so; if it had arrived at the remote whole, that is fetched again. Clean content is fetched
// or checked again. A name whose removal the disk did not get is back with its content, which
// is unlinked only when the disk has the database without it.
//
// # What is never sent
//
// Excluded paths; devices, sockets and pipes; set-user-id and set-group-id bits;
// trusted.* and security.* attributes; owners without Options.MapIDs; everything that the
// provider's Capabilities leave out (symbolic links, empty directories, attributes, extended
// attributes). With Policy.Atomic, a change of a directory's attributes. Hard links hold
// within the volume; the remote gets a copy under each name. A directory, or a file whose
// content is not all local, is not renamed from an excluded path to one that is not, or
// back: EXDEV, and mv copies. A file that moves to an excluded name is deleted at the
// remote, and that is reported (Status.Problems).
//
// With Options.IgnoreFile, names that such files ignore and the remote does not have; names
// that it has are sent whether ignored or not. That is decided at each commit, by the files
// as they are then, so a name goes when a rule ends. A directory that the remote has cannot
// be renamed to an ignored name (EXDEV), one that it does not have can. The remote's entries
// in a renamed directory move with it, as with git mv, whether or not the new place ignores
// them. Rules are read from the tree alone: nothing is like git's info/exclude, or a file of
// the user's.
//
// With [Guard], files that are too large or hold a secret, until they change.
//
// # Limits
//
// inotify watchers learn of files that a pull brought ([Nudge]), not that one is gone.
// Changes that the remote was sent name by name just before a loss of power may come back as
// the changes of another writer.
package cache

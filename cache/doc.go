// Package cache is a working copy: a POSIX tree over any [providers.Provider],
// served as an [fs.Volume].
//
// It knows inodes, content files and what the backend was last seen to hold
// (the base). It knows no service, no kernel protocol and no manifest.
//
//	v, err := cache.Open(ctx, provider, cache.Options{StateDir: "/var/lib/ws/state"})
//	server, err := fs.Serve("/mnt/ws", []fs.Part{{Name: "@acme/ops", Volume: v}}, fs.Options{})
//
// # What it promises
//
// Names belong to the working copy. Each inode has a number of its own that is
// never reused; a rename, of a directory with all below too, changes one entry
// whatever lies behind it. Directories are listed at the backend when somebody
// first looks into them.
//
// Content is fetched when a file is first opened, once however many ask, from
// the one version that the listing named, in ranges, and its length (and
// SHA-256, if the backend tells it) is checked before anybody sees a byte. An
// open with O_TRUNC fetches nothing. One file per inode holds the content; a
// version that replaces it from the backend gets a new inode and a new file,
// so that an open file, a mapping and a passthrough descriptor keep what they
// have. If the version that was listed is gone when a file is first opened,
// its name gets a new inode and the open fails once with fs.ErrStale, which
// makes the kernel look the name up again.
//
// close and fsync of changed content return when the backend has it, written
// on condition of the version that it was made from. If another writer was
// there first they fail with fs.ErrConflict, and the bytes stay in the working
// copy. If the backend cannot be reached they fail after Options.Patience, the
// bytes stay, and are sent when it is back. Signals do not cut this short,
// except one that kills.
//
// Changes of names (create, mkdir, symlink, link, unlink, rmdir, rename) and
// of attributes return at once. They go to the backend in order, without
// delay, by one worker, and have arrived before any later close with new
// bytes, fsync, or fsync of a directory returns. None of them waits for the
// backend, with one exception: a directory that nobody has looked into yet is
// listed before it may be removed or replaced, since only the backend knows
// whether it is empty.
//
// A change that the backend refuses for good is a [Problem], logged and kept
// for [Volume.Status]; when a name is still there that was removed here, it
// comes back.
//
// An answer that got lost is asked for again under the same operation id.
// Where the backend has none, a lost precondition is checked against what is
// there: equal bytes are no conflict.
//
// # The kernel
//
// KeepCache is set when content is in the state of the last open. An O_RDONLY
// open of content that is all here and unchanged offers its file for
// passthrough; opens for writing always come through here. A mapping may still
// change the content file behind our back when the kernel maps the backing
// file: the file's time is compared when the program closes or syncs.
//
// # What stays here
//
// Extended attributes, devices, sockets and pipes; set-user-id and
// set-group-id bits; owners without Options.MapIDs; what the provider's
// Capabilities leave out (symbolic links, empty directories, attributes). Hard
// links hold within the volume; the backend gets a copy under each name.
// ENOTSUP for setting POSIX ACLs, EINVAL for RENAME_WHITEOUT. RENAME_EXCHANGE is
// one step here and three at the backend.
//
// # What is not there yet
//
// This is the first floor of the working copy, good for proving the parts
// above and below it, and not offered to users:
//
//   - The table is in memory. Changes that the backend does not have are lost
//     to their names when the process is killed: the content files stay, each
//     with its path in the attribute user.wsmount.path, and Open refuses a
//     state directory that holds any ([ErrLeftovers]). After a clean Close
//     nothing stays, so nothing is kept across mounts.
//   - Nothing is read again: a directory stays as it was listed. There is no
//     pull, no TTL, no notification of what others change.
//   - Each commit is at once. There are no windows, no events, no exclude, no
//     history; a conflict always aborts.
//   - Files are fetched whole; nothing is evicted, neither content nor
//     inodes; there is no limit of the queue or of the disk.
//   - A rename of a directory at a backend without [providers.Mover] goes key
//     by key, and an exchange goes in three steps. Both can be repeated, but
//     another host sees what is between meanwhile.
//   - What is uploaded is not frozen: a program that writes while another
//     closes may have half of its change sent, until its own close.
//   - Holes are sent as zeros.
//   - Stores into a mapping of a backing file after the last close go unseen.
//   - A file that was unlinked before anybody opened it cannot be opened any
//     more through a descriptor of O_PATH.
package cache

// Package providers is the storage seam: what wsmount asks of a place where
// bytes live, and nothing about any such place.
//
// It knows names ([Locator], [Key]), what a listing says ([Info], [Version]),
// what may go wrong (the error kinds of errors.go), what a place can promise
// ([Capabilities]) and how a place is found by name ([Registry]). It knows no
// service, no SDK, no kernel and no directory of this machine: no path, open
// file or file system of the host crosses its exported API, and a test walks
// that API to keep it so.
//
//	registry := all.Registry()
//	driver, err := registry.Select("cloud-bucket", providers.Capabilities{Writable: true})
//	p, err := driver.Open(ctx, providers.Settings{Config: map[string]string{"root": "/srv/ws"}})
//	info, err := p.Write(ctx, providers.MustLocator("notes/today.md"), providers.String("hello\n"),
//		providers.WriteOptions{If: providers.IfAbsent()})
//
// # Names
//
// A [Locator] names a place in a provider's tree: segments joined by slashes,
// each a name that POSIX allows. It is made by [ParseLocator], which drops
// empty and "." segments and a leading slash, and refuses "..", NUL and names
// over 255 bytes; so a Locator can never address anything outside the root.
//
// Backends have names of their own, and bucket keys are any bytes: "a//b",
// "../x", "". [Key.Locator] gives each key exactly one Locator, and
// [Locator.Key] leads back. A provider whose store is a tree of POSIX names
// (local, memory, git) does not need keys.
//
// # Trees
//
// Every provider looks like a tree. The root always exists. Write makes the
// directories above it that are missing. Delete never removes a directory that
// has entries. Where directories cannot exist without entries
// (Capabilities.EmptyDirs is false), Mkdir fails with ErrUnsupported and the
// caller keeps the directory to itself.
//
// A symbolic link is an entry whose content is its target. Providers never
// follow one, not even in the middle of a Locator.
//
// # Versions and conditions
//
// A file or symbolic link has a [Version], and other content has another;
// with Capabilities.UniqueVersions every change makes one that never was. The
// same state has versions that match ([Version.Matches]) whichever verb
// reported them. Directories have none.
//
// Every change states on what condition it may happen: [IfAbsent],
// [IfVersion], [IfDir], or [Unconditional], which a caller must spell out; the
// zero Condition is refused. How well a condition holds against writers that
// do not ask us is data: Capabilities.Conditions.
//
// A change is all or nothing: until it is complete, and for ever if it fails,
// readers see what was there before.
//
// # Answers that got lost
//
// A mutating call that fails with ErrUnavailable, or because its context
// ended, may have happened. With Capabilities.OperationIDs, repeat a Write,
// Copy, Move or SetAttr with the same operation id: if the entry is what that
// operation left there, the repetition succeeds. Otherwise Stat and compare. A
// repeated Delete that finds nothing fails with ErrNotExist, which then means
// done. A Commit is always repeated with its id. A repeated Mkdir or Push finds
// its work done and succeeds.
//
// # Content
//
// A read that cannot deliver all it promised ends in an error, never in a
// clean io.EOF; [Fetch] checks the length too. A read may be pinned to a
// version, so that ranges fetched apart belong together.
//
// # Abilities
//
// What only some backends can do is an optional interface: [Copier], [Mover],
// [AttrSetter], [Multiparter], [Watcher], [Committer], [Snapshotter],
// [Pusher], [Syncer], [Differ], [Submoduler], [Rebaser], [Brancher]. Ask with [As], never
// with a type assertion: As answers only for what Capabilities announces.
//
// A flat conditional store (a bucket) is a Provider with some of Copier and
// Multiparter. A store with whole-tree revisions (git) is a Provider whose
// reads show its head, whose changes go through Commit as one atomic set, and
// which is a Snapshotter, and a Pusher and Syncer towards its remote. Its Write
// and Delete are sets of one change. The way of a change to others:
//
//	result, err := committer.Commit(ctx, set)               // here, atomically
//	_, err = pusher.Push(ctx, providers.PushOptions{})      // there, or ErrConflict
//	theirs, err := syncer.Fetch(ctx)                        // what they have
//	base, err := syncer.Base(ctx, result.Revision, theirs)  // since when they differ
//	past, err := snapshotter.At(ctx, theirs)                // look at it
//	err = syncer.Adopt(ctx, result.Revision, theirs)        // go on from there
//
// # Wrappers
//
// Behaviour that concerns all providers is a provider around a provider, made
// with [Wrap]: one function sees every call, of abilities as well, on its way
// in and out. Nothing is ever unwrapped, so no ability leads around a wrapper,
// and a wrapper can only announce less than what it wraps. [ReadOnly] is one.
//
// # Concurrency, ownership, time
//
// See [Provider].
package providers

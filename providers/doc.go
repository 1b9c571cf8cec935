// Package providers is the storage seam: the interface that wsmount requires of any place where
// bytes live, and nothing about a particular place.
//
// It knows names ([Locator], [Key]), entries of a listing ([Info], [Version]), the error kinds
// of errors.go, the promises of a place ([Capabilities]) and how a place is found by name
// ([Registry]). It knows no service, no SDK, no kernel and no directory of this machine: no
// path, open file or file system of the host crosses its exported API, and a test walks that
// API to keep it so.
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
// Every provider looks like a tree. The root always exists. Write makes the directories above
// it that are missing. Delete never removes a directory that has entries. Where directories
// cannot exist without entries (Capabilities.EmptyDirs is false), Mkdir fails with
// ErrUnsupported and the caller keeps the directory locally.
//
// A symbolic link is an entry whose content is its target. Providers never
// follow one, not even in the middle of a Locator.
//
// # Versions and conditions
//
// A file or symbolic link has a [Version], and other content has another; with
// Capabilities.UniqueVersions every change makes one that never was before. Reports of one
// state by different verbs have versions that match ([Version.Matches]). Directories have none.
//
// Every change states its condition: [IfAbsent], [IfVersion], [IfDir], or [Unconditional],
// which a caller must spell out; the zero Condition is refused. How strictly a condition holds
// against writers that do not use this provider is data: Capabilities.Conditions.
//
// A change is all or nothing: until it is complete, and for ever if it fails, readers see the
// previous state.
//
// # Answers that got lost
//
// A mutating call that fails with ErrUnavailable, or because its context ended, may have
// happened. With Capabilities.OperationIDs, repeat a Write, Copy, Move or SetAttr with the same
// operation id: if the entry is still the one that the operation made, the repetition succeeds.
// Otherwise Stat and compare. A repeated Delete that finds nothing fails with ErrNotExist,
// which then means done. A Commit is always repeated with its id. A repeated Mkdir or Push
// finds its work done and succeeds.
//
// # Content
//
// A read that cannot deliver all it promised ends in an error, never in a
// clean io.EOF; [Fetch] checks the length too. A read may be pinned to a
// version, so that ranges fetched apart belong together.
//
// # Abilities
//
// Abilities of only some backends are optional interfaces: [Copier], [Mover], [AttrSetter],
// [Multiparter], [Watcher], [Committer], [Snapshotter], [Pusher], [Syncer], [Differ],
// [Submoduler], [Rebaser], [Brancher]. Ask with [As], never with a type assertion: As gives
// only those that Capabilities announces.
//
// A flat conditional store (a bucket) is a Provider with some of Copier and Multiparter. A
// store with whole-tree revisions (git) is a Provider whose reads show its head, whose changes
// go through Commit as one atomic set, and which is a Snapshotter, and a Pusher and Syncer
// towards its remote. Its Write and Delete are sets of one change. A change reaches others like
// this:
//
//	result, err := committer.Commit(ctx, set)               // locally, atomically
//	_, err = pusher.Push(ctx, providers.PushOptions{})      // at the remote, or ErrConflict
//	theirs, err := syncer.Fetch(ctx)                        // the revision of others
//	base, err := syncer.Base(ctx, result.Revision, theirs)  // the last common revision
//	past, err := snapshotter.At(ctx, theirs)                // read theirs
//	err = syncer.Adopt(ctx, result.Revision, theirs)        // continue from theirs
//
// # Wrappers
//
// Behaviour that concerns all providers is a provider around a provider, made with [Wrap]: one
// function sees every call, of abilities as well, on its way in and out. Nothing is ever
// unwrapped, so no ability bypasses a wrapper, and a wrapper can only announce less than the
// provider inside. [ReadOnly] is one.
//
// # Concurrency, ownership, time
//
// See [Provider].
package providers

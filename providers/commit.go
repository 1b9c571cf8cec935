package providers

import (
	"context"
	"time"
)

// Revision names a state of the whole tree, opaque: a commit of git. "" is no
// revision.
type Revision string

// Committer changes many entries in one step. Reads of this provider show a commit at once;
// sending it to a remote is the Pusher's business, if there is one.
type Committer interface {
	// Head is the revision that reads show; "" before the first of a store
	// that begins with none.
	Head(ctx context.Context) (Revision, error)
	// Commit makes all changes, or none and then fails with the first error that a change has,
	// in their order. ErrConflict when set.Base is given and is not the head. A set that
	// changes nothing is no error and makes no revision. See ChangeSet for the rules of a set.
	Commit(ctx context.Context, set ChangeSet) (CommitResult, error)
}

// ChangeSet is the changes of one commit. It states how the tree after it differs from the tree
// before it; the order of its changes decides only which error is returned.
//
// A deletion names an entry of the tree before, any other change an entry of
// the tree after. So one Locator may be in a set twice, once deleted and once
// made; two deletions, or two others, of one Locator are ErrInvalid.
//
// A change with From takes the entry that was there before, a directory with all below it, less
// the entries below From that the set deletes. From stays where it is unless the set deletes it
// too: with the deletion it is a rename, without a copy, and two of them exchange their
// entries. A directory is deleted when nothing is left in it: the set deletes all entries below
// it as well, or the directory is itself the From of a change (else ErrNotEmpty). Without
// Capabilities.EmptyDirs the directories below it go by themselves. The errors of From are
// ErrNotExist, ErrConflict for FromVersion, and ErrNotDir or ErrIsDir when Dir is otherwise.
// Entries below a directory that is taken keep their versions.
//
// Conditions are checked in the tree before. A deletion checks its Locator. Any other change
// checks the entry that it replaces: below the Locator of a change with From, that is the entry
// at the same place below this From (of several such changes, the nearest above counts);
// elsewhere, the entry at the Locator itself. There is none if the set deletes it, or a
// directory on the way to it, from that From or the root on. Examples:
//
//	{e From d, Dir, IfAbsent} {d Delete, Dir, IfDir}                  rename a directory
//	... {e/x Body, IfVersion(of d/x)}                                 and write in it
//	... {d/x Delete, IfVersion(of d/x)}                               and delete in it
//	... {d/y Body, IfAbsent}                                          and begin a new d
//	{a From b, IfVersion(of a)} {b From a, IfVersion(of b)}           exchange files
//	{d From e, Dir, IfDir} {e From d, Dir, IfDir}                     exchange directories
//	{b From a, IfVersion(of b)} {a Delete, IfVersion(of a)}           rename over a file
//	{a Delete, IfVersion(of a)} {a/x Body, IfAbsent}                  a file becomes a directory
//	{a From a, IfVersion(of a), Attr}                                 change attributes alone
//
// A directory is not replaced, with one exception: where it stands itself as the From of a
// change, a change with From may ask for IfDir and take its place. Any other change at a
// directory that the set does not delete fails as a Write does. Missing parents are made; a
// parent that is a file in the tree after is ErrNotDir.
type ChangeSet struct {
	Base Revision // "": any head
	// Merge is a second parent of the new revision, so that a Push is no conflict with it; "":
	// none. ErrNotExist when it is not known locally. Unless the head's history has it, such a
	// set makes a revision also without changes.
	Merge     Revision
	Changes   []Change
	Message   string
	Author    Identity
	CoAuthors []Identity
	Trailers  []Trailer
	// Op is the operation id: the set with the same id is committed once, and a repetition has
	// the result of the first, even if later commits undid it. One that was refused for its
	// Base is refused from then on, with any Base: so a call with a Base that no head has tells
	// the result of a set whose answer got lost, and makes sure that it will not be committed
	// later. Every Committer does that, with Capabilities.OperationIDs or without.
	Op string
}

// Change is one change of a set.
type Change struct {
	Locator Locator
	Delete  bool // the other fields but Dir and If mean nothing
	Dir     bool // a directory; made as by Mkdir and deleted as by IfDir, it needs no If; taken, it needs one
	// From, unless it is the root, is the previous place of the content; Body is empty then.
	// The entry keeps its attributes and metadata where Attr is not Valid and Metadata is nil.
	From        Locator
	FromVersion Version // of the entry at From; zero: any
	Body        Body
	Kind        Kind // as in WriteOptions; with From, that entry's own
	If          Condition
	Attr        Attr
	Metadata    map[string]string
}

// Method is the verb that would make the change by itself, for errors to name.
func (c Change) Method() Method {
	switch {
	case c.Delete:
		return MethodDelete
	case !c.From.IsRoot():
		return MethodMove
	case c.Dir:
		return MethodMkdir
	}
	return MethodWrite
}

// Identity is the author or committer of a commit, resolved by the caller from the workspace's
// identity block (AIP-23).
type Identity struct {
	Name, Email string
	When        time.Time // zero: now
}

// Trailer is a line at the end of a commit message.
type Trailer struct{ Name, Value string }

// CommitResult is the result of a Commit.
type CommitResult struct {
	Revision  Revision // the new one, or the head if none was made
	Committed bool     // false: there was nothing to commit
	// Entries are the entries after the changes, each at the index of its change, also when
	// nothing was committed because the tree was in that state already. The zero Info means no
	// entry: after a deletion, or for a directory that was not made because
	// Capabilities.EmptyDirs is false (the entry that it replaced is gone all the same).
	Entries []Info
}

package providers

import (
	"context"
	"time"
)

// Revision names a state of the whole tree, opaque: a commit of git. "" is no
// revision.
type Revision string

// Committer changes many entries in one step. What it commits is visible to
// reads of this provider at once; whether it leaves the machine is the
// Pusher's business, if there is one.
type Committer interface {
	// Head is the revision that reads show; "" before the first of a store
	// that begins with none.
	Head(ctx context.Context) (Revision, error)
	// Commit makes all changes, or none and then fails with the first error
	// that a change has, in their order. ErrConflict when set.Base is given
	// and is not the head. A set that changes nothing is no error and makes no
	// revision. The rules of a set are ChangeSet's.
	Commit(ctx context.Context, set ChangeSet) (CommitResult, error)
}

// ChangeSet is what is committed together. It says how the tree after it
// differs from the tree before it; the order of its changes decides nothing
// but which error is told.
//
// A deletion names an entry of the tree before, any other change an entry of
// the tree after. So one Locator may be in a set twice, once deleted and once
// made; two deletions, or two others, of one Locator are ErrInvalid.
//
// A change with From takes the entry that was there before, a directory with
// all below it, less the entries below From that the set deletes. From stays
// where it is unless the set deletes it too: with the deletion it is a rename,
// without a copy, and two of them exchange what they name. A directory is
// deleted when nothing is left in it: what was below it is deleted by the set
// as well, or the directory is itself the From of a change (else ErrNotEmpty).
// Without Capabilities.EmptyDirs the directories below it go by themselves.
// What goes wrong with From is ErrNotExist, ErrConflict for FromVersion, and
// ErrNotDir or ErrIsDir when Dir says otherwise. What is below a directory that
// is taken keeps its versions.
//
// Conditions are asked of the tree before. A deletion asks at its Locator. Any
// other change asks of the entry whose place it takes: below the Locator of a
// change with From, that is the entry at the same place below this From (of
// several such changes, the nearest above counts); elsewhere, the entry at the
// Locator itself. There is none if the set deletes it, or a directory on the
// way to it, from that From or the root on. So these sets do what they say:
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
// A directory is not replaced, with one exception: where it stands itself as
// the From of a change, a change with From may ask for IfDir and take its
// place. Anything else where a directory is that the set does not delete fails
// as a Write does. Missing parents are made; a parent that is a file in the
// tree after is ErrNotDir.
type ChangeSet struct {
	Base Revision // "": whatever the head is
	// Merge is a second parent of what is made, so that a Push is no conflict
	// with it; "": none. ErrNotExist when it is not known here. Unless the
	// head's history has it, such a set makes a revision also without changes.
	Merge     Revision
	Changes   []Change
	Message   string
	Author    Identity
	CoAuthors []Identity
	Trailers  []Trailer
	// Op is the operation id: the set with the same id is committed once, and
	// a repetition has the result of the first, whatever became of it since.
	// One that was refused for its Base is refused from then on, with any Base:
	// who asks with a Base that no head has learns what became of a set whose
	// answer got lost, and that it will not happen later.
	// Every Committer knows that, with Capabilities.OperationIDs or without.
	Op string
}

// Change is one change of a set.
type Change struct {
	Locator Locator
	Delete  bool // the other fields but Dir and If mean nothing
	Dir     bool // a directory; made as by Mkdir and deleted as by IfDir, it needs no If; taken, it needs one
	// From, unless it is the root, is where the content was before; Body is
	// empty then. What is taken keeps its attributes and metadata where Attr
	// is not Valid and Metadata is nil.
	From        Locator
	FromVersion Version // of what is at From; zero: any
	Body        Body
	Kind        Kind // as in WriteOptions; of what is taken, its own
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

// Identity is who a commit names, resolved by the caller from the workspace's
// identity block (AIP-23).
type Identity struct {
	Name, Email string
	When        time.Time // zero: now
}

// Trailer is a line at the end of a commit message.
type Trailer struct{ Name, Value string }

// CommitResult says what a Commit left.
type CommitResult struct {
	Revision  Revision // what the set made, or the head if it made nothing
	Committed bool     // false: there was nothing to commit
	// Entries are what the changes left, each at the place of its change, also
	// when nothing was committed because all was so already. The zero Info is
	// for what is not there: after a deletion, or of a directory that came to
	// nothing because Capabilities.EmptyDirs is false (what it took the place
	// of is gone all the same).
	Entries []Info
}

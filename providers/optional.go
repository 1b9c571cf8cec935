package providers

import (
	"context"
	"iter"
	"time"
)

// Copier copies inside the backend, without moving bytes through here.
type Copier interface {
	// Copy makes to an entry with the content of the file or symbolic link
	// from, and returns it. ErrNotExist, or ErrConflict when opts.Version is
	// given and is not what from has; ErrExist, ErrConflict and ErrIsDir for
	// to as in Write.
	Copy(ctx context.Context, from, to Locator, opts CopyOptions) (Info, error)
}

// CopyOptions: If, on the target, is required.
type CopyOptions struct {
	If       Condition
	Version  Version // of the source; zero: any
	Attr     Attr    // replace the source's where Valid
	Metadata map[string]string
	Op       string
	Looked   bool // as in WriteOptions
}

// Mover renames in one step: at no time do both names, or neither, exist.
type Mover interface {
	// Move gives the entry from, a directory with all below it too, the name
	// to, whose parent must exist. Below a directory, versions stay. opts.Source is IfVersion, IfDir or
	// Unconditional; the last moves files and links only. opts.Target is
	// IfAbsent, or for files IfVersion or Unconditional. Errors as Delete has
	// them for from and Write for to; ErrExist for a directory over anything,
	// ErrInvalid below itself. With Capabilities.OperationIDs, a Move whose Op
	// left what is at to succeeds again, whatever is at from by now.
	Move(ctx context.Context, from, to Locator, opts MoveOptions) (Info, error)
}

// MoveOptions: both conditions are required.
type MoveOptions struct {
	Source Condition
	Target Condition
	Op     string // operation id, as in WriteOptions
}

// AttrSetter changes attributes and leaves the content alone.
type AttrSetter interface {
	// SetAttr stores the attributes that are Valid, and replaces the metadata
	// unless they are nil. With UniqueVersions the version changes, in its ETag
	// or not. opts.If is
	// IfVersion, IfDir, or Unconditional for whatever is there. ErrNotExist,
	// ErrConflict, ErrNotDir; ErrUnsupported for attributes that are not
	// in Capabilities.
	SetAttr(ctx context.Context, l Locator, opts SetAttrOptions) (Info, error)
	// Fits says, without asking the service, whether an entry can have such
	// attributes and metadata, whatever becomes of the numbers in them:
	// ErrTooLarge. So a program hears of it before anything is stored.
	Fits(attr Attr, metadata map[string]string) error
}

// SetAttrOptions: If is required.
type SetAttrOptions struct {
	If       Condition
	Attr     Attr
	Metadata map[string]string
	Op       string // operation id, as in WriteOptions
}

// Multiparter takes large content in parts, several at a time.
type Multiparter interface {
	// StartParts begins an upload to l. Nothing is visible before Complete.
	// opts are Write's; the condition is checked by Complete at the latest.
	StartParts(ctx context.Context, l Locator, opts WriteOptions) (Upload, error)
	// AbortParts ends and frees uploads that began before then and were never
	// completed, for instance because the program was killed, and says how
	// many.
	AbortParts(ctx context.Context, before time.Time) (int, error)
}

// Upload is content that arrives in parts. Parts are numbered from 1, may come
// in any order and at the same time, and replace one of the same number.
// Sizes are bounded by Capabilities.Parts.
type Upload interface {
	// Part sends part n.
	Part(ctx context.Context, n int, body Body) error
	// CopyPart takes part n from a range of an entry that the backend has
	// already; the version is required.
	CopyPart(ctx context.Context, n int, from Locator, opts ReadOptions) error
	// Complete makes the parts the content, in one step; errors as in Write.
	Complete(ctx context.Context) (Info, error)
	// Abort frees what was sent. After Complete it does nothing.
	Abort(ctx context.Context) error
}

// Watcher tells of changes, also of those that others made.
type Watcher interface {
	// Watch gives the changes at and below l until ctx ends or the caller
	// stops. It promises no order and may repeat itself. An error ends it.
	Watch(ctx context.Context, l Locator) iter.Seq2[Event, error]
}

// Event is a change that a Watcher saw. Look with Stat for what is there now.
type Event struct {
	Locator Locator
	// Lost says that changes below Locator may be missing: list it again.
	Lost bool
}

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

// Snapshotter shows the past.
type Snapshotter interface {
	// At is the tree at a revision, for reading only: changes of it fail with
	// ErrReadOnly. What is the same in two revisions has versions that match.
	// ErrNotExist when the revision is not known here. The caller closes it.
	At(ctx context.Context, r Revision) (Provider, error)
	// Find is the revision of a name, or the only one whose name begins so, of
	// MinShort characters or more. ErrNotExist when none that is known here does;
	// ErrInvalid when several do, or when it is shorter and no whole name.
	Find(ctx context.Context, name string) (Found, error)
}

// MinShort is how many characters the beginning of a revision's name needs.
const MinShort = 4

// Found is a revision, and those that it was made of: what it changed is how it
// differs from the first.
type Found struct {
	Revision Revision
	Parents  []Revision
	Time     time.Time // when it was made; zero: nobody says
}

// Pusher sends what was committed to where others see it.
type Pusher interface {
	// Push sends the head, with the history that it has, to opts.Branch of the
	// remote. A branch that is not there is made. ErrConflict, and nothing
	// happened, when that would undo what others did: the remote's branch is
	// no part of the head's history, or it is the tracked branch and is gone
	// since we last heard of it. Fetch, then decide. Nothing to send is no
	// error, so that a Push whose answer got lost can be repeated.
	// ErrNotExist before the first revision; ErrUnsupported for a
	// PullRequest where there is no such thing.
	Push(ctx context.Context, opts PushOptions) (PushResult, error)
}

// PushOptions: the zero value pushes to the branch that the provider is on.
type PushOptions struct {
	Branch string   // "": the tracked one, or that of Brancher.Start
	Lease  Revision // overwrite, but only this revision (else ErrConflict); "": never overwrite
	// PullRequest asks to find or open one from Branch to the tracked branch.
	PullRequest *PullRequest
	// Sent is told of bytes that go out, how many, and of those that turn out to be
	// there already, so that who waits knows that a Push goes on which takes long;
	// nil: nobody is. Any goroutine may call it.
	Sent func(n int)
}

// PullRequest is what a new pull request says.
type PullRequest struct{ Title, Text string }

// PushResult says what a Push did.
type PushResult struct {
	Revision Revision // what the remote's branch is at now
	Pushed   bool     // false: it was there already
	URL      string   // of the pull request, if one was asked for
}

// Syncer learns what others pushed.
type Syncer interface {
	// Fetch asks the remote and brings its tracked branch here, where At knows
	// it then. Reads and Head show what they showed before. ErrNotExist when
	// the remote has no such branch, because it is new or was deleted. An
	// unchanged remote costs one round trip.
	Fetch(ctx context.Context) (Revision, error)
	// Adopt makes reads show to instead of from, in one step. When the head is
	// at to already, that is no error. ErrConflict when it is not at from any
	// more, ErrNotExist for a to that is not known here. What only from had
	// stays known, and is not pushed any more.
	Adopt(ctx context.Context, from, to Revision) error
	// Base is the last revision that is in the histories of both a and b, or
	// "" when there is none: a when b only goes on from a. ErrNotExist for
	// a revision that is not known here.
	Base(ctx context.Context, a, b Revision) (Revision, error)
}

// Differ tells two revisions apart, in time that depends on what they have
// differently and not on the size of the tree.
type Differ interface {
	// Differences are the entries that two revisions have differently, by
	// Locator, so that a directory comes before what is in it. ErrNotExist for
	// a revision that is not known here.
	Differences(ctx context.Context, from, to Revision) ([]Difference, error)
}

// Difference is what two revisions have at one place, each as its List says it;
// nil: nothing. A directory that both have is none; all that is below one that
// only one has is.
type Difference struct {
	Locator Locator
	Was, Is *Info
}

// Submoduler tells which directories of the tree are other repositories, as the
// submodules of git are. They have no entries here, nothing can be made in them, and
// they are neither moved nor removed.
type Submoduler interface {
	// Submodule is the first such directory at l or below it, in the tree that reads
	// show; ok is false when there is none. It asks no remote.
	Submodule(ctx context.Context, l Locator) (at Locator, ok bool, err error)
}

// Rebaser makes what was committed here anew on top of what others pushed.
type Rebaser interface {
	// Rebase makes each revision of from that neither base nor onto has anew, in
	// their order, the first on top of onto, with its message, authors and times.
	// It returns the last; one that changes nothing any more is left out, so that
	// can be onto. Reads and Head show what they showed before, until Adopt.
	// combine is asked for a file that both have changed. ErrConflict when it
	// has no answer, or both have changed what is no file; ErrUnsupported when
	// one of the revisions has not exactly one before it; ErrNotExist for one
	// that is not known here. Then nothing has happened.
	Rebase(ctx context.Context, base, from, onto Revision, combine Combine) (Revision, error)
}

// Combine is the content that a file gets whose content base became a in one
// revision and b in another; ok is false when only a person can say. It must
// not keep what it is given. union says that the file is declared to keep the lines of
// both, a's first.
type Combine func(base, a, b []byte, union bool) (content []byte, ok bool)

// Meter tells what a provider asked of its service. It is no ability, since it
// changes nothing and promises nothing: whoever opened the provider asks it by
// type assertion, before anything is put around it.
type Meter interface {
	// Requests are what was sent since the provider was opened, by the
	// service's own name of the request ("PutObject").
	Requests() map[string]Count
}

// Cloner is a provider that clones what its service has. As Meter it is no ability,
// and is asked for before anything is put around it.
type Cloner interface {
	// Clone tells how much is here. It is cheap, and never waits for the service.
	Clone() CloneState
}

// Replicated is a provider whose tree something outside replicates. As Meter it is no
// ability, and is asked for before anything is put around it.
type Replicated interface {
	// ConflictCopies are what the replication has left of files that were changed in two
	// places (see IsConflictCopy), in their order.
	ConflictCopies(ctx context.Context) ([]Locator, error)
}

// Glancer is a provider that reads content to tell a version. As Meter it is no ability, and
// is asked for before anything is put around it.
type Glancer interface {
	// Glance is Stat, and GlanceList is List, without what only the content tells: Version
	// and Digest are zero.
	Glance(ctx context.Context, l Locator) (Info, error)
	GlanceList(ctx context.Context, l Locator, opts ListOptions) (Page, error)
}

// Glancing is p for who needs no versions: where p has to read for them, they are not told.
func Glancing(p Provider) Provider {
	if g, ok := p.(Glancer); ok {
		return glancing{p, g}
	}
	return p
}

type glancing struct {
	Provider
	g Glancer
}

func (g glancing) Stat(ctx context.Context, l Locator) (Info, error) { return g.g.Glance(ctx, l) }

func (g glancing) List(ctx context.Context, l Locator, opts ListOptions) (Page, error) {
	return g.g.GlanceList(ctx, l, opts)
}

// The kinds of a clone.
const (
	CloneFull     = "full"     // all content is here
	CloneBlobless = "blobless" // names are; content comes when it is needed, or before
)

// CloneState is how much a clone has.
type CloneState struct {
	Kind     string
	Missing  int       // contents of the head that are not here yet; -1: they were not counted yet
	Fetching int       // contents that are on their way
	Paused   string    // why nothing comes before it is needed; "": it does
	Error    string    // of the last request, if that failed
	Failing  time.Time // since when requests fail; zero: the last did not
}

// Count is how often something was asked, and the bytes that this moved.
type Count struct {
	Requests       int64
	Sent, Received int64 // bytes of bodies
}

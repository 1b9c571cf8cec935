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
}

// Mover renames in one step: at no time do both names, or neither, exist.
type Mover interface {
	// Move gives the entry from, a directory with all below it too, the name
	// to, whose parent must exist. opts.Source is IfVersion, IfDir or
	// Unconditional; the last moves files and links only. opts.Target is
	// IfAbsent, or for files IfVersion or Unconditional. Errors as Delete has
	// them for from and Write for to; ErrExist for a directory over anything,
	// ErrInvalid below itself.
	Move(ctx context.Context, from, to Locator, opts MoveOptions) (Info, error)
}

// MoveOptions: both conditions are required.
type MoveOptions struct {
	Source Condition
	Target Condition
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
}

// SetAttrOptions: If is required.
type SetAttrOptions struct {
	If       Condition
	Attr     Attr
	Metadata map[string]string
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
	// Head is the revision that reads show.
	Head(ctx context.Context) (Revision, error)
	// Commit makes all changes in their order, or none and then fails with the
	// first error that a change has. Conditions are asked of the state before
	// the set; a set has no two changes of one Locator (ErrInvalid). ErrConflict when
	// set.Base is given and is not the head. A set that changes nothing is no
	// error and makes no revision.
	Commit(ctx context.Context, set ChangeSet) (CommitResult, error)
}

// ChangeSet is what is committed together.
type ChangeSet struct {
	Base      Revision // "": whatever the head is
	Changes   []Change
	Message   string
	Author    Identity
	CoAuthors []Identity
	Trailers  []Trailer
	Op        string // operation id; the set with the same id is committed once
}

// Change is one change of a set: content, or with Delete none.
type Change struct {
	Locator  Locator
	Delete   bool
	Dir      bool // make (or delete, empty by then) a directory
	Body     Body
	Kind     Kind // as in WriteOptions
	If       Condition
	Attr     Attr
	Metadata map[string]string
	// Was is where the content was before, if it was renamed; for history.
	Was Locator
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
}

// Snapshotter shows the past.
type Snapshotter interface {
	// At is the tree at a revision, for reading only. ErrNotExist when the
	// revision is not known here. The caller closes it.
	At(ctx context.Context, r Revision) (Provider, error)
}

// Pusher sends what was committed to where others see it.
type Pusher interface {
	// Push sends the head to opts.Branch of the remote. ErrConflict when the
	// remote has moved on from what we know; Fetch, then decide. Nothing to
	// send is no error.
	Push(ctx context.Context, opts PushOptions) (PushResult, error)
}

// PushOptions: the zero value pushes to the tracked branch.
type PushOptions struct {
	Branch string   // "": the tracked one
	Lease  Revision // overwrite, but only this revision; "": never overwrite
	// PullRequest asks to find or open one from Branch to the tracked branch.
	PullRequest *PullRequest
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
	// Fetch asks the remote and brings its tracked branch here. Reads show
	// what they showed before. An unchanged remote costs one round trip.
	Fetch(ctx context.Context) (Revision, error)
	// Adopt makes reads show to instead of from, in one step. ErrConflict when
	// from is not the head any more.
	Adopt(ctx context.Context, from, to Revision) error
}

package reconcile

import "github.com/wsmount/wsmount/providers"

// None is the kind of a side that has nothing under the name.
const None = providers.KindUnknown

// An Entry is what the remote has under a name, or had. The zero Entry is nothing.
type Entry struct {
	Kind    providers.Kind
	Version providers.Version
	Digest  string // as in providers.Info; "" when not known
}

// Same reports whether two entries are in the same state. Of directories no one knows:
// their attributes have no version.
func (e Entry) Same(o Entry) bool {
	return e.Kind == o.Kind && e.Kind != providers.KindDir && (e.Kind == None || e.Version.Matches(o.Version))
}

// SameContent reports whether only attributes of two entries can differ.
func (e Entry) SameContent(o Entry) bool {
	if e.Kind == None || e.Kind != o.Kind || e.Version.Size != o.Version.Size {
		return false
	}
	return e.Version.ETag != "" && e.Version.ETag == o.Version.ETag || e.Digest != "" && e.Digest == o.Digest
}

// Base is what the remote had under the name when that was last known.
type Base struct {
	Entry
	Held          *Entry // what the remote had when a conflict of the name was held
	AttrsModified bool   // of what had the name: locally, and not sent
	Moved         Moved  // of what had the name
	Below         Below  // a directory, which the remote has no more
	Decided       bool   // all names in the directory are
}

// Unchanged reports whether the remote has what it was last known to have.
func (b Base) Unchanged(remote Entry) bool {
	if b.Held != nil && b.Kind != None && remote.Kind != None {
		return b.Held.Kind == remote.Kind && b.Held.Version.Matches(remote.Version)
	}
	return b.Same(remote)
}

// Moved says whether what had the name has another locally, which the remote does not know.
type Moved uint8

// The values of Moved.
const (
	NotMoved Moved = iota
	Renamed
	RenamedAndModified
)

// Below is what the remote was known to have in a directory.
type Below struct {
	Files bool // some, or no one has looked
	Busy  bool // a change of one of the names is under way
}

// Local is what the name stands for locally.
type Local struct {
	Kind     providers.Kind // a file is whatever is no directory
	Another  bool           // inode than the one that the remote had under the name
	Modified bool           // content, since the remote had it
	Scope    Scope
	InFlight bool // a change of the name was begun, and what came of it is not known
	Sent     Sent // is what the remote has now of an earlier such change

	// Of a directory.
	Full      bool // it has entries
	Elsewhere bool // the remote has it under another name

	// Of a file.
	Writing bool // a program has it open for writing
	Unseen  bool // no program has seen anything of its content
	Partial bool // some of its content was fetched, and some not
	Origin  bool // the content is a version of another name of the remote
	Content Content
	Text    Text
}

// clean reports whether the name stands for what the remote had.
func (l Local) clean(base Base) bool { return base.Kind != None && !l.Another && !l.Modified }

// Scope says whether a name goes to the remote.
type Scope uint8

// The values of Scope.
const (
	Shared  Scope = iota
	Ignored       // an ignore file keeps it local, as long as the remote does not have it
	Private       // it stays on this machine
)

// Sent says whether the remote has what an earlier change of the name wrote, one that had
// been given up.
type Sent uint8

// The values of Sent.
const (
	NotSent   Sent = iota
	MaybeSent      // no one has asked
	LateWrite
)

// Content compares the local content with that of the remote.
type Content uint8

// The values of Content.
const (
	Uncompared Content = iota
	Equal
	Differs
	Gone // some of the local content was never fetched, and the remote has lost it
)

// Text says whether two texts that began as one can be made one again.
type Text uint8

// The values of Text.
const (
	Untried Text = iota
	Apart
	Merged
)

// Policy is what the answer depends on beside the three sides.
type Policy struct {
	Conflict    Conflict
	Kept        bool // the version of the remote is in the history
	Excluded    bool // the name is not shown, and stays on its side
	EmptyDirs   bool // the remote has directories with nothing in them
	ImpliedDirs bool // it has others as long as something is in them
	DirAttrs    bool // it tells attributes of directories
	Within      bool // the directory of the name is gone too
}

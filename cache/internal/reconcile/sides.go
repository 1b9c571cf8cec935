package reconcile

import "github.com/wsmount/wsmount/providers"

// None is the kind of a side that has no entry under the name.
const None = providers.KindUnknown

// An Entry is the remote's entry under a name, present or former. The zero Entry is none.
type Entry struct {
	Kind    providers.Kind
	Version providers.Version
	Digest  string // as in providers.Info; "" when not known
}

// Same reports whether two entries are in the same state. It is not known of directories: their
// attributes have no version.
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

// Base is the last known remote entry under the name.
type Base struct {
	Entry
	Held          *Entry // the remote's entry when a conflict of the name was held
	AttrsModified bool   // of the inode that had the name: locally, and not sent
	Moved         Moved  // of the inode that had the name
	Below         Below  // of a directory that the remote lost
	Decided       bool   // all names in the directory are decided
}

// Unchanged reports whether the remote's entry is the last known one.
func (b Base) Unchanged(remote Entry) bool {
	if b.Held != nil && b.Kind != None && remote.Kind != None {
		return b.Held.Kind == remote.Kind && b.Held.Version.Matches(remote.Version)
	}
	return b.Same(remote)
}

// Moved says whether the inode that had the name has another local name, unknown to the remote.
type Moved uint8

// The values of Moved.
const (
	NotMoved Moved = iota
	Renamed
	RenamedAndModified
)

// Below tells of the remote's known names in a directory.
type Below struct {
	Files bool // some, or the directory was never listed
	Busy  bool // a change of one of the names is under way
}

// Local is the local entry of the name.
type Local struct {
	Kind     providers.Kind // every kind but a directory counts as a file
	Another  bool           // inode than the one that the remote had under the name
	Modified bool           // content, since the remote had it
	Scope    Scope
	InFlight bool // a change of the name was begun, and its outcome is not known
	Sent     Sent // whether the remote's entry is a late result of an earlier such change

	// Of a directory.
	Full      bool // it has entries
	Elsewhere bool // the remote has it under another name

	// Of a file.
	Writing bool // a program has it open for writing
	Unseen  bool // no program has seen any of its content
	Partial bool // some of its content was fetched, and some not
	Origin  bool // the content is a version of another name of the remote
	Content Content
	Text    Text
}

// clean reports whether the name leads to the state that the remote had.
func (l Local) clean(base Base) bool { return base.Kind != None && !l.Another && !l.Modified }

// Scope says whether a name goes to the remote.
type Scope uint8

// The values of Scope.
const (
	Shared  Scope = iota
	Ignored       // an ignore file keeps it local, as long as the remote does not have it
	Private       // it stays on this machine
)

// Sent says whether the remote has the result of an earlier change of the name, one that had been
// given up.
type Sent uint8

// The values of Sent.
const (
	NotSent   Sent = iota
	MaybeSent      // not asked for yet
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

// Text says whether two versions of one text can be merged.
type Text uint8

// The values of Text.
const (
	Untried Text = iota
	Apart
	Merged
)

// InHistory says whether the version of the remote is in the history.
type InHistory uint8

// The values of InHistory.
const (
	NotKept InHistory = iota // so far
	Kept
	TooLarge // for the history: it cannot be kept
)

// Policy holds the conditions of the answer beside the three sides.
type Policy struct {
	Conflict    Conflict
	Kept        InHistory
	Excluded    bool // the name is not shown, and stays on its side
	EmptyDirs   bool // the remote has directories without entries
	ImpliedDirs bool // it has others as long as they have entries
	DirAttrs    bool // it tells attributes of directories
	Within      bool // the directory of the name is gone too
}

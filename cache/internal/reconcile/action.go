package reconcile

// An Action is the decision about a name, with the note for a person about it; "": none.
type Action struct {
	Do   Do
	Note string
}

// Do is the kind of an action.
type Do uint8

// These lead to another decision about the same name: they find out a fact, or do one step.
const (
	Compare    Do = iota + 1 // find out Local.Content
	MergeText                // find out Local.Text
	AskSent                  // find out Local.Sent
	KeepRemote               // put the version of the remote into the history: Policy.Kept
	Descend                  // decide about the names in the remote's former directory first
	Vacate                   // note that the remote lost the directory and its entries
	Track                    // the name is no more one that an ignore file keeps local
)

// These end it.
const (
	Nothing Do = iota + 100
	Wait       // nothing: the outcome of a change that is under way decides

	// The remote has no entry there.
	Clear   // the remote's directory is empty, and may still exist
	Release // the directory is local alone from now on, if it is that
	Keep    // the local side stays, and is sent anew
	Delete  // the local name goes
	Forget  // the known remote entry goes; the local side, if any, is another inode

	// Its entry stays on its side.
	Detach // the local side stays on this machine

	// Its entry has changed.
	TakeAttrs // attributes of a directory
	Refresh   // attributes of a file, or the version alone
	Confirm   // it is the content sent: the local side differs from that
	Adopt     // its content equals the local side's
	Arrive    // the free name gets a new inode for it; directories above come back
	Renew     // the inode becomes the new version
	Replace   // the name gets another inode for it
	Follow    // so do the names that the local rename gave
	Join      // the two directories are one
	Supplant  // the local name goes, and then as Arrive
	Aside     // the local side gets the name of a conflict copy, and then as Arrive

	// Both sides have changed.
	Unite     // the name gets the text that both became
	SplitUp   // the local side gets the name of a conflict copy, the remote's the name
	Salvage   // as SplitUp, with the local content that is left
	Overwrite // the local side is sent in place of the remote's
	Hold      // both stay, until a person resolves it
)

var names = map[Do]string{
	Compare: "Compare", MergeText: "MergeText", AskSent: "AskSent", KeepRemote: "KeepRemote", Descend: "Descend",
	Vacate: "Vacate", Track: "Track", Nothing: "Nothing", Wait: "Wait", Clear: "Clear", Release: "Release", Keep: "Keep",
	Delete: "Delete", Forget: "Forget", Detach: "Detach", TakeAttrs: "TakeAttrs", Refresh: "Refresh", Confirm: "Confirm",
	Adopt: "Adopt", Arrive: "Arrive", Renew: "Renew", Replace: "Replace", Follow: "Follow", Join: "Join",
	Supplant: "Supplant", Aside: "Aside", Unite: "Unite", SplitUp: "SplitUp", Salvage: "Salvage",
	Overwrite: "Overwrite", Hold: "Hold",
}

// String is the name of the constant.
func (d Do) String() string { return names[d] }

// Ends reports whether nothing more is to be decided about the name.
func (d Do) Ends() bool { return d >= Nothing }

// The notes for a person.
const (
	NoteKeptDir     = "directory deleted on the remote but modified locally: kept the local directory"
	NoteKept        = "deleted on the remote but modified locally: kept the local file"
	NoteKeptRenamed = "deleted on the remote but renamed locally: kept the local file"
	NoteNotFetched  = "deleted on the remote before its content was fetched"
	NoteRestored    = "deleted locally but modified on the remote: restored the remote file"
	NoteKeptBoth    = "modified on the remote, renamed and modified locally: kept both"
	NoteConflict    = "modified locally and on the remote"
	NoteBaseGone    = NoteConflict + ", which no longer has all of the version that the local one is based on"
	NoteTooLarge    = NoteConflict + ", and the remote version is larger than the history may be: it is not overwritten"
	NoteOverwritten = NoteConflict + ": the local version replaced the remote one, which is in the history"
)

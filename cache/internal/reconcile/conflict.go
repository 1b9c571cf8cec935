package reconcile

// Conflict is the policy for a name that was changed locally and at the remote.
type Conflict uint8

// The conflict policies.
const (
	// Split keeps both: the remote's version has the name, ours gets another, made of a hash of
	// its content.
	Split Conflict = iota
	// Abort keeps ours local and theirs at the remote; close and fsync fail.
	Abort
	// LastWriterWins sends ours; the version that it overwrites is kept in the history.
	// One that is too large for the history is not overwritten: both stay until resolved.
	LastWriterWins
	// Manual keeps both and base under .wsmount/conflicts until resolved.
	Manual
	// Combine merges a text that was changed in other lines on each side. It is Manual for
	// everything else.
	Combine
	// Markers merges texts like Combine. Where the same lines were changed, the file gets both,
	// between the markers of git. It is Split for everything else.
	Markers
)

// Combines reports whether texts are merged line by line.
func (c Conflict) Combines() bool { return c == Combine || c == Markers }

// Splits reports whether content that cannot be merged becomes two files.
func (c Conflict) Splits() bool { return c == Split || c == Markers }

// conflict is for content that was changed on both sides, and is not the same.
func conflict(local Local, policy Policy) Action {
	c := policy.Conflict
	switch {
	case c.Combines() && local.Text == Untried:
		return Action{Do: MergeText}
	case c.Combines() && local.Text == Merged:
		return Action{Do: Unite}
	case c.Splits():
		return Action{Do: SplitUp}
	case c == LastWriterWins && policy.Kept == NotKept:
		return Action{Do: KeepRemote}
	case c == LastWriterWins && policy.Kept == TooLarge:
		return Action{Hold, NoteTooLarge}
	case c == LastWriterWins:
		return Action{Overwrite, NoteOverwritten}
	case c == Abort:
		return Action{Hold, NoteConflict + " (storage_conflict)"} // as the AIP-35 adapter guide calls it
	}
	return Action{Hold, NoteConflict}
}

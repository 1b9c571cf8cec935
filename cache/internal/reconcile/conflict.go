package reconcile

// Conflict says what happens when another changed what was changed here.
type Conflict uint8

// The conflict policies.
const (
	// Split keeps both: the other's version has the name, ours gets another, made of a
	// hash of its content.
	Split Conflict = iota
	// Abort keeps ours here and the other's there; close and fsync fail.
	Abort
	// LastWriterWins sends ours; what it overwrites is kept in the history.
	LastWriterWins
	// Manual keeps both and base under .wsmount/conflicts until resolved.
	Manual
	// Combine merges a text of which other lines were changed there than here. It is
	// Manual for everything else.
	Combine
	// Markers merges texts like Combine. Where the same lines were changed, the file
	// gets both, between the markers of git. It is Split for everything else.
	Markers
)

// Combines reports whether texts are merged line by line.
func (c Conflict) Combines() bool { return c == Combine || c == Markers }

// Splits reports whether what cannot be merged becomes two files.
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
	case c == LastWriterWins && !policy.Kept:
		return Action{Do: KeepRemote}
	case c == LastWriterWins:
		return Action{Overwrite, NoteOverwritten}
	case c == Abort:
		return Action{Hold, NoteConflict + " (storage_conflict)"} // as the AIP-35 adapter guide calls it
	}
	return Action{Hold, NoteConflict}
}

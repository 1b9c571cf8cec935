package reconcile

// Orphan is a file that lost its name to a pull while a program had it open, and was changed then.
type Orphan struct {
	Rival   Rival // the present holder of its name
	Content Content
	Text    Text
}

// Rival is the present holder of the name that an orphan lost.
type Rival uint8

// The values of Rival.
const (
	NoRival Rival = iota
	Pulled        // a file in the remote's state
	Changed       // an entry that was changed locally too, or a directory
)

// DecideOrphan decides about an orphan.
//
//	rival      and                              then
//	nothing                                     Keep
//	changed                                     SplitUp
//	pulled     not compared                     Compare
//	pulled     equal                            Adopt
//	pulled     text not tried, texts combine    MergeText
//	pulled     text merged, texts combine       Unite
//	pulled     split                            SplitUp
//	pulled     last writer wins, not kept       KeepRemote
//	pulled     last writer wins, too large      Hold
//	pulled     last writer wins                 Overwrite
//	pulled     abort or manual                  Hold
func DecideOrphan(o Orphan, policy Policy) Action {
	switch {
	case o.Rival == NoRival:
		return Action{Keep, NoteKept}
	case o.Rival == Changed:
		return Action{Do: SplitUp} // a copy keeps all, whatever the policy
	case o.Content == Uncompared:
		return Action{Do: Compare}
	case o.Content == Equal:
		return Action{Do: Adopt}
	}
	return conflict(Local{Text: o.Text}, policy)
}

// Remains is the rest of an inode that has lost a name of the remote.
type Remains struct {
	Remote   bool // names of the remote
	Local    bool // names
	Complete bool // no part of it must be fetched
	Modified bool // a part of its content, while the rest must be fetched
}

// DecideRemains decides about such an inode. The parts that only the remote had are lost.
//
//	remote  local  content                   then
//	some    any    any                       Nothing
//	none    none   any                       Forget
//	none    some   complete                  Keep
//	none    some   modified, not complete    Nothing
//	none    some   not complete              Delete
func DecideRemains(r Remains) Action {
	switch {
	case r.Remote:
		return Action{Do: Nothing}
	case !r.Local:
		return Action{Do: Forget}
	case r.Complete:
		return Action{Keep, NoteKeptRenamed}
	case r.Modified:
		return Action{Do: Nothing} // when it is sent, a part of it is gone
	}
	return Action{Delete, NoteNotFetched}
}

package reconcile

import "github.com/wsmount/wsmount/providers"

// Decide decides about a name. It is called again, with the facts found out or the step done,
// until the action Ends.
//
// The first line that fits counts. "there" is anything, "undecided" a directory with names that
// are not decided; "clean" is the inode that the remote had under the name, with unmodified
// content, and "new" is everything else.
//
//	base           local                       remote        and                                 then
//	any            any, in flight              any           excluded                            Wait
//	nothing        nothing                     any           excluded                            Nothing
//	nothing        there                       any           excluded                            Detach
//	undecided      any                         any           excluded                            Descend
//	there          new                         any           excluded                            Detach
//	there          directory, full             any           excluded                            Detach
//	there          clean                       any           excluded                            Delete
//	there          nothing                     any           excluded                            Forget
//	any            any, ignored                there                                             Track
//	any            any, in flight              any                                               Wait
//	any            any, private                any                                               Nothing
//	there, held    any                         as held                                           Nothing
//	any, not held  any                         as base                                           Nothing
//	any            any, maybe sent             file                                              AskSent
//	any            any, late write             file                                              Confirm
//	undecided      any                         nothing       some below, busy, no empty dirs     Clear
//	undecided      any                         nothing       none below, busy, no empty dirs     Nothing
//	undecided      any                         nothing       none below, within, no empty dirs   Release
//	undecided      any                         nothing       none below, no empty dirs           Nothing
//	undecided      any                         nothing       busy, implied dirs                  Nothing
//	undecided      any                         nothing                                           Descend
//	there          nothing                     nothing                                           Forget
//	there          another                     nothing                                           Forget
//	there          directory, full             nothing                                           Keep
//	there          directory, empty            nothing                                           Delete
//	there          modified                    nothing                                           Keep
//	there          clean                       nothing                                           Delete
//	directory      any                         directory     attrs told, attrs not modified      TakeAttrs
//	directory      any                         directory                                         Nothing
//	not directory  nothing                     directory                                         Arrive
//	not directory  directory                   directory                                         Join
//	not directory  clean                       directory                                         Supplant
//	not directory  new                         directory                                         Aside
//	directory      any                         file                                              Vacate
//	nothing        nothing                     file                                              Arrive
//	file           nothing                     same content                                      Refresh
//	file           nothing, renamed, modified  file                                              Arrive
//	file           nothing, renamed            file                                              Follow
//	file           nothing                     file                                              Arrive
//	nothing        directory, empty, only here file                                              Supplant
//	any            directory                   file                                              Aside
//	file           there                       same content                                      Refresh
//	file           clean, unseen               file          same kind, attrs not modified       Renew
//	file           clean                       file                                              Replace
//	any            new, being written          file                                              Nothing
//	any            new                         file          not compared                        Compare
//	any            new                         file          equal                               Adopt
//	any            new, version of another     file          gone                                Nothing
//	any            new, partial                file          gone                                Salvage
//	any            new                         file          gone                                Hold
//	any            new                         file          text not tried, texts combine       MergeText
//	any            new                         file          text merged, texts combine          Unite
//	any            new                         file          split                               SplitUp
//	any            new                         file          last writer wins, not kept          KeepRemote
//	any            new                         file          last writer wins, too large         Hold
//	any            new                         file          last writer wins                    Overwrite
//	any            new                         file          abort or manual                     Hold
func Decide(base Base, local Local, remote Entry, policy Policy) Action {
	switch {
	case policy.Excluded:
		return exclude(base, local)
	case local.Scope == Ignored && remote.Kind != None:
		return Action{Do: Track}
	case local.InFlight:
		return Action{Do: Wait}
	case local.Scope != Shared, base.Unchanged(remote):
		return Action{Do: Nothing}
	case remote.Kind == None:
		return gone(base, local, policy)
	case remote.Kind == providers.KindDir:
		return dir(base, local, policy)
	case local.Sent == MaybeSent:
		return Action{Do: AskSent}
	case local.Sent == LateWrite:
		return Action{Do: Confirm}
	}
	return file(base, local, remote, policy)
}

// exclude is for a name that is not shown: the remote keeps its entry. A local entry that was not
// changed goes, since the remote has it.
func exclude(base Base, local Local) Action {
	switch {
	case local.InFlight:
		return Action{Do: Wait}
	case base.Kind == None && local.Kind == None:
		return Action{Do: Nothing}
	case base.Kind == None:
		return Action{Do: Detach}
	case base.Kind == providers.KindDir && !base.Decided:
		return Action{Do: Descend}
	case local.Kind == None:
		return Action{Do: Forget}
	case !local.clean(base) || local.Kind == providers.KindDir && local.Full:
		return Action{Do: Detach}
	}
	return Action{Do: Delete}
}

// gone: the remote has no entry there any more.
func gone(base Base, local Local, policy Policy) Action {
	if base.Kind == providers.KindDir && !base.Decided {
		return goneDir(base.Below, policy)
	}
	switch {
	case local.Kind == None, local.Another:
		return Action{Do: Forget}
	case local.Kind == providers.KindDir && local.Full:
		return Action{Keep, NoteKeptDir}
	case local.Kind != providers.KindDir && local.Modified:
		return Action{Keep, NoteKept}
	}
	return Action{Do: Delete}
}

// goneDir: where directories come and go with their entries, the remote does not show an empty
// one. A busy name may be the last that a local change deletes there, or the first that it makes.
func goneDir(below Below, policy Policy) Action {
	if !policy.EmptyDirs && (below.Busy || !below.Files) {
		switch {
		case below.Busy && below.Files:
			return Action{Do: Clear}
		case policy.Within && !below.Busy:
			return Action{Do: Release}
		}
		return Action{Do: Nothing}
	}
	if below.Busy && policy.ImpliedDirs {
		return Action{Do: Nothing}
	}
	return Action{Do: Descend}
}

// dir: the remote has a directory there.
func dir(base Base, local Local, policy Policy) Action {
	switch {
	case base.Kind == providers.KindDir && policy.DirAttrs && !base.AttrsModified:
		return Action{Do: TakeAttrs}
	case base.Kind == providers.KindDir:
		return Action{Do: Nothing}
	case local.Kind == None:
		return Action{Do: Arrive}
	case local.Kind == providers.KindDir:
		return Action{Do: Join}
	case local.clean(base):
		return Action{Do: Supplant}
	}
	return Action{Do: Aside} // two kinds cannot share a name, whatever the policy
}

// file: the remote has a file or a symbolic link there.
func file(base Base, local Local, remote Entry, policy Policy) Action {
	switch {
	case base.Kind == providers.KindDir:
		return Action{Do: Vacate}
	case local.Kind == None:
		return absent(base, remote)
	case local.Kind == providers.KindDir && base.Kind == None && !local.Full && !local.Elsewhere:
		return Action{Do: Supplant}
	case local.Kind == providers.KindDir:
		return Action{Do: Aside}
	case base.SameContent(remote):
		return Action{Do: Refresh}
	case !local.clean(base):
		return both(local, policy)
	case local.Unseen && !base.AttrsModified && base.Kind == remote.Kind:
		return Action{Do: Renew}
	}
	return Action{Do: Replace}
}

// absent: no local entry has the name of a file of the remote.
func absent(base Base, remote Entry) Action {
	switch {
	case base.Kind == None:
		return Action{Do: Arrive}
	case base.SameContent(remote):
		return Action{Do: Refresh}
	case base.Moved == Renamed:
		return Action{Do: Follow}
	case base.Moved == RenamedAndModified:
		return Action{Arrive, NoteKeptBoth}
	}
	return Action{Arrive, NoteRestored}
}

// both: a file was changed on both sides.
func both(local Local, policy Policy) Action {
	switch {
	case local.Writing:
		return Action{Do: Nothing} // after it was sent, it is decided again
	case local.Content == Uncompared:
		return Action{Do: Compare}
	case local.Content == Equal:
		return Action{Do: Adopt}
	case local.Content == Differs:
		return conflict(local, policy)
	case local.Origin:
		// No local content is lost: another changed it under its old name. The next try finds that
		// first, and then the present version.
		return Action{Do: Nothing}
	case local.Partial:
		return Action{Do: Salvage} // it will never be a version of the file
	}
	return Action{Hold, NoteBaseGone}
}

package reconcile

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// Whatever the sides are, and whatever is found out, there is an end, each question is put
// once, and what ends it takes from no side what the other does not have.
func TestTotal(t *testing.T) {
	enough, seed := tier.Pick(20_000, 1_000_000), tier.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range enough {
		base, local, remote, policy := someSides(r)
		var asked []Do
		a := Decide(base, local, remote, policy)
		for ; !a.Do.Ends(); a = Decide(base, local, remote, policy) {
			assert.Must(t, !slices.Contains(asked, a.Do), "seed", seed, a.Do, "twice:", base, local, remote, policy)
			asked = append(asked, a.Do)
			switch a.Do {
			case Compare:
				local.Content = Content(1 + r.IntN(3))
			case MergeText:
				local.Text = Text(1 + r.IntN(2))
			case AskSent:
				local.Sent = []Sent{NotSent, LateWrite}[r.IntN(2)]
			case KeepRemote:
				policy.Kept = InHistory(1 + r.IntN(2))
			case Descend:
				base.Decided = true
			case Vacate:
				base = Base{}
			case Track:
				local.Scope = Shared
			default:
				t.Fatalf("seed %d: no action: %+v, %+v, %+v, %+v", seed, base, local, remote, policy)
			}
		}
		assert.Must(t, slices.Contains(harmless(base, local, remote, policy), a.Do), "seed", seed, a.Do, "for", base, local, remote, policy)
	}
}

// someSides are any that can be.
func someSides(r *rand.Rand) (base Base, local Local, remote Entry, policy Policy) {
	flip := func() bool { return r.IntN(2) == 0 }
	entries := []Entry{nothing, folder, one, two, touched("1"), again}
	base = Base{Entry: entries[r.IntN(len(entries))], AttrsModified: flip(), Moved: Moved(r.IntN(3)), Below: Below{flip(), flip()}, Decided: flip()}
	remote = entries[r.IntN(len(entries))]
	if flip() {
		base.Held = &entries[r.IntN(len(entries))]
	}
	local = Local{Another: flip(), Modified: flip(), Scope: Scope(r.IntN(3)), InFlight: r.IntN(8) == 0, Sent: Sent(r.IntN(2)),
		Full: flip(), Elsewhere: flip(), Writing: flip(), Unseen: flip(), Partial: flip(), Origin: flip()}
	switch r.IntN(3) {
	case 1:
		local.Kind = aFile
	case 2:
		local.Kind = aDir
	}
	if base.Kind == None || local.Kind != None && (local.Kind == aDir) != (base.Kind == aDir) {
		local.Another = true
	}
	policy = Policy{Conflict: Conflict(r.IntN(int(Markers) + 1)), Excluded: r.IntN(8) == 0,
		EmptyDirs: flip(), ImpliedDirs: flip(), DirAttrs: flip(), Within: flip()}
	return base, local, remote, policy
}

// harmless are the actions after which nothing is gone that only one side had.
func harmless(base Base, local Local, remote Entry, policy Policy) []Do {
	all := []Do{Nothing, Wait}
	isNew := local.Kind == aFile && !local.clean(base) || local.Kind == aDir && local.Full
	switch {
	case policy.Excluded: // the remote keeps what it has
		all = append(all, Detach, Forget)
		if !isNew {
			all = append(all, Delete)
		}
		return all
	case remote.Kind == None:
		all = append(all, Clear, Release, Keep, Forget)
		if !isNew {
			all = append(all, Delete)
		}
		return all
	case remote.Kind == aDir:
		all = append(all, TakeAttrs, Aside)
	default:
		all = append(all, Refresh, Confirm, Aside, Unite, SplitUp, Hold)
	}
	if !isNew {
		all = append(all, Arrive, Supplant, Replace, Renew, Follow)
	}
	if local.Kind == aDir && remote.Kind == aDir {
		all = append(all, Join)
	}
	if local.Content == Equal {
		all = append(all, Adopt)
	}
	if local.Content == Gone && local.Partial {
		all = append(all, Salvage)
	}
	if policy.Kept == Kept {
		all = append(all, Overwrite)
	}
	return all
}

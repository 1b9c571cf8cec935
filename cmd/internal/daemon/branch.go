package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/syncpolicy"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers"
)

// branches decides where commits go by AIP-35's branch_policy. A conversation begins a
// branch where the tracked branch is; the turns of a conversation go on from one
// another, each on a branch of its own, so that no turn loses the work of the one
// before. The store keeps which branch it is: after a remount it is the same until an
// event names another conversation.
type branches struct {
	sync     mountspec.Sync
	store    providers.Brancher // nil: it has no branches
	readOnly bool
	clock    func() time.Time
	unnamed  string // names the branch until an event does, if none has a name yet

	mu    sync.Mutex         // guards the fields below
	seen  providers.Branches // as of the last look
	stale bool               // a commit was made since
}

func newBranches(s mountspec.Sync, store providers.Provider, readOnly bool, clock func() time.Time) *branches {
	id := make([]byte, 8)
	rand.Read(id) // never fails
	b := &branches{sync: s, readOnly: readOnly, clock: clock, unnamed: hex.EncodeToString(id), stale: true}
	b.store, _ = providers.As[providers.Brancher](store)
	return b
}

// brancher returns the store's Brancher, and whether commits may go to branches.
func (b *branches) brancher() (providers.Brancher, bool) {
	return b.store, b.store != nil && !b.readOnly && b.sync.Mode == mountspec.ModePullPush
}

// name is the branch for a conversation and a turn, each of which may be unknown,
// when commits go to the branch on now ("": none of wsmount's). goesOn says that
// the branch belongs to the same conversation.
func (b *branches) name(on, conversation, turn string) (name string, goesOn bool) {
	if !syncpolicy.HasBranches(b.sync) {
		return "", false // back to the tracked branch, if the policy has changed
	}
	if conversation == "" && on != "" && (turn == "" || b.sync.Push.Branch == mountspec.BranchPerConversation) {
		return on, true
	}
	if b.sync.Push.Branch == mountspec.BranchPerConversation {
		name, _ = mountspec.BranchForConversation(cmp.Or(conversation, b.unnamed)) // which has an id
		return name, false
	}
	before, _, isTurn := cutLast(on, "/")
	isTurn = isTurn && strings.HasPrefix(on, "wsmount/t/")
	turnName := cmp.Or(turn, b.clock().UTC().Format("20060102T150405"))
	if conversation == "" && isTurn {
		return before + "/" + mountspec.CleanID(turnName), true
	}
	name, _ = mountspec.BranchForTurn(cmp.Or(conversation, b.unnamed), turnName)
	now, _, _ := cutLast(name, "/")
	if goesOn = isTurn && now == before; goesOn && turn == "" {
		return on, true
	}
	return name, goesOn
}

// changed notes that a commit was made since the branches were looked at.
func (b *branches) changed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stale = true
}

// look reads the branches, for the status.
func (b *branches) look(ctx context.Context) {
	if b.store == nil {
		return
	}
	all, err := b.store.Branches(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.seen, b.stale = all, false
	}
}

// lookAgain is look if a commit was made since.
func (b *branches) lookAgain(ctx context.Context) {
	b.mu.Lock()
	stale := b.stale
	b.mu.Unlock()
	if stale {
		b.look(ctx)
	}
}

// withoutPull are the branches whose pull request could not be opened.
func (b *branches) withoutPull() (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.seen.Unmerged {
		if !u.Wanted.IsZero() && u.Pushed {
			names = append(names, u.Name)
		}
	}
	return names
}

// describe puts them into the status.
func (b *branches) describe(c *control.Copy) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.Branch = cmp.Or(b.seen.On, b.seen.Tracked)
	for _, u := range b.seen.Unmerged[:min(len(b.seen.Unmerged), maxListed)] {
		c.Branches = append(c.Branches, control.Branch{Name: u.Name, Revision: string(u.Revision), Commits: u.Commits, Pushed: u.Pushed,
			PRURL: u.URL, PRWanted: u.Wanted, Refused: u.Refused.Code, RefusedSays: u.Refused.Says, RefusedSince: u.Refused.Since})
	}
}

// cutLast is strings.Cut around the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// rebranch switches to the branch that an event's conversation and turn name.
// Earlier changes are committed and pushed to their own branch first, as far as
// policy does that by itself; the rest is reported.
func (k *syncer) rebranch(ctx context.Context, vars map[string]string, out *control.EventResult) error {
	b, ok := k.branches.brancher()
	if !ok {
		return nil
	}
	all, err := b.Branches(ctx)
	if err != nil {
		k.copy.Ended(cache.ActivityBranch, err)
		return fmt.Errorf("branch: %w", err)
	}
	name, goesOn := k.branches.name(all.On, vars["conversationId"], vars["turnId"])
	if name == all.On {
		return nil
	}
	// Stay: commits of a branch must not move to the tracked one by this.
	o := cache.BranchOptions{GoOn: goesOn, Stay: name == ""}
	if !goesOn && all.On != "" {
		o.Leave = k.closeBranch(ctx, out)
	}
	report, err := k.copy.Branch(ctx, name, o)
	if err != nil {
		return err
	}
	k.report.pulled(report.Pull, out)
	if !report.Moved {
		if report.WentOn != "" {
			out.Notes = append(out.Notes, fmt.Sprintf("%s: commits still go to branch %s: %s", k.name, all.On, report.WentOn))
		}
		return nil
	}
	k.log.Info("commits go to another branch", "workspace", k.name, "branch", name, "was", all.On, "revision", report.Revision)
	if report.WentOn != "" && all.On != "" {
		note := fmt.Sprintf("%s: branch %s goes on from %s and has its commits too: %s", k.name, name, all.On, report.WentOn)
		k.log.Warn("a branch did not begin where the tracked one is", "workspace", k.name, "branch", name, "from", all.On, "reason", report.WentOn)
		out.Notes = append(out.Notes, note)
	}
	return nil
}

// closeTime is how long the last push of a branch may take before the next one
// goes on from it.
const closeTime = 20 * time.Second

// closeBranch sends the changes and commits of a branch to it. It reports whether the remote has
// refused them: then they stay on their branch, listed, and do not block the next one.
func (k *syncer) closeBranch(ctx context.Context, out *control.EventResult) (refused bool) {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	for _, a := range k.actions(syncpolicy.Event{Kind: syncpolicy.LeavesBranch}) {
		err := k.perform(ctx, a, words{}, out)
		if err == nil {
			continue
		}
		left := "a branch is left with changes that are not committed"
		if a.Do == syncpolicy.Push {
			left, refused = "a branch is left with commits that are not pushed", errors.Is(err, providers.ErrPermission)
		}
		k.log.Warn(left, "workspace", k.name, "err", err)
		out.Notes = append(out.Notes, err.Error())
	}
	return refused
}

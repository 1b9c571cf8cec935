package daemon

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/answers"
	"github.com/wsmount/wsmount/cmd/internal/commits"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/freshness"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// syncing is a syncer over a clone in memory, at a time that the test says.
type syncing struct {
	*testing.T
	*syncer
	remote *memoryrepo.Remote
	clone  *memoryrepo.Repository
	at     time.Time
	slow   func(ctx context.Context) error // in place of the time that a slow remote takes
}

func newSyncing(t *testing.T, s mountspec.Sync, change ...func(*cache.Policy)) *syncing {
	t.Helper()
	policy := cache.Policy{Commit: cache.DueAsked, NoWait: true}
	for _, f := range change {
		f(&policy)
	}
	remote := memoryrepo.NewRemote(nil)
	assert.OK(t, remote.Tamper("main", providers.MustLocator("f"), []byte("theirs")))
	w := &syncing{T: t, at: historic, remote: remote}
	w.clone = memoryrepo.NewRepository(remote, "", memory.Options{Sleep: func(ctx context.Context, _ time.Duration) error { return w.slow(ctx) }})
	c := &workingCopy{freshness: freshness.New(s.Pull.TTL, func() time.Time { return w.at }), patience: time.Minute}
	c.answers = answers.New(func() time.Time { return w.at }, c.answered)
	c.messages = commits.New(w.clone, providers.WrapOptions{Around: c.answers.Around(w.clone)})
	c.provider = c.messages
	v, err := cache.Open(t.Context(), c.provider, cache.Options{StateDir: t.TempDir(), Provider: "memory",
		Believed: c.freshness.Believed, Policy: policy})
	assert.OK(t, err)
	c.Volume = v
	c.opened.Store(v)
	log := slog.New(slog.DiscardHandler)
	r := &host.Resolved{Storage: &mountspec.Storage{Provider: "memory", Sync: s}}
	bus := lifecycle.New(lifecycle.Options{})
	w.syncer, err = newSyncer(r, c, syncerOptions{bus: bus, log: log, now: func() time.Time { return w.at },
		identity: func(string) (mountspec.IdentityEntry, bool) { return mountspec.IdentityEntry{}, false }})
	assert.OK(t, err)
	t.Cleanup(func() {
		w.leave()
		assert.Is(t, v.Close(), nil)
		bus.Close()
	})
	return w
}

// byHand is a sync block by which nothing happens that nobody asks for.
func byHand() mountspec.Sync {
	s := mountspec.Sync{Mode: mountspec.ModePullPush}
	s.Commit.On, s.Push.On, s.Pull.On = mountspec.EventManual, mountspec.EventManual, mountspec.EventManual
	return s
}

// event has an event followed.
func (w *syncing) event(name mountspec.Trigger, vars map[string]string) {
	w.Helper()
	assert.OK(w, assert.ErrOf(w.handle(w.Context(), lifecycle.Event{Name: string(name), Payload: vars})))
}

// asks reports how often the remote is asked when the kernel has sent so many requests, a
// while after the last look.
func (w *syncing) asks(later time.Duration, operations uint64) int {
	before := w.clone.Switches().Calls()[providers.MethodFetch]
	w.at = w.at.Add(later)
	w.tick(operations)
	w.gate.token <- struct{}{} // what it began holds it until it is done
	w.gate.give()
	return w.clone.Switches().Calls()[providers.MethodFetch] - before
}

// The remote is asked on the first access after the TTL, which may have come before its
// end, and never in a turn.
func TestPullsAfterTheTTL(t *testing.T) {
	s := byHand()
	s.Pull.On, s.Pull.TTL = mountspec.EventWorkspaceOpen, time.Minute
	w := newSyncing(t, s)
	for _, c := range []struct {
		what       string
		event      mountspec.Trigger
		later      time.Duration
		operations uint64
		want       int
	}{
		{"nothing was used yet", "", 0, 0, 0},
		{"the first access", "", time.Second, 1, 1},
		{"an access before the TTL is over", "", time.Minute - 1, 2, 0},
		{"no other access since", "", 1, 2, 1},
		{"no access since the last pull", "", time.Hour, 2, 0},
		{"in a turn", mountspec.EventTurnStart, time.Hour, 3, 0},
		{"the turn has failed", mountspec.EventTurnError, 0, 3, 1},
		{"in the next turn", mountspec.EventTurnStart, time.Hour, 4, 0},
		{"the turn has ended", mountspec.EventTurnEnd, 0, 4, 1},
	} {
		if c.event != "" {
			w.event(c.event, nil)
		}
		assert.Equal(t, w.asks(c.later, c.operations), c.want, c.what+": pulls")
	}
}

// A pull that failed leaves what is shown stale where pulls bring it, and nothing where each look
// asks the store.
func TestFailedPull(t *testing.T) {
	for mode, stale := range map[mountspec.Mode]bool{mountspec.ModePullPush: true, mountspec.ModeCanonical: false} {
		s := byHand()
		s.Mode = mode
		w := newSyncing(t, s)
		w.note(w.at, cache.PullReport{}, providers.ErrPermission)
		assert.Equal(t, w.freshness.Stale() != nil, stale, mode)
	}
}

// What is committed in a turn is said to be of that turn, whichever way it ends, and what
// is committed after it is not.
func TestTurnOfACommit(t *testing.T) {
	w := newSyncing(t, byHand())
	turn := func() string {
		for _, trailer := range w.author.Compose(nil, 0).Trailers {
			if trailer.Name == "Wsmount-Turn" {
				return trailer.Value
			}
		}
		return ""
	}
	for _, end := range []mountspec.Trigger{mountspec.EventTurnEnd, mountspec.EventTurnError, mountspec.EventConversationEnd} {
		w.event(mountspec.EventTurnStart, map[string]string{"turnId": "t1", "conversationId": "c1"})
		assert.Equal(t, turn(), "t1", "before", end, "the turn")
		w.event(end, nil)
		assert.Equal(t, turn(), "", "after", end, "the turn")
	}
}

// An unmount sends what waits for its time: what of that fails is the unmount's to tell.
func TestUnmountSendsWhatWaits(t *testing.T) {
	w := newSyncing(t, mountspec.Sync{Mode: mountspec.ModeCanonical}, func(p *cache.Policy) { p.Commit, p.Window = cache.DueChange, time.Hour })
	assert.OK(t, assert.ErrOf(w.copy.Symlink(&fs.Op{}, fs.RootIno, "link", "f")))
	assert.True(t, w.copy.Status().Queued > 0, "nothing waits")
	assert.OK(t, w.finish(t.Context()))
	assert.Equal(t, w.copy.Status().Queued, 0, "changes that wait after the unmount")
}

// A commit that the policy does not grant is told of, with all that waits for it.
func TestCommitThatIsNotGranted(t *testing.T) {
	w := newSyncing(t, byHand())
	for _, name := range []string{"a", "b"} {
		assert.OK(t, assert.ErrOf(w.copy.Mkdir(&fs.Op{}, fs.RootIno, name, 0o755)))
	}
	var out control.EventResult
	assert.OK(t, w.commit(t.Context(), words{}, &out))
	assert.Equal(t, out.HeldBack, 2, "changes held back")
	assert.Equal(t, out.Committed, 0, "commits")
}

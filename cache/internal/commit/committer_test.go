package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/table/tabletest"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// bench is a scene with a committer, whose remote and working copy do as the test says.
// Content is that of symbolic links, which is in the tree.
type bench struct {
	*scene
	c    *Committer
	q    *pending.Queue
	send *upload.Sender
	kept *Kept
	held *tree.View
	work sync.WaitGroup

	answers  []error // of the remote to sets, in order; nil: it takes the set
	lost     bool    // the remote takes the set although it says that it does not
	behind   int     // how often the table is not in step with the head
	judged   []error // of MayDelete, in order
	taken    map[string]providers.CommitResult
	did      []string
	reported []error
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{scene: newScene(t), taken: map[string]providers.CommitResult{}}
	ctx, stop := context.WithCancel(context.Background())
	log, now, ids := slog.New(slog.DiscardHandler), func() time.Time { return time.Unix(1, 0) }, 0
	newID := func(*tree.View) string { ids++; return fmt.Sprint("op-", ids) }
	passes := func(err error) bool { return errors.Is(err, providers.ErrUnavailable) }
	b.q = pending.New(pending.Options{Now: now, Writers: b, Sender: b})
	exec := upload.NewExecutor(upload.ExecutorOptions{Provider: memory.New(memory.Options{}), Tree: b.tree, Volume: byName{b}, Content: byName{b}, NewID: newID, Passes: passes, Log: log})
	b.send = upload.NewSender(upload.SenderOptions{Tree: b.tree, Queue: b.q, Executor: exec, Host: byName{b}, Monitor: b, Context: ctx, Now: now, Log: log})
	open := files.NewOpenSet()
	b.kept = NewKept(KeptOptions{Tree: b.tree, Open: open, IsUnsaved: func(*tree.View, table.Ino) bool { return false }, Abandon: func(...table.Ino) {}})
	b.c = NewCommitter(CommitterOptions{
		Remote: b, Tree: b.tree, Queue: b.q, Sender: b.send, Executor: exec, Kept: b.kept, Open: open, Guard: b.was.Guard, Head: revision.NewHeadLock(),
		Volume: b, Host: b, Revisions: b, Ignores: b, Judge: b, Names: b, Holds: b, Content: b, Monitor: b,
		Take: b.take, NewID: newID, Passes: passes, IsFinal: func(err error) bool { return !passes(err) }, Context: ctx, Log: log,
	})
	b.held = b.tree.Lock()
	b.q.Resume(b.held, nil)
	b.tree.Unlock()
	b.work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-b.q.Kicked():
				b.c.Look(b.tree.Lock())
				b.tree.Unlock()
			}
		}
	})
	t.Cleanup(func() { stop(); b.work.Wait() })
	return b
}

// afterPowerLoss asks what a loss of power would leave of the table.
func (b *bench) afterPowerLoss(has func(*tree.View) bool) bool {
	left := tree.New(tabletest.AfterPowerLoss(b, b.disk, "/tree"), tree.Options{})
	defer left.Unlock()
	return has(left.Lock())
}

// link makes a symbolic link in the root.
func (b *bench) link(ino table.Ino, name string) {
	b.Helper()
	assert.OK(b, b.Update(func(tx upload.Tx) error {
		tx.Put(ino, &table.Inode{Mode: syscall.S_IFLNK | 0o777, ContentVersion: 1, AttrGen: 1, Target: "to", Size: 2})
		tx.SetLocal(root(name), ino, false, false)
		return nil
	}))
}

// Commit implements providers.Committer. A set is taken once.
func (b *bench) Commit(_ context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	if set.Base != "" {
		b.did = append(b.did, "ask")
		result, happened := b.taken[set.Op]
		if !happened {
			return result, providers.ErrConflict
		}
		return result, nil
	}
	assert.True(b, b.afterPowerLoss(IsUnresolved), "a loss of power takes the note of the set that is sent")
	var names []string
	for _, c := range set.Changes {
		names = append(names, c.Locator.String())
	}
	b.did = append(b.did, set.Message+": "+strings.Join(names, " "))
	result := providers.CommitResult{Revision: providers.Revision("after " + set.Op), Committed: true, Entries: make([]providers.Info, len(names))}
	var err error
	if len(b.answers) > 0 {
		err, b.answers = b.answers[0], b.answers[1:]
	}
	if err == nil || b.lost {
		b.taken[set.Op] = result
	}
	return result, err
}

func (b *bench) Head(context.Context) (providers.Revision, error) { return "", nil }

// take is CommitterOptions.Take.
func (b *bench) take() (*Moment, func()) {
	v := b.tree.Lock()
	defer b.tree.Unlock()
	was, at := b.was, v.Snapshot()
	was.View, was.At, was.Held = at.View, at, map[table.Link]struct{}{}
	for t := range b.send.Jobs().All(v) {
		if t.State != upload.Idle {
			was.Held[t.Link] = struct{}{}
		}
	}
	b.kept.Begin(v)
	return &was, func() { assert.OK(b, at.Close(b.tree)) }
}

// Update implements Volume.
func (b *bench) Update(do func(upload.Tx) error) error {
	o := &observer{b: b}
	return b.tree.Update(func(tx *tree.Tx) error {
		o.tx = tx
		return do(upload.Tx{Tx: tx, Rest: &sending{}})
	}, o)
}

func (b *bench) UpdateOwn(do func(upload.Tx) error) error { return b.Update(do) }

func (b *bench) Report(_, _ string, err error) { b.reported = append(b.reported, err) }

// observer tells a bench of a transaction.
type observer struct {
	b  *bench
	tx *tree.Tx
}

func (*observer) Full(bool) bool                        { return false }
func (*observer) Marked(table.Link, uint64, uint64)     {}
func (*observer) Nameless(table.Ino, *table.Inode) bool { return false }
func (*observer) Freed(table.Ino, *table.Inode)         {}
func (*observer) Undone()                               {}

func (o *observer) Committed() {
	o.b.send.Jobs().Changed(o.tx.View, o.tx.Changed())
	o.b.q.Committed(o.tx.View, false, o.tx.Changed(), o.tx.Unnamed())
}

// Go and those that follow implement Host. Pauses are over at once.
func (b *bench) Go(f func())                                    { b.work.Go(f) }
func (b *bench) Pause(context.Context, time.Duration)           {}
func (b *bench) Patiently(do func(context.Context) error) error { return do(b.c.o.Context) }
func (b *bench) IsClosed(*tree.View) bool                       { return false }

// IsSynced and those that follow implement Revisions.
func (b *bench) IsSynced(context.Context, revision.Held) (bool, error) { return b.behind == 0, nil }
func (b *bench) CountUnpushed() error                                  { return nil }
func (b *bench) Push()                                                 {}

func (b *bench) Sync(context.Context, revision.Moving) error {
	if b.behind > 0 {
		b.behind--
		b.did = append(b.did, "sync")
	}
	return nil
}

// LearnAhead and those that follow implement Ignores.
func (b *bench) LearnAhead(*tree.View)                                    {}
func (b *bench) Learn(context.Context) error                              { return nil }
func (b *bench) Sort([]table.Link, rules.Carriers) error                  { return nil }
func (b *bench) Bring(context.Context, []table.Link) error                { return nil }
func (b *bench) IsHalted(*tree.View) bool                                 { return false }
func (b *bench) Passed(*tree.View)                                        {}
func (b *bench) HydrateNameless(context.Context, table.Ino, string) error { return nil }

// MayDelete implements Judge.
func (b *bench) MayDelete(uint64, string, []table.Ino) (err error) {
	if len(b.judged) > 0 {
		err, b.judged = b.judged[0], b.judged[1:]
	}
	return err
}

func (b *bench) LookInto(_ context.Context, dirs []table.Ino) error {
	b.did = append(b.did, fmt.Sprint("look into ", dirs))
	if len(dirs) > 1 { // between the moment of a set and its record something else comes
		b.behind = 1
	}
	return nil
}

// PreconditionFailed implements Names.
func (b *bench) PreconditionFailed(_ context.Context, l table.Link, _ error) error {
	b.did = append(b.did, "revalidate "+l.Name)
	return nil
}

func (b *bench) Hold(l table.Link, err error) {
	v := b.tree.Lock()
	defer b.tree.Unlock()
	b.did = append(b.did, "hold "+l.Name)
	b.send.Jobs().Hold(v, l, err, time.Unix(1, 0), false)
}

func (b *bench) Of(v *tree.View, l table.Link) pending.HeldBack {
	err, _ := b.Failure(v, l)
	return pending.HeldBack{Path: l.Name, Reason: pending.OnItsWay, Conflict: err != nil}
}

func (b *bench) Renamed(*tree.View, table.Ino, string, string) {}

func (b *bench) Unsendable(_ context.Context, _ table.Link, cause error) error { return cause }

// Advanced and those that follow implement Monitor.
func (b *bench) Advanced(*tree.View)       {}
func (b *bench) Moving()                   {}
func (b *bench) Ended(*tree.View, error)   {}
func (b *bench) Progress(string, int, int) {}

// Writing and those that follow implement pending.Writers and pending.Sender.
func (b *bench) Writing(*tree.View, table.Ino) (open, touched bool) { return false, false }
func (b *bench) All(*tree.View, func(table.Ino))                    {}
func (b *bench) Failure(v *tree.View, l table.Link) (error, bool)   { return b.send.Jobs().Failure(v, l) }
func (b *bench) IsSending(*tree.View, table.Link) bool              { return false }
func (b *bench) IsPlaceKnown(*tree.View, table.Ino) bool            { return true }
func (b *bench) IsAsked(v *tree.View) bool                          { return b.c.IsAsked(v) }
func (b *bench) IsStopped(*tree.View) bool                          { return false }

// byName is a bench for what sends name by name, which is never asked to here.
type byName struct{ *bench }

func (byName) Retry(ctx context.Context, do func(context.Context) error) error { return do(ctx) }
func (byName) Patiently(do func(context.Context, func()) error) error {
	return do(context.Background(), func() {})
}
func (byName) Abandon([]table.Ino)                                   {}
func (byName) Open(table.Ino) (*files.OpenInode, error)              { return nil, upload.ErrMoot }
func (byName) Release(*files.OpenInode)                              {}
func (byName) HydrateBeforeDelete(context.Context, table.Link) error { return nil }

// refusedFor says that a set was refused for one of its names.
func refusedFor(name string, kind error) error {
	l, _ := providers.ParseLocator(name)
	return &providers.Error{Op: providers.MethodCommit, Locator: l, Kind: kind}
}

// What is asked for goes as one set, without what the remote will not take; what became of a
// set is known before another is sent.
func TestCommitter(t *testing.T) {
	unavailable, conflict := refusedFor("", providers.ErrUnavailable), refusedFor("a", providers.ErrConflict)
	for _, c := range []struct {
		name    string
		set     func(*bench)
		did     string
		changes int
		held    string
		err     error
	}{
		{"all", func(*bench) {}, "turn: a b", 2, "", nil},
		{"a name is refused", func(b *bench) { b.answers = []error{refusedFor("a", providers.ErrNameTooLong)} }, "turn: a b; hold a; turn: b", 1, "a", nil},
		{"a name was changed by others", func(b *bench) { b.answers = []error{conflict} }, "turn: a b; revalidate a; turn: a b", 2, "", nil},
		{"a name is changed by others all the time", func(b *bench) { b.answers = []error{conflict, conflict, conflict, conflict, conflict} },
			"turn: a b; revalidate a; turn: a b; revalidate a; turn: a b; revalidate a; turn: a b; revalidate a; turn: a b", 0, "", providers.ErrConflict},
		{"the set is refused", func(b *bench) { b.answers = []error{providers.ErrTooLarge} }, "turn: a b", 0, "", providers.ErrTooLarge},
		{"the answer is lost", func(b *bench) { b.answers, b.lost = []error{unavailable}, true }, "turn: a b; ask", 2, "", nil},
		{"the request is lost", func(b *bench) { b.answers = []error{unavailable} }, "turn: a b; ask; turn: a b", 2, "", nil},
		{"a pull came between", func(b *bench) { b.judged = []error{&massdelete.UnseenError{Dirs: []table.Ino{1, 2}}} }, "look into [1 2]; ask; sync; turn: a b", 2, "", nil},
		{"too little is known", func(b *bench) { b.judged = []error{&massdelete.UnseenError{Dirs: []table.Ino{1}}} }, "look into [1]; turn: a b", 2, "", nil},
		{"too much would be deleted", func(b *bench) { b.judged = []error{massdelete.ErrHalted} }, "", 0, "", massdelete.ErrHalted},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.link(10, "a")
			b.link(11, "b")
			c.set(b)
			due := b.q.Newest(b.tree.Lock())
			b.tree.Unlock()
			r, err := b.c.Commit(t.Context(), pending.Description{Message: "turn"}, due)
			b.tree.Lock()
			defer b.tree.Unlock()
			assert.Is(t, err, c.err)
			assert.Equal(t, strings.Join(b.did, "; "), c.did, "did")
			assert.Equal(t, r.Changes, c.changes, "changes")
			assert.Equal(t, r.Committed, c.changes > 0, "committed")
			held := ""
			for _, h := range r.HeldBack {
				held += h.Path
			}
			assert.Equal(t, held, c.held, "held back")
			assert.Equal(t, b.held.DirtyCount(), 2-c.changes, "left to send")
			assert.True(t, b.kept.now == nil, "content is kept still")
			if err == nil {
				assert.False(t, b.c.IsAsked(b.held) || b.c.IsSending(b.held) || IsUnresolved(b.held), "there is something under way")
			}
		})
	}
}

// A request that ends takes nothing with it, and one that is asked for meanwhile is told of
// conflicts.
func TestRequest(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.tree.Lock()
	b.c.Begin(b.held) // so that no set begins
	assert.False(t, b.c.Conflict(b.held, "a"), "nobody asked")
	b.tree.Unlock()
	done := make(chan error)
	go func() { done <- assert.ErrOf(b.c.Commit(ctx, pending.Description{}, 0)) }()
	for asked := false; !asked; {
		b.tree.Lock()
		asked = b.c.IsAsked(b.held)
		b.tree.Unlock()
	}
	b.tree.Lock()
	assert.True(t, b.c.Conflict(b.held, "a"), "who asked is not told")
	b.tree.Unlock()
	cancel()
	assert.Is(t, <-done, context.Canceled)
	b.tree.Lock()
	defer b.tree.Unlock()
	assert.False(t, b.c.IsAsked(b.held), "asked")
	assert.True(t, b.c.IsSending(b.held), "sending")
}

// No set is made while values are still expected that must not get into the repository.
func TestSendWaitsForSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.link(10, "a")
		b.c.o.Guard.Secrets = &Secrets{}
		known := b.c.o.Guard.Secrets.Expect()
		due := b.q.Newest(b.tree.Lock())
		b.c.Begin(b.held) // so that no other set begins
		b.tree.Unlock()
		sent := make(chan error, 1)
		go func() { sent <- assert.ErrOf(b.c.Send(t.Context(), nil, due)) }()
		synctest.Wait()
		assert.Equal(t, len(b.did), 0, "sets that were sent before the values were known")
		known()
		assert.OK(t, <-sent)
		assert.Equal(t, len(b.did), 1, "sets that were sent")
	})
}

// A set whose record is damaged is forgotten, and a person is told.
func TestDamagedRecordIsReported(t *testing.T) {
	b := newBench(t)
	assert.OK(t, b.Update(func(tx upload.Tx) error {
		tx.Set(keySet, []byte("{"))
		return nil
	}))
	assert.OK(t, b.c.Resolve(t.Context(), revision.Moving{}))
	assert.Equal(t, len(b.reported), 1, "reports")
	v := b.tree.Lock()
	defer b.tree.Unlock()
	assert.False(t, IsUnresolved(v), "the set is still open")
}

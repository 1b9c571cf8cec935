package upload

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// line is a bench with a queue of what differs, and a sender.
type line struct {
	*bench
	q    *pending.Queue
	send *Sender
	held *tree.View
	work sync.WaitGroup
	ctx  context.Context
	stop context.CancelFunc

	// Guarded by the lock of the tree.
	halted    bool
	requested int                     // what the Guard was told of
	decide    func(cause error) error // of PreconditionFailed
	ended     []error                 // of Monitor

	mu      sync.Mutex // guards all below
	pauses  int
	paused  chan struct{} // pauses end with it; nil: at once
	refused []string
}

// newLine has a sender send what differs on a bench.
func newLine(b *bench, noWait bool) *line {
	l := &line{bench: b}
	l.ctx, l.stop = context.WithCancel(context.Background())
	b.Cleanup(func() { l.stop(); l.work.Wait() })
	l.q = pending.New(pending.Options{Now: l.now, OnChange: true, Writers: l, Sender: l})
	l.send = NewSender(SenderOptions{Tree: b.tree, Queue: l.q, Executor: b.x, Host: l, Judge: l, Monitor: l,
		Context: l.ctx, Now: l.now, NoWait: noWait, Log: slog.New(slog.DiscardHandler)})
	b.noted = func(tx *tree.Tx, own bool) {
		l.send.Jobs().Changed(tx.View, tx.Changed())
		l.q.Committed(tx.View, own, tx.Changed(), tx.Unnamed())
		l.q.Kick()
	}
	b.view(func(v *tree.View) { l.held = v; l.q.Resume(v, nil) })
	l.q.Kick()
	return l
}

func (l *line) now() time.Time { return noon }

// Writing and All implement pending.Writers.
func (l *line) Writing(*tree.View, table.Ino) (open, touched bool) { return false, false }
func (l *line) All(*tree.View, func(table.Ino))                    {}

// Failure and those that follow implement pending.Sender.
func (l *line) Failure(v *tree.View, name table.Link) (error, bool) {
	return l.send.Jobs().Failure(v, name)
}
func (l *line) IsSending(v *tree.View, name table.Link) bool {
	return l.send.Jobs().Busy(v, name) != nil
}
func (l *line) IsPlaceKnown(v *tree.View, ino table.Ino) bool { return l.send.IsPlaceKnown(v, ino) }
func (l *line) IsAsked(*tree.View) bool                       { return false }
func (l *line) IsStopped(*tree.View) bool                     { return false }

// Go implements Host.
func (l *line) Go(f func()) { l.work.Go(f) }

// Pause implements Host.
func (l *line) Pause(ctx context.Context, _ time.Duration) {
	l.mu.Lock()
	paused := l.paused
	l.pauses++
	l.mu.Unlock()
	if paused == nil {
		return
	}
	select {
	case <-paused:
	case <-ctx.Done():
	}
}

// Patiently implements Host.
func (l *line) Patiently(do func(context.Context, func()) error) error {
	return do(l.ctx, func() {})
}

// Abandon implements Host.
func (l *line) Abandon(dirs []table.Ino) {
	l.does(func(tx *tree.Tx) {
		for _, dir := range dirs {
			tx.Shed(dir)
		}
	})
}

// MayBegin implements Judge.
func (l *line) MayBegin(*tree.View) bool { return !l.halted }

// PreconditionFailed implements Judge.
func (l *line) PreconditionFailed(_ context.Context, _ table.Link, cause error) error {
	l.tree.Lock()
	defer l.tree.Unlock()
	if l.decide == nil {
		return nil
	}
	return l.decide(cause)
}

// Refused implements Judge.
func (l *line) Refused(t *Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = append(l.refused, t.Op.String())
}

// Advanced, Moving and Ended implement Monitor.
func (l *line) Advanced(v *tree.View)         { l.q.Advance(v) }
func (l *line) Moving()                       {}
func (l *line) Ended(_ *tree.View, err error) { l.ended = append(l.ended, err) }

// runs has the sender look, and gives what runs then.
func (l *line) runs() (ops []string) {
	l.view(func(v *tree.View) {
		l.send.Look(v)
		for _, t := range l.send.Jobs().Running(v) {
			ops = append(ops, t.Op.String())
		}
	})
	return ops
}

// until has the sender look whenever it is kicked, until something holds and nothing runs.
func (l *line) until(holds func(v *tree.View) bool) {
	for done := false; !done; {
		<-l.q.Kicked()
		l.view(func(v *tree.View) {
			l.send.Look(v)
			done = len(l.send.Jobs().Running(v)) == 0 && holds(v)
		})
	}
	l.q.Kick()
}

func (l *line) untilSent() {
	l.until(func(v *tree.View) bool { return v.DirtyCount() == 0 })
}

// Whatever was changed is sent, however many calls fail or have their answers lost.
func TestSenderSendsAll(t *testing.T) {
	for name, o := range stores {
		for change := range changes {
			for _, fails := range []bool{false, true} {
				t.Run(name+"/"+change+"/"+strconv.FormatBool(fails), func(t *testing.T) {
					b := changed(t, o, change)
					if fails {
						b.around = func(n int) (before, after error) {
							switch n % 5 {
							case 0:
								before = providers.ErrUnavailable
							case 2:
								after = providers.ErrUnavailable
							}
							return before, after
						}
					}
					l := newLine(b, false)
					l.untilSent()
					b.check(change)
				})
			}
		}
	}
}

// What is begun at once, beside what is under way, is what no other host could tell apart.
func TestSenderBegins(t *testing.T) {
	many := func(b *bench) {
		for i := range table.Ino(2 * MostRunning) {
			b.link(100+i, root("f"+strconv.Itoa(int(i))), "x")
		}
	}
	for what, c := range map[string]struct {
		change  func(b *bench)
		sender  func(l *line)
		want    string // "16": so many
		waiting string // where nobody waits for content; "": the same
	}{
		"no more than some at a time": {many, nil, "16", ""},
		"one where much fails": {many, func(l *line) {
			for range flaky {
				l.send.Failed(l.held, errSome)
			}
		}, "1", ""},
		"none in a pause":               {many, func(l *line) { l.paused = make(chan struct{}); l.send.Pause(l.held, time.Second) }, "0", ""},
		"none that may not":             {many, func(l *line) { l.halted = true }, "0", ""},
		"deletions together":            {func(b *bench) { b.remove(root("a")); b.remove(root("b")) }, nil, "delete a, delete b", ""},
		"content beside directories":    {func(b *bench) { b.mkdir(20, root("e")); b.link(21, root("n"), "x") }, nil, "mkdir e, write n", ""},
		"a directory before its names":  {changes["made"].make, nil, "mkdir e", ""},
		"no deletion after a directory": {func(b *bench) { b.mkdir(20, root("e")); b.remove(root("a")) }, nil, "mkdir e", ""},
		"no directory after a deletion": {func(b *bench) { b.remove(root("a")); b.mkdir(20, root("e")) }, nil, "delete a", ""},
		"a deletion after content":      {func(b *bench) { b.link(20, root("n"), "x"); b.remove(root("a")) }, nil, "write n, delete a", "write n"},
		"a rename alone":                {func(b *bench) { b.rename(root("a"), root("c")); b.link(20, root("n"), "x") }, nil, "rename c", ""},
	} {
		for _, noWait := range []bool{false, true} {
			b := newBench(t, memory.Options{})
			b.link(10, root("a"), "A")
			b.link(11, root("b"), "B")
			b.settle()
			c.change(b)
			l := newLine(b, noWait)
			if c.sender != nil {
				l.view(func(*tree.View) { c.sender(l) })
			}
			ops := l.runs()
			want := c.want
			if noWait && c.waiting != "" {
				want = c.waiting
			}
			if n, err := strconv.Atoi(want); err == nil {
				assert.Equal(t, len(ops), n, what)
			} else {
				assert.Equal(t, strings.Join(ops, ", "), want, what, "nobody waits", noWait)
			}
		}
	}
}

// A change that another came before is decided about; while others always come before, it is
// held back for a while.
func TestSenderYields(t *testing.T) {
	for _, c := range []struct {
		what   string
		decide func(error) error
		losses int // of the name
	}{
		{"a conflict", func(cause error) error { return cause }, 1},
		{"tried in vain", func(error) error { return nil }, mostLosses + 1},
	} {
		b := changed(t, memory.Options{}, "changed")
		b.around = func(int) (before, after error) { return providers.ErrConflict, nil }
		l := newLine(b, false)
		l.decide = c.decide
		l.until(func(v *tree.View) bool { return l.send.Jobs().IsWaiting(v, root("a")) })
		l.work.Wait()
		assert.Slice(t, l.refused, []string{"write a"}, c.what)
		assert.Equal(t, b.calls, c.losses, c.what)
		l.view(func(v *tree.View) {
			err, final := l.send.Jobs().Failure(v, root("a"))
			assert.True(t, final && err != nil, c.what, err)
			w := &pending.Waiter{Names: map[table.Link]uint64{}, Ino: 10, Version: 2}
			l.q.Add(v, w)
			assert.True(t, w.IsOver(v) && w.Err() != nil, c.what, "waits for what is held back")
		})
	}
}

// A failure that may pass has the name rest, and the remote after some of them, until the
// pauses are over or the remote is asked for.
func TestSenderRests(t *testing.T) {
	b := newBench(t, memory.Options{})
	for i := range table.Ino(6) {
		b.link(10+i, root("f"+strconv.Itoa(int(i))), "x")
	}
	var up atomic.Bool
	b.around = func(int) (before, after error) {
		if !up.Load() {
			before = providers.ErrUnavailable
		}
		return before, nil
	}
	l := newLine(b, false)
	l.paused = make(chan struct{})
	l.until(func(*tree.View) bool { return l.send.IsPaused(l.held) })
	l.view(func(v *tree.View) {
		since, last := l.send.Backoff().Unreachable(v, noon.Add(time.Hour))
		assert.True(t, since == time.Hour, since)
		assert.Is(t, last, providers.ErrUnavailable)
		assert.True(t, len(l.ended) >= flaky && !slices.Contains(l.ended, nil), l.ended)
		up.Store(true)
		l.send.Rouse(l.held)
	})
	l.untilSent()
	assert.OK(t, b.agrees())
	l.view(func(v *tree.View) {
		assert.True(t, l.send.Backoff().Failures(v) == 0 && !l.send.IsPaused(v), "it is reached")
	})
}

// What is refused without the remote's being asked ends no outage.
func TestSenderRefusesByItself(t *testing.T) {
	b := newBench(t, memory.Options{})
	b.link(10, root("f"), "x")
	b.does(func(tx *tree.Tx) { tx.Edit(10).Suspect = true })
	l := newLine(b, false)
	l.view(func(v *tree.View) { l.send.Failed(v, providers.ErrUnavailable) })
	l.until(func(v *tree.View) bool { t := l.send.Jobs().Of(v, root("f")); return t != nil && t.State == Held })
	l.work.Wait()
	assert.Equal(t, len(l.refused), 1, "refused")
	l.view(func(v *tree.View) { assert.Equal(t, l.send.Backoff().Failures(v), 1, "failures in a row") })
}

// Who waits for a name that depends on one that is held back waits in vain.
func TestSenderStalls(t *testing.T) {
	b := newBench(t, memory.Options{})
	b.mkdir(10, root("d"))
	b.link(11, at(10, "x"), "X")
	b.around = func(int) (before, after error) { return providers.ErrPermission, nil }
	l := newLine(b, false)
	w := &pending.Waiter{Names: map[table.Link]uint64{at(10, "x"): ^uint64(0)}}
	l.view(func(v *tree.View) { l.q.Add(v, w) })
	l.until(w.IsOver)
	l.work.Wait()
	assert.Slice(t, l.refused, []string{"mkdir d"})
}

// What is under way when the working copy ends is left as it is for the next run.
func TestSenderEnds(t *testing.T) {
	b := changed(t, memory.Options{}, "changed")
	l := newLine(b, false)
	b.around = func(int) (before, after error) { l.stop(); return context.Canceled, nil }
	assert.Slice(t, l.runs(), []string{"write a"})
	l.work.Wait()
	l.view(func(v *tree.View) {
		assert.True(t, v.Record(root("a")).Attempt != nil && !l.send.Jobs().IsWaiting(v, root("a")), "it is taken up again")
		assert.True(t, l.send.IsPlaceKnown(v, 11) && !l.send.IsPlaceKnown(v, 10), "of another")
	})
	assert.Equal(t, len(l.refused), 0)
}

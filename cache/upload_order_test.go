package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// gate holds the next call of a method; reached tells that it is there.
func (w *world) gate(m providers.Method) (reached <-chan struct{}, open func()) {
	there, gate := make(chan struct{}), make(chan struct{})
	w.faults.Queue(m, providertest.Fault{Gate: gate, Reached: there})
	return there, sync.OnceFunc(func() { close(gate) })
}

// only says that nobody waits for the backend and all is sent at once.
func background(_ *world, o *Options) { o.Policy.NoWait = true }

// manual has pauses end when a test says so.
type manual struct{ ends chan struct{} }

func newManual() *manual { return &manual{ends: make(chan struct{})} }

func (m *manual) pause(ctx context.Context, _ time.Duration) error {
	select {
	case <-m.ends:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *manual) option(_ *world, o *Options) { o.pause = m.pause }

// inSets has all changes of a commit go together.
func inSets(_ *world, o *Options) { o.Policy.Atomic = true }

// calm reports whether the engine does nothing and has nothing to begin.
func (w *world) calm() bool {
	locked := w.v.lock()
	defer locked.unlock()
	return len(w.v.send.Jobs().Running(locked.View)) == 0 && len(w.v.pending.Kicked()) == 0 && (w.v.sets == nil || !w.v.sets.IsSending(locked.View))
}

func TestOrder(t *testing.T) {
	tests := []struct {
		name        string
		gated       providers.Method
		first, then string
		overtakes   bool
	}{
		{"content waits for a rename", providers.MethodMove, "mv a c", "put n new", false},
		{"content waits for a deletion", providers.MethodDelete, "rm a", "put n new", false},
		{"a directory waits for a rename", providers.MethodMove, "mv a c", "mkdir n", false},
		{"a rename waits for a directory", providers.MethodMkdir, "mkdir n", "mv a c", false},
		{"a rename waits for content that nobody waits for", providers.MethodWrite, "put n new", "mv a c", false},
		{"content does not wait for content", providers.MethodWrite, "put n new", "put m new", true},
		{"nor for a directory", providers.MethodMkdir, "mkdir n", "put m new", true},
		{"a deletion does not wait for a deletion", providers.MethodDelete, "rm a", "rm b", true},
		{"a rename waits for a rename", providers.MethodMove, "mv a c", "mv b e", false},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			var calls calls
			w := newWorld(t, recording(&calls), holding("a", "A", "b", "B"), background)
			w.local()
			calls.changes()
			reached, open := w.gate(c.gated)
			defer open()
			w.do(c.first)
			<-reached
			w.do(c.then)
			if c.overtakes {
				w.until(func() bool { return len(calls.changes()) > 0 })
			} else {
				w.untilLocked(func(*View) bool { return len(w.v.pending.Kicked()) == 0 })
				assert.Equal(t, calls.changes(), "", "overtaken by")
			}
			open()
			w.uploadSame()
		})
	}
}

// A close that waits is not ordered behind others' content.
func TestRenameOvertakesContentOfACloseThatWaits(t *testing.T) {
	w := newWorld(t, holding("a", "A"))
	reached, open := w.gate(providers.MethodWrite)
	closed := async(func() { w.do("put n new") })
	<-reached
	w.do("mv a c")
	w.settle() // does not wait for the content
	open()
	<-closed
	w.same()
}

// What fails holds up nothing that does not depend on it.
func TestFailuresHoldUpNothing(t *testing.T) {
	refuse := func(path string, err error) func(*world, *Options) {
		return func(w *world, o *Options) {
			o.pause = newManual().pause
			w.p = memory.New(memory.Options{Hook: func(_ context.Context, m providers.Method, l providers.Locator) error {
				if m.Mutates() && l.String() == path {
					return err
				}
				return nil
			}})
		}
	}
	tests := []struct {
		name   string
		path   string
		err    error
		script []string
		left   []string
	}{
		{"content, for now", "f", providers.ErrUnavailable, []string{"put f x", "put g y", "mkdir d"}, []string{"a: A", "b: B", "d/", "g: y"}},
		{"content, for good", "f", providers.ErrPermission, []string{"put f x", "put g y", "mv g h"}, []string{"a: A", "b: B", "h: y"}},
		{"rename, for now", "a", providers.ErrUnavailable, []string{"mv a c", "put g y"}, []string{"a: A", "b: B", "g: y"}},
		{"rename, for good", "a", providers.ErrPermission, []string{"mv a c", "mv b e", "put g y"}, []string{"a: A", "e: B", "g: y"}},
		{"directory with content", "d", providers.ErrPermission, []string{"mkdir d", "put d/f x", "put g y"}, []string{"a: A", "b: B", "g: y"}},
		{"deletion", "a", providers.ErrPermission, []string{"rm a", "put g y", "rm b"}, []string{"a: A", "g: y"}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, refuse(c.path, c.err), holding("a", "A", "b", "B"), background, impatient)
				w.local()
				w.do(c.script...)
				w.until(func() bool { return slices.Equal(sorted(listBackend(w.p)), c.left) })
				w.until(func() bool { s := w.v.Status(); return s.HeldCount+s.Retrying > 0 })
				w.v.o.ReadOnly = true // or Close would wait
			})
		})
	}
}

// A Commit sends what differs when it is called, and no more.
func TestCommitOnlyWhatIsAsked(t *testing.T) {
	eachStore(t, func(t *testing.T, store func(*world, *Options)) {
		w := newWorld(t, store, unwaited)
		w.do("put f 1", "put g 2")
		method := providers.MethodWrite
		if w.repo != nil || w.o.Policy.Atomic {
			method = providers.MethodCommit
		}
		reached, open := w.gate(method)
		done := async(func() { w.upload() })
		<-reached
		w.do("put h 3", "mkdir d")
		open()
		<-done
		assert.Slice(t, listBackend(w.remote()), []string{"f: 1", "g: 2"}, "the backend")
		w.uploadSame()
	})
}

// What is refused for good is told at once, kept, listed, and tried again when
// it changes or after a while.
func TestHeld(t *testing.T) {
	clock := newTestClock()
	var refusal atomic.Pointer[error]
	refuse := func(err error) { refusal.Store(&err) }
	w := newWorld(t, func(w *world, o *Options) {
		o.Now = clock.now
		w.p = memory.New(memory.Options{Hook: func(_ context.Context, m providers.Method, l providers.Locator) error {
			if err := refusal.Load(); err != nil && *err != nil && m == providers.MethodWrite {
				return *err
			}
			return nil
		}})
	})
	refuse(providers.ErrTooLarge)
	w.is(w.put("f", "1"), syscall.EFBIG)
	s := w.v.Status()
	assert.True(t, s.HeldCount == 1 && len(s.Held) == 1 && s.Held[0].Path == "f" && !s.Held[0].Conflict, "status", s)
	assert.True(t, s.Unsaved == 1 && s.UnsavedBytes == 1, "status", s)
	state := func() string { state, _ := w.v.Describe(nil, w.walk("f"), "state"); return state }
	assert.Equal(t, state(), "held", "state")
	reason, ok := w.v.Describe(nil, w.walk("f"), "reason")
	assert.True(t, ok && strings.Contains(reason, "too large"), "reason", reason)
	w.is(w.put("f", "2"), syscall.EFBIG) // a new state is tried
	refuse(nil)
	w.ok(w.put("f", "3"))
	w.same()
	assert.Equal(t, state(), "clean", "state")

	refuse(providers.ErrQuota)
	w.is(w.put("f", "4"), fs.ErrQuota)
	refuse(nil)
	clock.pass(upload.HoldFor)
	w.v.loop.Tidy()
	w.v.pending.Kick()
	w.until(func() bool { return w.v.Status().Queued == 0 })
	w.same()

	refuse(providers.ErrPermission)
	w.is(w.put("f", "5"), providers.ErrPermission)
	refuse(nil)
	o := w.open("f", syscall.O_RDWR)
	w.ok(o.File.Fsync(me, true)) // asked for again
	o.File.Release()
	w.same()
}

// A rename that others get in the way of again and again is held back, and tried
// again by itself.
func TestContendedName(t *testing.T) {
	clock := newTestClock()
	var meddle atomic.Bool
	w := newWorld(t, holding("f", "1"), func(w *world, o *Options) {
		o.Now = clock.now
		o.Policy.NoWait = true
		n := 0
		w.wrap = around(func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
			if c.Method == providers.MethodMove && meddle.Load() {
				n++
				w.tamper("g", strings.Repeat("x", n)) // there is another before each try,
				defer w.p.Tamper(at("g"), nil)        // and nothing when it is looked for
			}
			return next(ctx)
		})
	})
	w.list("")
	meddle.Store(true)
	w.ok(w.rename("f", "g"))
	w.until(func() bool { return w.v.Status().HeldCount == 1 })
	s := w.v.Status()
	assert.True(t, s.Conflicts == 0 && strings.Contains(s.Held[0].Reason, "keeps changing"), "status", s.Held)
	meddle.Store(false)
	clock.pass(upload.HoldFor)
	w.v.loop.Tidy()
	w.v.pending.Kick()
	w.until(func() bool { return w.v.Status().Queued == 0 })
	w.backend("g: 1")
}

func TestHeldAcrossMounts(t *testing.T) {
	refusing := true
	w := newWorld(t, func(w *world, _ *Options) {
		w.p = memory.New(memory.Options{Hook: func(_ context.Context, m providers.Method, _ providers.Locator) error {
			if m == providers.MethodWrite && refusing {
				return providers.ErrPermission
			}
			return nil
		}})
	})
	w.is(w.put("f", "1"), providers.ErrPermission)
	w.gone = true
	var unsaved *UnsavedError
	err := w.v.Close()
	assert.Must(t, errors.As(err, &unsaved) && unsaved.Count == 1 && unsaved.Files[0].Path == "f", "close", err)
	w.ok(w.v.Close())
	w.start()
	s := w.v.Status()
	assert.True(t, s.HeldCount == 1 && s.Held[0].Path == "f", "status", s)
	refusing = false
	w.uploadSame()
}

// In an outage few names are tried, in turns, and all go when it ends.
func TestOutage(t *testing.T) {
	var calls calls
	var log *logged
	pauses := newManual()
	w := newWorld(t, recording(&calls), background, func(_ *world, o *Options) { o.pause, log = pauses.pause, logging(o) })
	w.list("")
	w.p.Switches().Cut(false)
	w.doEach(0, 100, "put f%d x")
	w.untilLocked(func(locked *View) bool {
		return w.v.send.IsPaused(locked.View) && len(w.v.send.Jobs().Running(locked.View)) == 0
	})
	s := w.v.Status()
	assert.True(t, s.Retrying != 0 && s.Retrying <= 2*upload.MostRunning && s.Queued == 100, "status", s)
	w.p.Switches().Connect()
	close(pauses.ends)
	w.uploadSame()
	w.noProblems()
	for text, most := range map[string]int{"the remote accepts no changes: they are kept and retried": 1, "the remote accepts changes again": 1} {
		assert.Equal(t, log.of(text), most, "times the log says", text)
	}
}

// When an outage has ended nobody waits for the end of a pause: neither after the
// backend has answered anything, nor who asks for a commit.
func TestOutageEnds(t *testing.T) {
	for name, notice := range map[string]func(*world){
		"a listing": func(w *world) { w.list("d") },
		"a commit":  func(w *world) { w.upload() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log *logged
				w := newWorld(t, holding("d/f", "F"), background, impatient, func(_ *world, o *Options) { o.pause, log = newManual().pause, logging(o) })
				w.list("")
				w.p.Switches().Cut(false)
				w.is(assert.ErrOf(w.v.Lookup(me, w.walk("d"), "f")), fs.ErrUnavailable)
				w.do("put a x", "put b x")
				w.until(func() bool { return w.v.Status().Retrying == 2 && w.calm() })
				w.p.Switches().Connect()
				notice(w)
				w.until(func() bool { return w.v.Status().Queued == 0 })
				w.same()
				w.list("d")
				for _, text := range []string{"the remote does not answer: what is known is shown", "the remote answers again"} {
					assert.Equal(t, log.of(text), 1, "times the log says", text)
				}
			})
		})
	}
}

// Status says why the backend is unreachable at any time, also while a name is
// tried again.
func TestStatusSaysWhyWhileItTriesAgain(t *testing.T) {
	w := newWorld(t, background)
	w.list("")
	gate, reached := make(chan struct{}), make(chan struct{})
	w.faults.Queue(providers.MethodWrite, providertest.Fault{Before: providers.ErrUnavailable}, providertest.Fault{Gate: gate, Reached: reached})
	w.do("put f x")
	<-reached
	assert.Contains(t, w.v.Status().LastError, providers.ErrUnavailable.Error())
	close(gate)
	w.until(func() bool { s := w.v.Status(); return s.Queued+len(s.InFlight) == 0 })
	s := w.v.Status()
	assert.True(t, s.LastError == "" && s.Unreachable == 0, "afterwards", s)
}

func TestPatience(t *testing.T) {
	quickly := func(_ *world, o *Options) { // tries again, many times while one waits
		o.pause = func(ctx context.Context, _ time.Duration) error { return waiting.Sleep(ctx, time.Millisecond) }
	}
	for _, hangs := range []bool{true, false} {
		eachStore(t, func(t *testing.T, store func(*world, *Options)) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, impatient, quickly, store)
				if w.repo != nil {
					return // it commits here
				}
				w.list("")
				w.mkdir("d")
				w.p.Switches().Cut(hangs)
				done := make(chan error, 1)
				go func() { done <- w.put("f", "x") }()
				select {
				case err := <-done:
					w.is(err, fs.ErrUnavailable)
				case <-time.After(guard):
					t.Error("who closes waits for ever")
					w.p.Switches().Connect()
					<-done
					return
				}
				assert.Equal(t, w.get("f"), "x")
				w.p.Switches().Connect()
				w.until(func() bool { return w.v.Status().Queued == 0 })
				w.same()
			})
		})
	}
}

// A close without new bytes waits for nothing, as after touch(1) of a file.
func TestCloseAfterAttributesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, impatient, holding("f", "1"))
		o := w.open("f", syscall.O_RDWR)
		w.p.Switches().Cut(true)
		w.ok(assert.ErrOf(w.v.SetAttr(me, w.walk("f"), o.File, &fs.SetAttr{MtimeNow: true})))
		w.ok(w.shut(o))
		w.p.Switches().Connect()
		w.until(func() bool { return w.v.Status().Queued == 0 })
	})
}

// Who closes a file that another goes on writing is not told that it waits for
// nothing.
func TestCloseBesideAWriter(t *testing.T) {
	w := newWorld(t)
	one, other := w.create("f"), w.open("f", syscall.O_RDWR)
	rest := func(paused bool) {
		locked := w.v.lock()
		locked.deletions.looking = paused
		locked.unlock()
		w.v.pending.Kick()
	}
	w.until(w.calm)
	rest(true)
	w.write(one, "one", 0)
	done := async(func() { w.ok(w.shut(one)) })
	w.until(func() bool { return w.waiting() > 0 })
	w.write(other, "two", 0)
	w.ok(w.v.opener.FlushIfOpen(table.Ino(w.walk("f"))))
	rest(false)
	<-done
	w.backend("f: two")
	w.ok(w.shut(other))
}

// What nobody has looked at counts, too.
func TestCommitOfAllThatIsKnown(t *testing.T) {
	files := append(numbered(30, "d/f%02d"), numbered(30, "unseen/in/g%02d")...)
	for _, sets := range []bool{false, true} {
		t.Run(fmt.Sprint("sets ", sets), func(t *testing.T) {
			w := newWorld(t, holding(files...), unwaited, func(_ *world, o *Options) { o.Policy.Atomic = sets })
			w.list("d")
			w.doEach(0, 30, "rm d/f%02d")
			w.p.Switches().Cut(true)
			go w.p.Switches().Connect() // now or later: nothing is refused for want of an answer
			w.uploadSame()
		})
	}
}

func TestHaltedCommit(t *testing.T) {
	for _, sets := range []bool{false, true} {
		t.Run(fmt.Sprint("sets ", sets), func(t *testing.T) {
			w := newWorld(t, holding(append(numbered(60, "d/f%02d"), "keep", "me")...), unwaited, func(_ *world, o *Options) { o.Policy.Atomic = sets })
			w.list("d")
			w.doEach(0, 36, "rm d/f%02d")
			w.do("put n x")
			w.is(assert.ErrOf(w.v.Commit(context.Background(), CommitOptions{})), ErrMassDelete)
			assert.Equal(t, len(listBackend(w.p)), 62, "entries left at the backend")
			assert.True(t, w.halts(1)[0].Commit, "a commit is halted")
			locked := w.v.lock()
			w.v.pending.Ask(locked.View) // as the end of a window does: once it is confirmed, this goes by itself
			locked.unlock()
			w.doEach(36, 60, "rm d/f%02d") // which is not due yet, and holds for what was confirmed too
			w.ok(assert.ErrOf(w.v.Confirm(context.Background())))
			w.untilLocked(func(locked *View) bool { return !locked.massDelete.IsConfirmed(massdelete.Commit) })
			w.upload() // which looks anew at what is going by now
			w.same()
			assert.Equal(t, len(w.v.Status().Halted), 0, "halted")
		})
	}
}

// What failed is tried at once when its cause is known to be gone, however long the rest was to be.
func TestRouse(t *testing.T) {
	for _, sets := range []bool{false, true} {
		w := newWorld(t, unwaited, func(_ *world, o *Options) {
			o.Policy.Commit, o.Policy.Atomic = DueChange, sets
			o.pause = func(ctx context.Context, _ time.Duration) error { <-ctx.Done(); return ctx.Err() }
		})
		locked := w.v.lock()
		w.v.send.Pause(locked.View, time.Hour)
		locked.unlock()
		w.do("put f x")
		w.v.Rouse()
		w.until(func() bool { return w.v.Status().Queued == 0 })
		w.backend("f: x")
	}
}

// What others add under the old name of a directory that is renamed key by key
// stays there.
func TestOthersUnderTheOldName(t *testing.T) {
	w := newWorld(t, over(stores["flat"]), unwaited, holding("d/a", "A", "d/b", "B"))
	w.list("d")
	w.do("mv d e")
	w.tamper("d/theirs", "T")
	w.upload()
	w.list("d")
	w.upload()
	w.backend("d/", "d/theirs: T", "e/", "e/a: A", "e/b: B")
}

func TestSuspectIsNotSent(t *testing.T) {
	for _, sets := range []bool{false, true} {
		w := newWorld(t, holding("f", "good"), unwaited, func(_ *world, o *Options) { o.Policy.Atomic = sets })
		w.do("put f maybe", "put g fine")
		x := table.Ino(w.walk("f"))
		w.ok(w.v.update(func(v *Tx) error { v.Edit(x).Suspect = true; return nil }))
		ctx, cancel := context.WithTimeout(t.Context(), guard)
		defer cancel()
		w.intercept(func(asked context.Context, c *providers.Call, next func(context.Context) error) error {
			if c.Method.Mutates() && c.Locator == at("f") {
				t.Errorf("suspect content goes to the store by %s", c.Method)
				cancel() // or it is sent without end, since it stays suspect
			}
			return next(asked)
		})
		r := assert.Of(w.v.Commit(ctx, CommitOptions{})).OK(t, "a commit that holds back what is suspect")
		assert.True(t, len(r.HeldBack) == 1 && r.HeldBack[0].Path == "f", "report", r)
		w.backend("f: good", "g: fine")
	}
}

func TestCloseLeavesWhatWasNotAskedFor(t *testing.T) {
	w := newWorld(t, unwaited)
	w.do("put f 1")
	w.again()
	w.backend()
	w.upload()
	w.backend("f: 1")
}

func TestCloseSends(t *testing.T) {
	var seen []int
	w := newWorld(t, background, func(_ *world, o *Options) { o.Policy.Window = time.Hour; o.pause = newManual().pause })
	w.do("put f 1", "put g 2")
	w.ok(w.v.Drain(context.Background(), func(s Status) { seen = append(seen, s.Queued) }))
	assert.True(t, len(seen) >= 2 && seen[0] == 2 && seen[len(seen)-1] == 0, "progress", seen)
	w.do("put h 3")
	w.stop()
	w.backend("f: 1", "g: 2", "h: 3")
}

// Where too much is unsaved, a close with more waits for the backend; not when
// that cannot be reached.
func TestBackPressure(t *testing.T) {
	pauses := newManual()
	w := newWorld(t, background, pauses.option, func(_ *world, o *Options) { o.Policy.MaxUnsaved, o.Policy.Window = 10, time.Hour })
	reached, open := w.gate(providers.MethodWrite)
	w.do("put a 123456789012") // due, and not too much
	<-reached
	_, openToo := w.gate(providers.MethodWrite)
	closed := async(func() { w.do("put b 123456789012") })
	w.until(func() bool { return w.waiting() == 1 })
	assert.False(t, hasEnded(closed), "close did not wait")
	open()
	<-closed
	openToo()
	w.upload()
	w.p.Switches().Cut(false)
	w.do("put a xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "put b xxxxxxxxxxxxxxxxxxxxxxx")
	w.p.Switches().Connect()
	close(pauses.ends)
	w.uploadSame()
}

// A rename that fails for now does not hold content up, but the close that
// brought it.
func TestCloseWaitsForNamesThatRest(t *testing.T) {
	pauses := newManual()
	w := newWorld(t, holding("a", "A"), pauses.option)
	w.list("")
	w.faults.Queue(providers.MethodMove, providertest.Fault{Before: providers.ErrUnavailable})
	w.do("mv a c")
	w.until(func() bool { return w.v.Status().Retrying == 1 })
	closed := async(func() { w.do("put n new") })
	w.until(func() bool { return slices.Contains(listBackend(w.p), "n: new") && w.calm() })
	assert.False(t, hasEnded(closed), "close returned before the rename had arrived")
	close(pauses.ends)
	<-closed
	w.same()
}

// A directory takes a place over while the outcome of a rename out of it is
// open.
func TestTakingOverAPlaceWithAnOpenRename(t *testing.T) {
	pauses := newManual()
	w := newWorld(t, holding("d/x", "X"), background, pauses.option)
	w.list("d")
	w.faults.Queue(providers.MethodMove, providertest.Fault{After: providers.ErrUnavailable})
	w.do("mv d/x q")
	w.until(func() bool { return w.v.Status().Retrying == 1 })
	w.do("rmdir d", "mkdir d", "put d/n new")
	w.untilLocked(func(locked *View) bool {
		rec := locked.Record(table.Link{Dir: table.Root, Name: "d"})
		return rec.Remote != nil && rec.Remote.Ino == rec.Ino
	})
	close(pauses.ends)
	w.uploadSame()
	w.noProblems()
}

// The backend never loses the last copy of what lives on, although a deletion
// of another copy was not answered.
func TestLastCopyAtTheBackend(t *testing.T) {
	for name, script := range map[string][]string{
		"a new name":  {"mv f h", "rm g"},
		"another one": {"mv f h", "rm g", "put g new"},
	} {
		t.Run(name, func(t *testing.T) {
			pauses := newManual()
			w := newWorld(t, over(stores["copy"]), holding("f", "content"), unwaited, pauses.option)
			w.do("ln f g")
			w.upload()
			w.backend("f: content", "g: content")
			w.do(script...)
			w.faults.Queue(providers.MethodDelete, providertest.Fault{After: providers.ErrUnavailable})
			w.faults.Queue(providers.MethodCopy, providertest.Fault{Before: providers.ErrUnavailable})
			done := async(func() { w.upload() })
			w.until(func() bool { return w.v.Status().Retrying == 2 && w.calm() })
			assert.Contains(t, strings.Join(listBackend(w.p), ", "), ": content", "the backend")
			close(pauses.ends)
			<-done
			w.same()
		})
	}
}

// A pull while nobody knows whether a set was committed finds nothing new in
// what the set did.
func TestPullWhileASetIsOpen(t *testing.T) {
	pauses := newManual()
	w := newWorld(t, holding(origin...), background, inSets, pauses.option)
	w.local()
	w.faults.Queue(providers.MethodCommit, providertest.Fault{After: providers.ErrUnavailable})
	w.do("mv a c")
	w.until(func() bool { return w.v.Status().LastError != "" })
	w.do("append c more", "mv d e", "rm e/x")
	r, err := w.v.Pull(context.Background(), PullOptions{})
	assert.True(t, err == nil && len(r.Conflicts) == 0, "pull", r, err)
	close(pauses.ends)
	w.uploadSame()
	w.noProblems()
}

// A directory is removed while nobody knows whether the backend has it, and what
// was in it: if it has, all of that is removed there too.
func TestDirectoryRemovedWhileItIsOpen(t *testing.T) {
	for _, sets := range []bool{false, true} {
		for _, happened := range []bool{false, true} {
			for _, kill := range []bool{false, true} {
				t.Run(fmt.Sprint("sets ", sets, ", happened ", happened, ", kill ", kill), func(t *testing.T) {
					pauses := newManual()
					w := newWorld(t, holding(origin...), background, func(_ *world, o *Options) { o.Policy.Atomic, o.pause = sets, pauses.pause })
					w.local()
					fault := providertest.Fault{Before: providers.ErrUnavailable}
					if happened {
						fault = providertest.Fault{After: providers.ErrUnavailable}
					}
					w.do("mkdir d/n")
					method := providers.MethodCommit
					if !sets {
						w.until(w.calm)
						method = providers.MethodWrite
					}
					w.faults.Queue(method, fault)
					w.do("mkdir d/n/m", "put d/n/m/f one", "put d/n/g two")
					w.until(func() bool { return w.v.Status().LastError != "" })
					w.do("rm d/n/m/f", "rmdir d/n/m", "rm d/n/g", "rmdir d/n")
					if kill {
						w.o.pause = atOnce
						w.killed()
					}
					close(pauses.ends)
					w.uploadSame()
					w.noProblems()
					w.forgetAll()
					w.noOrphans()
				})
			}
		}
	}
}

// between is storage that takes the content of a set one by one, and has
// something done after the first.
type between struct {
	providers.Committer
	providers.Provider
	do func()
}

func (b *between) Commit(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	err := takeContent(set, func() {
		if do := b.do; do != nil {
			b.do = nil
			do()
		}
	})
	if err != nil {
		return providers.CommitResult{}, err
	}
	return b.Committer.Commit(ctx, set)
}

// takeContent reads the content of a set, as a service does that gets it with
// the request; after is called for each.
func takeContent(set providers.ChangeSet, after func()) error {
	for i := range set.Changes {
		body := &set.Changes[i].Body
		if body.Reader == nil {
			continue
		}
		content, err := io.ReadAll(body.Reader)
		if err != nil {
			return err
		}
		*body = providers.String(string(content))
		after()
	}
	return nil
}

// The names of one file may get different content in one set, when it is written
// while that is on its way: after a kill it is not taken as unchanged because
// one of them has the last of it.
func TestLinksAreSentWhileOneIsWritten(t *testing.T) {
	for _, names := range [][2]string{{"f", "d/g"}, {"d/g", "f"}} {
		var b *between
		w := newWorld(t, holding(origin...), background, func(w *world, o *Options) {
			o.Policy.Atomic = true
			w.wrap = func(p providers.Provider) providers.Provider {
				c, _ := providers.As[providers.Committer](p)
				b = &between{Provider: p, Committer: c}
				return b
			}
		})
		w.local()
		w.until(w.calm)
		locked := w.v.lock()
		w.v.sets.Begin(locked.View) // by us
		locked.unlock()
		w.do("put "+names[0]+" one", "ln "+names[0]+" "+names[1])
		locked = w.v.lock()
		due := w.v.pending.Newest(locked.View)
		locked.unlock()
		b.do = func() { w.write(w.open("f", syscall.O_RDWR), "two", 0) }
		report := assert.Of(w.v.sets.Send(w.Context(), nil, due)).OK(w)
		assert.Must(t, report.Changes == 2, "sent:", report)
		w.killed()
		w.uploadSame()
		w.noProblems()
		assert.Equal(t, w.get("f"), "two")
	}
}

// delayed is storage that the first set reaches only when it is let go, whatever
// became of its sender.
type delayed struct {
	providers.Committer
	providers.Provider
	late func(providers.Committer) error // nil until there is one
}

func (d *delayed) Commit(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	if d.late != nil {
		return d.Committer.Commit(ctx, set)
	}
	if err := takeContent(set, func() {}); err != nil {
		return providers.CommitResult{}, err
	}
	d.late = func(c providers.Committer) error {
		_, err := c.Commit(context.Background(), set)
		return err
	}
	return providers.CommitResult{}, providers.ErrUnavailable
}

// A set that arrives when its sender has asked what became of it, and been told
// that nothing did, is not committed any more: not even where nothing is in its
// way. Else what was made and removed since would be there again.
func TestSetComesLate(t *testing.T) {
	var d *delayed
	var storage providers.Committer // as the last start has it
	pauses := newManual()
	w := newWorld(t, holding(origin...), background, func(w *world, o *Options) {
		o.Policy.Atomic, o.pause = true, pauses.pause
		w.wrap = func(p providers.Provider) providers.Provider {
			storage, _ = providers.As[providers.Committer](p)
			if d != nil {
				return p
			}
			d = &delayed{Provider: p, Committer: storage}
			return d
		}
	})
	w.local()
	w.do("mkdir n", "put n/f one", "append a more")
	w.until(func() bool { return w.v.Status().LastError != "" })
	w.do("rm n/f", "rmdir n")
	w.o.pause = atOnce
	w.killed()
	w.upload()
	assert.Is(t, d.late(storage), providers.ErrConflict, "the late set")
	w.uploadSame()
	w.noProblems()
}

// What a set left out because it was being written goes with the next, if it
// was closed before that set was over or after.
func TestClosedWhileASetIsUnderWay(t *testing.T) {
	for _, c := range []struct {
		name, content string
		waits, over   bool
	}{
		{"close waits", "x", true, false},
		{"nobody waits", "x", false, false},
		{"nobody waits, afterwards", "x", false, true},
		{"without content", "", false, false},
		{"without content, afterwards", "", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, func(_ *world, o *Options) { o.Policy.Atomic, o.Policy.NoWait = true, !c.waits })
			w.until(w.calm)
			locked := w.v.lock()
			w.v.sets.Begin(locked.View) // no other set begins
			locked.unlock()
			f := w.create("f")
			if c.content != "" {
				w.write(f, c.content, 0)
			}
			locked = w.v.lock()
			due := w.v.pending.Due(locked.View)
			w.v.sets.Begin(locked.View)
			locked.unlock()
			report := assert.Of(w.v.sets.Send(w.Context(), nil, due)).OK(w)
			assert.Must(t, report.Changes <= 0, "sent:", report)
			if c.over {
				w.v.sets.End(nil, report, nil)
				w.until(w.calm)
			}
			closed := async(func() {
				assert.Is(t, w.shut(f), nil, "close")
			})
			w.until(func() bool { return hasEnded(closed) || c.waits && w.waiting() == 1 })
			if !c.over {
				w.v.sets.End(nil, report, nil)
			}
			<-closed
			w.until(func() bool { return w.v.Status().Queued == 0 })
			w.backend("f: " + c.content)
		})
	}
}

// What was begun under one policy is ended under another.
func TestPolicyOfSetsChanges(t *testing.T) {
	for _, sets := range []bool{false, true} {
		method := providers.MethodMove
		if sets {
			method = providers.MethodCommit
		}
		w := newWorld(t, holding(origin...), background, func(_ *world, o *Options) { o.Policy.Atomic, o.pause = sets, newManual().pause })
		w.local()
		w.faults.Queue(method, providertest.Fault{After: providers.ErrUnavailable})
		w.do("mv d e")
		w.until(func() bool { return w.v.Status().LastError != "" })
		w.o.Policy.Atomic, w.o.pause = !sets, atOnce
		w.killed()
		w.do("append e/x more", "rm e/y")
		w.uploadSame()
		w.noProblems()
	}
}

// readsZ reads a file that has a "Z".
func (w *world) readsZ(x fs.Ino) {
	o, err := w.v.Open(me, x, syscall.O_RDONLY)
	if assert.Is(w, err, nil, "open"); err == nil {
		assert.Equal(w, w.read(o), "Z", "read")
		o.File.Release()
	}
}

// Content is read while it is being renamed at the backend, and while nobody
// knows whether it was.
func TestReadingWhatIsBeingRenamed(t *testing.T) {
	for name, c := range map[string]struct {
		method providers.Method
		script string
		sets   bool
	}{
		"file":      {providers.MethodMove, "mv d/s/z q", false},
		"directory": {providers.MethodMove, "mv d q", false},
		"set":       {providers.MethodCommit, "mv d q", true},
	} {
		t.Run(name, func(t *testing.T) {
			pauses := newManual()
			w := newWorld(t, holding(origin...), background, func(_ *world, o *Options) { o.pause, o.Policy.Atomic = pauses.pause, c.sets })
			w.list("d/s")
			x := w.walk("d/s/z")
			w.faults.Queue(c.method, providertest.Fault{After: providers.ErrUnavailable})
			w.do(c.script)
			w.until(func() bool { return w.v.Status().LastError != "" })
			read := async(func() { w.readsZ(x) })
			w.until(func() bool { return w.waiting() == 1 || hasEnded(read) })
			close(pauses.ends)
			<-read
			w.uploadSame()
			w.noProblems()
		})
	}
}

// Content is read from a place that something else has taken by the time the
// backend answers.
func TestReadingWhatWasRenamed(t *testing.T) {
	for _, script := range [][]string{
		{"mv d/s/z q"},
		{"mv d/s/z q", "mkdir d/s/z"},
		{"mv d/s/z q", "rmdir d/s", "put d/s file"},
		{"mv d/s/z q", "put d/s/z other"},
	} {
		w := newWorld(t, holding("d/s/z", "Z", "d/x", "X"), onlyAsked)
		w.list("d/s")
		x := w.walk("d/s/z")
		reached, open := w.gate(providers.MethodRead)
		read := async(func() { w.readsZ(x) })
		<-reached
		w.do(script...)
		w.upload()
		open()
		<-read
		w.same()
		w.noProblems()
	}
}

// waiting is how many wait for something to arrive.
func (w *world) waiting() int {
	locked := w.v.lock()
	defer locked.unlock()
	return w.v.pending.Waiting(locked.View)
}

// hasEnded reports whether what async began has ended.
func hasEnded(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// A set takes in what those in it depend on, although it began to differ later.
func TestSetIsComplete(t *testing.T) {
	w := newWorld(t, repository, onlyAsked)
	w.do("mkdir p", "put p/x 1")
	locked := w.v.lock()
	due := w.v.pending.Newest(locked.View)
	locked.unlock()
	w.do("mv p q", "put y 2")
	m, end := committing{uploading{w.v}}.take()
	defer w.v.kept.End()
	defer end()
	m.Guard, m.Found, m.Progress = &w.v.o.Guard, commit.Findings{}, func(int, int) {}
	s := assert.Of(commit.Collect(t.Context(), m, due)).OK(t)
	var got []string
	for _, p := range s.Order {
		got = append(got, p.After)
	}
	assert.Slice(t, got, []string{"q/x", "q"}, "the set")
}

// What a commit makes of a conflict is a part of the commit.
func TestCommitSendsConflictCopies(t *testing.T) {
	for _, sets := range []bool{false, true} {
		w := newWorld(t, holding("a", "1", "b", "1", "c", "1"), onlyAsked, func(_ *world, o *Options) { o.Policy.Atomic = sets })
		w.do("put a ours", "put b ours", "put c ours", "put n new")
		w.tamper("a", "theirs")
		w.tamper("b", "theirs")
		w.upload()
		copied := ".conflict-" + short("ours")
		w.backend("a: theirs", "a"+copied+": ours", "b: theirs", "b"+copied+": ours", "c: ours", "n: new")
		w.same()
	}
}

// What stands aside in an exchange is seen by nobody, another working copy of the
// same storage included; it is counted as hidden.
func TestParkedIsHidden(t *testing.T) {
	w := newWorld(t, background, over(memory.Options{Without: asKeys}), holding("a", "1", "b", "2"))
	w.walk("a")
	reached, open := w.gate(providers.MethodDelete)
	w.ok(w.exchange("a", "b"))
	<-reached
	other := newWorld(t, func(o *world, _ *Options) { o.p = w.p })
	assert.Equal(t, strings.Join(other.local(), ", "), "a: 2, b: 1", "the other")
	assert.Equal(t, other.v.Status().Hidden, 1, "hidden")
	open()
	w.upload()
	w.backend("a: 2", "b: 1")
}

// A directory that was made and removed again before the answer came, and that
// others have put something into: nobody here has it any more, and so it is theirs.
func TestRemovedBeforeTheAnswer(t *testing.T) {
	pauses := newManual()
	w := newWorld(t, background, pauses.option)
	w.list("")
	w.faults.Queue(providers.MethodMkdir, providertest.Fault{After: providers.ErrUnavailable})
	e := assert.Of(w.v.Mkdir(me, fs.RootIno, "d", 0o777)).OK(w)
	w.until(func() bool { return w.v.Status().LastError != "" })
	w.ok(w.v.Rmdir(me, fs.RootIno, "d"))
	w.v.Forget(e.Ino, 1)
	w.tamper("d/x", "theirs")
	close(pauses.ends)
	w.upload()
	w.pull()
	assert.Equal(t, w.get("d/x"), "theirs")
}

// A directory that is renamed before it is known whether it was made is made anew under its
// new name. When its old name is found to have been made too, that one is empty, and goes.
func TestRenamedBeforeTheAnswer(t *testing.T) {
	stores := map[string]providers.Ability{"rename": 0, "flat": providers.AbilityMove | providers.AbilityCopy}
	for name, without := range stores {
		t.Run(name, func(t *testing.T) {
			pauses := newManual()
			w := newWorld(t, background, over(memory.Options{Without: providers.Capabilities{Abilities: without}}), pauses.option)
			w.list("")
			w.faults.Queue(providers.MethodMkdir, providertest.Fault{After: providers.ErrUnavailable})
			w.do("mkdir d")
			w.until(func() bool { return w.v.Status().LastError != "" })
			w.do("mv d e", "put e/f 1")
			w.until(func() bool {
				_, err := w.p.Stat(t.Context(), at("e/f"))
				return err == nil
			})
			close(pauses.ends)
			w.uploadSame()
			w.backend("e/", "e/f: 1")
		})
	}
}

// lateWrite is storage that the first write reaches just before the next change,
// when its sender has been told that it did not come.
type lateWrite struct {
	providers.Provider
	late func() error // nil until there is one
	once sync.Once
}

func (d *lateWrite) Write(ctx context.Context, at providers.Locator, body providers.Body, opts providers.WriteOptions) (providers.Info, error) {
	if d.late == nil {
		var content bytes.Buffer
		if _, err := body.CopyTo(ctx, &content); err != nil {
			return providers.Info{}, err
		}
		d.late = func() error {
			_, err := d.Provider.Write(context.Background(), at, providers.String(content.String()), opts)
			return err
		}
		return providers.Info{}, providers.ErrUnavailable
	}
	if opts.If != providers.IfVersion(upload.Impossible) { // which only asks
		if err := d.arrive(); err != nil {
			return providers.Info{}, err
		}
	}
	return d.Provider.Write(ctx, at, body, opts)
}

func (d *lateWrite) Delete(ctx context.Context, at providers.Locator, opts providers.DeleteOptions) error {
	if err := d.arrive(); err != nil {
		return err
	}
	return d.Provider.Delete(ctx, at, opts)
}

func (d *lateWrite) arrive() (err error) {
	d.once.Do(func() { err = d.late() })
	return err
}

// Content that comes late is still ours: newer content of ours takes its place, a
// deletion goes on, and nothing is in conflict.
func TestWriteComesLate(t *testing.T) {
	for _, c := range []struct {
		name    string
		without providers.Capabilities
		kill    bool
		then    string
		want    []string
	}{
		{"told by its operation", providers.Capabilities{}, false, "put f two", []string{"f: two"}},
		{"told by its content", providers.Capabilities{OperationIDs: true}, false, "put f two", []string{"f: two"}},
		{"after a kill", providers.Capabilities{}, true, "put f two", []string{"f: two"}},
		{"under a name that was removed", providers.Capabilities{}, false, "rm f", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			pauses, d := newManual(), &lateWrite{}
			w := newWorld(t, background, func(w *world, o *Options) {
				w.p, o.pause = memory.New(memory.Options{Without: c.without}), pauses.pause
				w.wrap = func(p providers.Provider) providers.Provider {
					d.Provider = p
					return d
				}
			}, holding("f", "0"))
			w.get("f")
			w.ok(w.put("f", "one"))
			w.until(func() bool { return w.v.Status().LastError != "" })
			w.do(c.then)
			if c.kill {
				w.killed()
			}
			close(pauses.ends)
			w.upload()
			w.backend(c.want...)
			w.noProblems()
		})
	}
}

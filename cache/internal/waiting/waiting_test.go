package waiting_test

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

func newWaits(t *testing.T) *waiting.Waits {
	return &waiting.Waits{Context: t.Context(), Pause: waiting.Sleep, Log: slog.New(slog.DiscardHandler)}
}

// A request ends when nothing moves, with its copy, with the context that it is for, or when
// it is closed, and says which it was.
func TestEnds(t *testing.T) {
	killed := errors.New("killed")
	for name, c := range map[string]struct {
		ends func(w *waiting.Context, stop func())
		want error
	}{
		"nothing moves": {func(*waiting.Context, func()) { time.Sleep(time.Minute) }, waiting.ErrPatience},
		"something moves, then nothing": {func(w *waiting.Context, _ func()) {
			for range 3 {
				time.Sleep(40 * time.Second)
				w.Moved()
			}
			if w.Err() == nil {
				time.Sleep(time.Minute)
			}
		}, waiting.ErrPatience},
		"its context": {func(_ *waiting.Context, stop func()) { stop() }, context.Canceled},
		"a cause":     {func(w *waiting.Context, _ func()) { w.End(killed) }, killed},
		"closed":      {func(w *waiting.Context, _ func()) { w.Close() }, context.Canceled},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			w := newWaits(t).With(ctx, time.Minute)
			defer w.Close()
			assert.OK(t, w.Cause(nil), name)
			began := time.Now()
			c.ends(w, stop)
			synctest.Wait()
			assert.Is(t, w.Cause(w.Err()), c.want, name)
			assert.Is(t, w.Cause(fs.ErrStale), c.want, name, "with another error")
			assert.Is(t, w.Cause(fs.ErrStale), fs.ErrStale, name, "which is told too")
			if name == "something moves, then nothing" {
				assert.Equal(t, time.Since(began), 3*time.Minute, name, "it ended after")
			}
		})
	}
}

// What may be over soon is tried again, with pauses that grow; all else fails at once.
func TestRetry(t *testing.T) {
	for _, c := range []struct {
		err    error
		passes bool
		tries  int
	}{
		{nil, false, 1},
		{providers.ErrUnavailable, true, 3},
		{providers.ErrConflict, false, 1},
		{providers.ErrQuota, false, 1},
		{fs.ErrUnavailable, true, 1},
		{providers.ErrUnauthenticated, true, 1},
		{waiting.ErrPatience, true, 1},
	} {
		var pauses []time.Duration
		waits := newWaits(t)
		waits.Pause = func(_ context.Context, d time.Duration) error {
			if pauses = append(pauses, d); len(pauses) == 3 {
				return context.Canceled
			}
			return nil
		}
		tries := 0
		assert.Is(t, waits.Retry(t.Context(), func(context.Context) error { tries++; return c.err }), c.err, c.err)
		assert.Equal(t, tries, c.tries, c.err, "tries")
		assert.Equal(t, c.err != nil && waiting.Passes(c.err), c.passes, c.err, "passes")
		for i, d := range pauses {
			most := upload.FirstPause << i
			assert.True(t, d >= most/2 && d < most, c.err, "pause", i, "is", d)
		}
	}
}

// sender is a working copy that sends nothing by itself.
type sender struct {
	jobs  upload.Jobs
	moves map[table.Ino]bool
}

func (s *sender) Jobs() *upload.Jobs                            { return &s.jobs }
func (s *sender) IsPlaceKnown(_ *tree.View, ino table.Ino) bool { return !s.moves[ino] }

// queued is what it has in its queue.
type queued struct{ *sender }

func (q queued) IsPlaceKnown(v *tree.View, ino table.Ino) bool        { return !q.moves[ino] }
func (queued) Failure(*tree.View, table.Link) (err error, final bool) { return nil, false }
func (queued) IsSending(*tree.View, table.Link) bool                  { return true }
func (queued) IsAsked(*tree.View) bool                                { return false }
func (queued) IsStopped(*tree.View) bool                              { return false }
func (queued) Writing(*tree.View, table.Ino) (open, touched bool)     { return false, false }
func (queued) All(*tree.View, func(table.Ino))                        {}

const file, dir = table.Ino(10), table.Ino(11)

var dirName = table.Link{Dir: table.Root, Name: "d"}

// newSent has a new file and a new directory that the remote does not have.
func newSent(t *testing.T, o waiting.SentOptions, most int64) (*waiting.Sent, *tree.Tree, *pending.Queue, *sender) {
	t.Helper()
	tab := assert.Of(table.Open("/waiting", table.Options{FS: vfs.NewMem(), Strict: true})).OK(t)
	t.Cleanup(func() { tab.Close() })
	s := &sender{jobs: upload.NewJobs(), moves: map[table.Ino]bool{}}
	o.Waits, o.Tree, o.Sender = newWaits(t), tree.New(tab, tree.Options{Now: time.Now}), s
	o.Queue = pending.New(pending.Options{Now: time.Now, After: func(*tree.View, time.Duration, func(*tree.View)) {}, OnChange: true, Window: time.Hour,
		MaxUnsaved: most, MaxOpen: time.Hour, Writers: queued{s}, Sender: queued{s}})
	o.Failure = func() string { return "" }
	o.Queue.Resume(o.Tree.Lock(), nil)
	o.Tree.Unlock()
	l := table.Link{Dir: table.Root, Name: "f"}
	assert.OK(t, o.Tree.Update(func(tx *tree.Tx) error {
		tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true})
		tx.Put(file, &table.Inode{Mode: syscall.S_IFREG, ContentVersion: 1, Size: 100, State: table.Whole})
		tx.Put(dir, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true})
		tx.SetLocal(l, file, false, false)
		tx.SetLocal(dirName, dir, false, false)
		return nil
	}, nil))
	v := o.Tree.Lock()
	o.Queue.Committed(v, false, []table.Link{l, dirName}, nil)
	o.Tree.Unlock()
	return waiting.NewSent(o), o.Tree, o.Queue, s
}

// Close and fsync wait for the remote, unless the policy lets them return: then only when too
// much is unsaved. They give up when nothing moves, which is an error where they promise that
// the remote has it.
func TestSent(t *testing.T) {
	for name, c := range map[string]struct {
		o    waiting.SentOptions
		most int64 // that may be unsaved
		want error
		took time.Duration
	}{
		"waits":                {waiting.SentOptions{}, 1000, waiting.ErrPatience, time.Minute},
		"read-only":            {waiting.SentOptions{ReadOnly: true}, 1000, nil, 0},
		"without waiting":      {waiting.SentOptions{NoWait: true}, 1000, nil, 0},
		"too much to not wait": {waiting.SentOptions{NoWait: true}, 10, nil, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.o.Patience = time.Minute
			s, tr, q, _ := newSent(t, c.o, c.most)
			began := time.Now()
			assert.Is(t, s.Content(nil, file), c.want, name)
			assert.Equal(t, time.Since(began), c.took, name, "it took")
			assert.Equal(t, waiters(tr, q), 0, name, "left waiting")
		})
	}
}

// waiters is how many wait.
func waiters(tr *tree.Tree, q *pending.Queue) int {
	defer tr.Unlock()
	return q.Waiting(tr.Lock())
}

// A name that is held back is told as the reason, and what is moved is waited for until its
// place is known, or whoever asks goes away.
func TestNamesAndPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tr, q, sends := newSent(t, waiting.SentOptions{Patience: time.Minute}, 1000)
		v := tr.Lock()
		sends.jobs.Hold(v, dirName, providers.ErrConflict, time.Now(), false)
		tr.Unlock()
		assert.Is(t, s.Names(nil), fs.ErrConflict, "names")
		assert.False(t, s.Place(t.Context(), file), "waited for a place that is known")
		sends.moves[file] = true
		ctx, stop := context.WithCancel(t.Context())
		waited := make(chan bool, 1)
		go func() { waited <- s.Place(ctx, file) }()
		synctest.Wait()
		assert.Equal(t, waiters(tr, q), 1, "waiting")
		stop()
		assert.True(t, <-waited, "did not wait")
		assert.Equal(t, waiters(tr, q), 0, "left waiting")
		assert.Is(t, s.Late(context.DeadlineExceeded), context.DeadlineExceeded)
		assert.Is(t, s.Late(fs.ErrStale), fs.ErrStale)
	})
}

package listing

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/budget"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/local"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// A scene is a tree whose names are listed from a store, with a TTL of a second, at a time that
// a test moves.
type scene struct {
	*testing.T
	*Listings
	store  *memory.Provider
	faults *providertest.Faults
	now    atomic.Int64
	mu     sync.Mutex
	lists  []string // what the store was asked to list; guarded by mu
	late   atomic.Pointer[lateAnswer]
	wait   time.Duration // that a look has at least for an answer which is on its way
	full   bool          // the disk takes no change
	room   *budget.Budget
}

var someone = &fs.Op{}

// newScene makes one of which nothing is known. wrap, unless nil, stands before the store.
func newScene(t *testing.T, o memory.Options, wrap func(providers.Provider) providers.Provider) *scene {
	t.Helper()
	s := &scene{T: t, store: memory.New(o), faults: providertest.NewFaults(t), room: budget.New(1 << 30), wait: assert.Hangs}
	s.now.Store(time.Now().UnixNano())
	now, log := func() time.Time { return time.Unix(0, s.now.Load()) }, slog.New(slog.DiscardHandler)
	var p providers.Provider = s.store
	if wrap != nil {
		p = wrap(p)
	}
	p = providers.Wrap(s.faults.Wrap(p), providers.WrapOptions{Around: func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
		if c.Method == providers.MethodList {
			s.mu.Lock()
			s.lists = append(s.lists, c.Locator.String())
			s.mu.Unlock()
		}
		err := next(ctx)
		if late := s.late.Load(); late != nil && late.method == c.Method && s.late.CompareAndSwap(late, nil) {
			close(late.reached)
			<-late.gate
		}
		return err
	}})
	tab := assert.Of(table.Open("/listing", table.Options{FS: vfs.NewMem(), Strict: true})).OK(t)
	ctx, end := context.WithCancel(context.Background())
	var work sync.WaitGroup
	t.Cleanup(func() {
		end()
		work.Wait()
		assert.OK(t, tab.Close())
	})
	tr := tree.New(tab, tree.Options{Now: now, Pins: files.NewOpenSet(), Log: log})
	keeper := history.New(history.Options{Tree: tr, Now: now, Context: ctx, Log: log, Revision: func(*tree.View) (providers.Revision, bool) { return "", false }})
	side := &local.Side{Border: &rules.Border{Symlinks: true, Ignores: rules.New(""), Wake: func() {}}, Attributes: attrs.Mapping{Listed: true}, Now: now, Log: log,
		Notifier: func() fs.Notifier { return fs.DiscardNotifier{} }}
	update := func(do func(*tree.Tx) error) error {
		return tr.Update(func(tx *tree.Tx) error {
			if s.full {
				return table.ErrFull
			}
			return do(tx)
		}, nil)
	}
	waits := &waiting.Waits{Context: ctx, Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }, Log: log}
	jobs := upload.NewJobs()
	halts := &massdelete.Guard{}
	merger := merge.NewMerger(merge.Options{
		Tree: tr, Side: side, Open: files.NewOpenSet(), History: keeper, Provider: p, Capabilities: p.Capabilities(), Jobs: &jobs, Looks: true, Context: ctx,
		Executor: upload.NewExecutor(upload.ExecutorOptions{Provider: p, Tree: tr, Log: log}), DirAttrs: func() bool { return false },
		Volume: merge.Volume{Report: func(string, string, error) {}, Retry: waits.Retry, Update: func(do func(*local.Tx, upload.Tx) error) error {
			return update(func(tx *tree.Tx) error {
				return do(&local.Tx{Side: side, Tx: tx, Notes: keeper.In(tx, &files.Caller{})}, upload.Tx{Tx: tx})
			})
		}},
		Guard: merge.Guard{Halts: func(*tree.View) *massdelete.Guard { return halts }, Check: func(*tree.View, string, int) error { return nil }, PullWhole: func(*tree.View) {}, IsPulling: func(*tree.View) bool { return false }},
		Heard: func(*tree.View, table.Link, string) bool { return false },
	})
	s.Listings = New(Options{Tree: tr, Update: update, Provider: p, Capabilities: p.Capabilities(), Head: revision.NewHeadLock(), Merger: func() Merger { return merger },
		Belief: &Belief{Now: now, TTL: time.Second, Patience: time.Minute, Log: log}, Border: side.Border, Attributes: side.Attributes, SentBack: &files.SentBack{},
		Waits: waits, Patience: time.Minute, Wait: func(d time.Duration) time.Duration { return max(d, s.wait) }, Room: s.room, Go: func(f func()) { work.Go(f) },
		IsClosing: func(*tree.View) bool { return ctx.Err() != nil }, Back: func(*tree.View) {},
		StandsAside: func(*tree.View, table.Link, table.Name) bool { return false }, Halt: func(*tree.View, string) error { return massdelete.ErrHalted }})
	s.update(func(tx *tree.Tx) { tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR}) })
	return s
}

func (s *scene) update(do func(*tree.Tx)) {
	s.Helper()
	assert.OK(s, s.o.Tree.Update(func(tx *tree.Tx) error { do(tx); return nil }, nil))
}

// later is so much later.
func (s *scene) later(d time.Duration) { s.now.Add(int64(d)) }

func at(path string) providers.Locator { return providers.MustLocator(path) }

// tamper has another writer put files there, each "path" or "path=content", and gone takes
// some away.
func (s *scene) tamper(all ...string) {
	s.Helper()
	for _, one := range all {
		path, text, _ := strings.Cut(one, "=")
		assert.OK(s, s.store.Tamper(at(path), []byte("x"+text)))
	}
}

func (s *scene) gone(paths ...string) {
	s.Helper()
	for _, path := range paths {
		assert.OK(s, s.store.Tamper(at(path), nil))
	}
}

// known gives the inode of a path without a look, 0 when there is none that is known.
func (s *scene) known(path string) table.Ino {
	v := s.o.Tree.Lock()
	defer s.o.Tree.Unlock()
	return s.knownTo(v, path)
}

// knownTo is known for who has the lock.
func (s *scene) knownTo(v *tree.View, path string) table.Ino {
	ino := table.Root
	for _, name := range at(path).Parts() {
		ino = v.Record(table.Link{Dir: ino, Name: name}).Ino
	}
	return ino
}

// pull takes over what differs in all that is known.
func (s *scene) pull() revision.PullReport {
	s.Helper()
	w := s.o.Waits.For(nil, time.Minute)
	defer w.Close()
	c := assert.Of(s.CompareAll(w, s.o.Provider)).OK(s)
	defer c.End()
	return assert.Of(c.Apply(revision.NoHead(), "", revision.Gone)).OK(s)
}

// look looks at a directory that is known, and at nothing else.
func (s *scene) look(path string) {
	s.Helper()
	assert.OK(s, s.Load(someone, s.known(path)))
}

// walk looks a path up, one directory after the other.
func (s *scene) walk(path string) table.Ino {
	s.Helper()
	dir := ""
	for _, name := range at(path).Parts() {
		s.look(dir)
		dir = strings.TrimPrefix(dir+"/"+name, "/")
	}
	return s.known(path)
}

// names are those that are known in a directory.
func (s *scene) names(path string) (names []string) {
	dir := s.known(path)
	v := s.o.Tree.Lock()
	defer s.o.Tree.Unlock()
	v.Names(dir, "", func(name string, rec table.Name) bool {
		if rec.Ino != 0 {
			names = append(names, name)
		}
		return true
	})
	return names
}

// asked is how often the store was asked for a listing since the last time.
func (s *scene) asked() int { return len(s.listed()) }

// listed is what that was.
func (s *scene) listed() (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths, s.lists = s.lists, nil
	return paths
}

// answerLate has the next call of a method done at once, and answered when gate is closed.
// reached is closed when it is done.
func (s *scene) answerLate(m providers.Method) (gate, reached chan struct{}) {
	gate, reached = make(chan struct{}), make(chan struct{})
	s.late.Store(&lateAnswer{m, gate, reached})
	return gate, reached
}

type lateAnswer struct {
	method        providers.Method
	gate, reached chan struct{}
}

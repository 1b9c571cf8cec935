package files

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// shelf is a directory of small files that only the remote has.
type shelf struct {
	*Prefetch
	inos []table.Ino

	mu      sync.Mutex
	fetched map[table.Ino]int
	fails   error
	closed  bool
	open    *OpenSet
}

func (s *shelf) MayPrefetch(*tree.View) bool { return !s.closed }
func (s *shelf) Unread(table.Ino)            {}

func (s *shelf) FetchUnasked(_ context.Context, x table.Ino) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched[x]++
	return s.fails
}

// newShelf makes a shelf of a remote that answers a read in the time given.
func newShelf(t *testing.T, files int, took time.Duration) *shelf {
	t.Helper()
	tab := assert.Of(table.Open("/files", table.Options{FS: vfs.NewMem(), Strict: true})).OK(t)
	t.Cleanup(func() { tab.Close() })
	tr := tree.New(tab, tree.Options{})
	s := &shelf{fetched: map[table.Ino]int{}, open: NewOpenSet()}
	assert.OK(t, tr.Update(func(tx *tree.Tx) error {
		tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true})
		for i := range files {
			x := tx.Alloc()
			tx.Put(x, &table.Inode{Mode: syscall.S_IFREG | 0o644, Size: 10, ContentVersion: 1})
			tx.SetName(table.Link{Dir: table.Root, Name: fmt.Sprintf("f%03d", i)}, table.Name{Ino: x, Remote: &table.Remote{Ino: x, Kind: providers.KindFile, ContentVersion: 1}})
			s.inos = append(s.inos, x)
		}
		return nil
	}, nil))
	s.Prefetch = NewPrefetch(PrefetchOptions{Tree: tr, Open: s.open, Content: s, Context: t.Context(), Go: func(f func()) { go f() },
		Log: slog.New(slog.DiscardHandler), Far: FarAway})
	s.Took(took)
	return s
}

// grow makes all files as large.
func (s *shelf) grow(size int64) {
	_ = s.o.Tree.Update(func(tx *tree.Tx) error {
		for _, x := range s.inos {
			tx.Edit(x).Size = size
		}
		return nil
	}, nil)
}

// opens has a program open files, and gives how many were fetched ahead so far.
func (s *shelf) opens(files ...int) int {
	for _, i := range files {
		s.mu.Lock()
		here := s.fetched[s.inos[i]] > 0
		s.mu.Unlock()
		s.Opened(s.inos[i], here)
		synctest.Wait()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.fetched)
}

// Two opens in order begin it, half of what was fetched has to be opened for more, and
// twice as much then, up to a bound.
func TestPrefetchFollowsTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, 400, FarAway)
		assert.Equal(t, s.opens(0), 0, "files fetched after one open")
		assert.Equal(t, s.opens(1), PrefetchLeast)
		assert.Equal(t, s.opens(2), PrefetchLeast)
		assert.Equal(t, s.opens(3), PrefetchLeast+2*PrefetchLeast-2, "of twice as many two are unopened")
		assert.Equal(t, s.fetched[s.inos[0]]+s.fetched[s.inos[1]], 0, "fetches of what was open")
		most := 0
		for i := 4; i < 400; i++ {
			s.opens(i)
			s.o.Tree.Lock()
			most = max(most, len(s.of))
			s.o.Tree.Unlock()
		}
		assert.Equal(t, most, PrefetchMost, "the most that were ahead")
		assert.Equal(t, len(s.of), 0, "files that count as unread")
	})
}

// What makes it not worth while, or comes in its way, fetches nothing.
func TestNoPrefetch(t *testing.T) {
	for name, c := range map[string]struct {
		took  time.Duration
		with  func(*shelf)
		opens []int
		want  int
	}{
		"a remote that is near":     {FarAway - 1, func(*shelf) {}, []int{0, 1, 2, 3}, 0},
		"the end of the volume":     {FarAway, func(s *shelf) { s.closed = true }, []int{0, 1, 2, 3}, 0},
		"opens out of order":        {FarAway, func(*shelf) {}, []int{60, 40, 20, 0}, 0},
		"what is open":              {FarAway, func(s *shelf) { s.open.all[s.inos[2]] = &OpenInode{} }, []int{0, 1}, PrefetchLeast},
		"a remote that fails":       {FarAway, func(s *shelf) { s.fails = errors.New("refused") }, []int{0, 1, 2}, PrefetchLeast},
		"large files":               {FarAway, func(s *shelf) { s.grow(PrefetchSize + 1) }, []int{0, 1, 2, 3}, 0},
		"neighbours here and there": {FarAway, func(*shelf) {}, []int{0, 1, 20, 21, 40, 41, 60, 61, 80, 81}, PrefetchLeast},
		"a directory that is gone":  {FarAway, func(s *shelf) { s.End(s.o.Tree.Lock(), table.Root); s.o.Tree.Unlock() }, []int{0}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf(t, 100, c.took)
				c.with(s)
				assert.Equal(t, s.opens(c.opens...), c.want, "files fetched")
				assert.False(t, s.open.all[s.inos[2]] != nil && s.fetched[s.inos[2]] > 0, "what was open was fetched")
			})
		})
	}
}

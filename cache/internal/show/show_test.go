package show_test

import (
	"context"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/cache/internal/show"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// history is versions, each with its id as content.
type history struct {
	all     []past.Version
	changes uint64
	asked   int
}

func (h *history) write(n int, path string) {
	h.changes++
	for range n {
		id := strconv.Itoa(len(h.all) + 8)
		h.all = append(h.all, past.Version{ID: id, Path: path, Change: "written", Kept: true, Mode: syscall.S_IFREG | 0o644, Size: int64(len(id)), Time: time.Unix(1e9, 0)})
	}
}

func (h *history) Log(context.Context, past.LogFilter) ([]past.Version, error) {
	h.asked++
	return h.all, nil
}

func (h *history) Content(id string) (io.ReadCloser, int64, error) {
	return io.NopCloser(strings.NewReader(id)), int64(len(id)), nil
}

type shower struct {
	*testing.T
	*show.Shower
	history
	now time.Time
	dir string
}

func newShower(t *testing.T, o show.Options) *shower {
	s := &shower{T: t, now: time.Unix(2e9, 0), dir: t.TempDir()}
	o.Log, o.Changes, o.Dir, o.Now = &s.history, func() uint64 { return s.changes }, s.dir, func() time.Time { return s.now }
	if o.Remote == nil {
		o.Remote = memory.New(memory.Options{})
	}
	s.Shower = show.New(o)
	return s
}

func (s *shower) names(path string) []string {
	s.Helper()
	return assert.Of(s.Show(s.Context(), path)).OK(s).Names
}

// read is what a file has. Nothing of it is left.
func (s *shower) read(path string) string {
	s.Helper()
	e := assert.Of(s.Show(s.Context(), path)).OK(s)
	f := assert.Of(e.Open(s.Context())).OK(s)
	got := assert.Of(io.ReadAll(io.NewSectionReader(f, 0, e.Size+1))).OK(s)
	assert.OK(s, f.Close())
	assert.Equal(s, len(assert.Of(os.ReadDir(s.dir)).OK(s)), 0, "files left")
	return string(got)
}

func (s *shower) none(path string) {
	s.Helper()
	assert.Is(s, assert.ErrOf(s.Show(s.Context(), path)), syscall.ENOENT)
}

// The names of versions sort as the versions came to be, within a second too: an agent goes
// by ls. What has no content is not shown.
func TestVersionsInOrder(t *testing.T) {
	s := newShower(t, show.Options{})
	s.write(5, "d/f")
	s.all = append(s.all, past.Version{ID: "20", Path: "d/gone", Mode: syscall.S_IFREG}, past.Version{ID: "21", Path: "d/dir", Kept: true, Mode: syscall.S_IFDIR})
	assert.Slice(t, s.names(""), []string{"conflicts/", "history/"})
	assert.Slice(t, s.names("history"), []string{"d/"})
	assert.Slice(t, s.names("history/d"), []string{"f/"})
	var got []string
	for _, name := range s.names("history/d/f") {
		got = append(got, s.read("history/d/f/"+name))
	}
	assert.Slice(t, got, []string{"8", "9", "10", "11", "12"})
	s.none("history/d/gone")
	s.none("history/d/f/nothing")
	s.none("other")
}

// What a program has just done is in the listing, but for a long one that was made a moment
// ago; while nothing changes it is not made again.
func TestHistoryIsCurrent(t *testing.T) {
	s := newShower(t, show.Options{})
	shows := func(versions, asked int, why string) {
		t.Helper()
		assert.Equal(t, len(s.names("history/f")), versions, why)
		assert.Equal(t, s.asked, asked, why, "asked")
	}
	s.write(1, "f")
	shows(1, 1, "the first")
	s.now = s.now.Add(time.Hour)
	shows(1, 1, "nothing changed")
	s.write(1000, "f")
	shows(1001, 2, "a change")
	s.write(1, "f")
	shows(1001, 2, "it was long")
	s.now = s.now.Add(time.Second)
	shows(1002, 3, "a second later")
}

// The trees of revisions are beside the history, the last of them in the listing.
func TestRevisions(t *testing.T) {
	remote := memoryrepo.NewRemote(nil)
	for _, text := range []string{"one", "two!"} {
		l := assert.Of(providers.ParseLocator("d/f")).OK(t)
		assert.OK(t, remote.Tamper("main", l, []byte(text)))
	}
	repo := memoryrepo.NewRepository(remote, "", memory.Options{})
	s := newShower(t, show.Options{Remote: repo})
	head := string(assert.Of(repo.Head(t.Context())).OK(t))
	all := s.names("history")
	assert.True(t, len(all) == 2 && slices.Contains(all, head+"/"), all)
	assert.Slice(t, s.names("history/"+head), []string{"d/"})
	assert.Equal(t, s.read("history/"+head+"/d/f"), "two!")
	for _, name := range all {
		if name != head+"/" {
			assert.Equal(t, s.read("history/"+name+"d/f"), "one")
		}
	}
	for _, path := range []string{head + "/d/g", head + "/d/f/g", "none-such/d", head + "/../d"} {
		s.none("history/" + path)
	}
}

// The sides of a conflict are files. One that cannot be read fails as it is opened.
func TestConflicts(t *testing.T) {
	open := func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("our")), nil }
	s := newShower(t, show.Options{Conflicts: func() []show.Conflict {
		return []show.Conflict{{Path: "d/f", Sides: []show.Side{{Name: "ours", Size: 3, Open: open},
			{Name: "theirs", Open: func(context.Context) (io.ReadCloser, error) { return nil, providers.ErrUnavailable }}}}}
	}})
	assert.Slice(t, s.names("conflicts/d/f"), []string{"ours", "theirs"})
	assert.Equal(t, s.read("conflicts/d/f/ours"), "our")
	e := assert.Of(s.Show(t.Context(), "conflicts/d/f/theirs")).OK(t)
	assert.Is(t, assert.ErrOf(e.Open(t.Context())), providers.ErrUnavailable)
	s.none("conflicts/d/g")
}

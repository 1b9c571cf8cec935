package listing

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// answering has a store answer all calls with an error, as long as there is one.
func answering(err *error) func(providers.Provider) providers.Provider {
	return func(p providers.Provider) providers.Provider {
		return providers.Wrap(p, providers.WrapOptions{Around: func(ctx context.Context, _ *providers.Call, next func(context.Context) error) error {
			if *err != nil {
				return *err
			}
			return next(ctx)
		}})
	}
}

// A look asks the remote only for directories that it may have and that are not fresh, and
// what is local is found without it.
func TestLook(t *testing.T) {
	err := error(providers.ErrPermission)
	s := newScene(t, memory.Options{}, answering(&err))
	const dir, file, remote = table.Ino(10), table.Ino(11), table.Ino(12)
	s.update(func(tx *tree.Tx) {
		root := tx.Edit(table.Root)
		root.Loaded, root.Listed = true, s.now.Load()
		tx.Put(dir, &table.Inode{Mode: syscall.S_IFDIR})
		tx.Put(file, &table.Inode{Mode: syscall.S_IFREG})
		tx.Put(remote, &table.Inode{Mode: syscall.S_IFDIR})
		tx.SetLocal(table.Link{Dir: table.Root, Name: "d"}, dir, false, false)
		tx.SetLocal(table.Link{Dir: dir, Name: "f"}, file, false, false)
		r := table.Link{Dir: table.Root, Name: "r"}
		tx.SetLocal(r, remote, false, false)
		tx.SetRemote(r, &table.Remote{Ino: remote, Kind: providers.KindDir})
	})
	for _, c := range []struct {
		dir   table.Ino
		want  error
		asked bool
	}{
		{table.Root, nil, false}, {dir, nil, false}, {file, syscall.ENOTDIR, false}, {99, fs.ErrStale, false}, {remote, providers.ErrPermission, true},
	} {
		assert.Is(t, s.Load(nil, c.dir), c.want, c.dir)
		assert.Equal(t, s.asked() > 0, c.asked, c.dir, "the remote is asked")
	}
	for path, want := range map[string]table.Ino{"": table.Root, "d": dir, "/d/f": file, "d/g": 0, "x": 0, "x/y": 0} {
		_, ino, err := s.Find(t.Context(), path)
		assert.True(t, err == nil && ino == want, path, "leads to", ino, err)
	}
}

// The TTL counts from when a listing begins: what others do while it goes on it may not show.
func TestTTLBeginsWithTheListing(t *testing.T) {
	s := newScene(t, memory.Options{}, nil)
	gate, reached := s.answerLate(providers.MethodList)
	looked := make(chan error)
	go func() { looked <- s.Load(someone, table.Root) }()
	<-reached
	s.later(900 * time.Millisecond)
	close(gate)
	assert.OK(t, <-looked)
	v := s.o.Tree.Lock()
	defer s.o.Tree.Unlock()
	assert.Equal(t, s.o.Belief.KernelTTL(table.Root, v.Inode(table.Root)), 100*time.Millisecond, "the kernel believes it for")
}

// A look that joins a listing which began longer ago than the TTL lists again: others may have
// changed the directory since.
func TestLookBesideAnOldListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, memory.Options{}, nil)
		s.tamper("d/f")
		s.walk("d/f")
		s.later(2 * time.Second)
		gate, reached := s.answerLate(providers.MethodList)
		looks := make(chan error)
		look := func() { looks <- s.Load(someone, s.known("d")) }
		go look()
		<-reached
		s.later(2 * time.Second)
		s.tamper("d/g")
		go look()
		synctest.Wait() // it has joined
		close(gate)
		for range 2 {
			assert.OK(t, <-looks)
		}
		assert.Slice(t, s.names("d"), []string{"f", "g"}, "names after the second look")
	})
}

// Where the remote says nothing of what was asked for, or what it says cannot be recorded, names
// are shown as they were; not for an open, where the disk is full, nor where none are known.
func TestNamesWithoutAnAnswer(t *testing.T) {
	var says error
	s := newScene(t, memory.Options{}, answering(&says))
	s.tamper("d/f", "e/f")
	s.walk("d/f")
	for _, c := range []struct {
		says    error
		full    bool
		failing bool
		look    error
		strict  error
		unknown error
	}{
		{says: providers.ErrPermission, look: providers.ErrPermission, strict: providers.ErrPermission, unknown: providers.ErrPermission},
		{full: true, strict: table.ErrFull, unknown: table.ErrFull},
		{says: providers.ErrUnauthenticated, failing: true, unknown: providers.ErrUnauthenticated},
	} {
		s.later(15 * time.Second)
		says, s.full = c.says, c.full
		assert.Is(t, s.Load(someone, s.known("d")), c.look, c.says, c.full, "a look")
		assert.Slice(t, s.names("d"), []string{"f"}, c.says, c.full, "names")
		assert.Equal(t, s.o.Belief.IsFailing(), c.failing, c.says, c.full, "marked stale")
		assert.Is(t, s.Look(someone, s.known("d"), true), c.strict, c.says, c.full, "an open")
		assert.Is(t, s.Load(someone, s.known("e")), c.unknown, c.says, c.full, "of what was never listed")
	}
	says, s.full = nil, false
	s.tamper("d/g")
	s.later(time.Second)
	s.look("d")
	assert.Slice(t, s.names("d"), []string{"f", "g"}, "with an answer and room again")
}

// An open waits for the answer where a look at names does not.
func TestOpenIsStricter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, memory.Options{}, nil)
		s.tamper("f=one")
		s.walk("f")
		s.tamper("f=another")
		s.later(2 * time.Second)
		s.wait = 0
		gate, reached := s.answerLate(providers.MethodList)
		opened := make(chan error, 1)
		began := time.Now()
		go func() { opened <- s.Look(someone, table.Root, true) }()
		<-reached
		s.look("")
		assert.AtMost(t, time.Since(began), LeastWait, "a look took")
		assert.True(t, s.o.Belief.IsFailing(), "not marked stale")
		assert.Equal(t, len(opened), 0, "opens that have not waited")
		close(gate)
		assert.OK(t, <-opened)
		assert.False(t, s.o.Belief.IsFailing(), "still marked stale")
	})
}

// Who is killed leaves what he waits for, and the next does not join that.
func TestWhoIsKilledLeaves(t *testing.T) {
	s := newScene(t, memory.Options{}, nil)
	s.tamper("a")
	gate, reached := s.answerLate(providers.MethodList)
	defer close(gate)
	cancel, left := make(chan struct{}), make(chan error)
	go func() { left <- s.Load(&fs.Op{PID: 1 << 30, Cancel: cancel}, table.Root) }() // there is no such thread
	<-reached
	close(cancel)
	assert.Is(t, <-left, syscall.EINTR)
	assert.True(t, s.walk("a") != 0, "its name is not there")
}

// An open asks where the file stays: of the place that a rename of ours leaves there is soon
// nothing to ask. What was changed locally is not asked for, and what lost its name to a pull
// is told once.
func TestFreshen(t *testing.T) {
	s := newScene(t, memory.Options{}, nil)
	s.tamper("new/f", "old/f")
	s.walk("new/f")
	x := s.walk("old/f")
	s.update(func(tx *tree.Tx) {
		from, to := table.Link{Dir: s.knownTo(tx.View, "old"), Name: "f"}, table.Link{Dir: s.knownTo(tx.View, "new"), Name: "f"}
		remote := *tx.Record(from).Remote
		tx.SetLocal(from, 0, false, false)
		tx.SetLocal(to, x, false, false)
		tx.SetRemote(to, &remote)
	})
	s.listed()
	s.later(2 * time.Second)
	assert.OK(t, s.Freshen(someone, x, true))
	assert.Slice(t, s.listed(), []string{"new"}, "asked")
	s.later(2 * time.Second)
	s.update(func(tx *tree.Tx) { tx.Edit(x).Writing = true })
	assert.OK(t, s.Freshen(someone, x, true))
	assert.Slice(t, s.listed(), nil, "of what is written, asked")
	s.update(func(tx *tree.Tx) {
		l := table.Link{Dir: s.knownTo(tx.View, "new"), Name: "f"}
		tx.SetLocal(l, 0, false, false)
		tx.Edit(x).LostName = &l
	})
	assert.Is(t, s.Freshen(someone, x, true), fs.ErrStale)
	assert.OK(t, s.Freshen(someone, x, true), "told again")
}

// A directory that others removed is gone when it is looked at, and a root that is none stops
// pulls.
func TestVanished(t *testing.T) {
	s := newScene(t, memory.Options{}, nil)
	s.tamper("d/f", "g")
	s.walk("d/f")
	d := s.known("d")
	s.gone("d/f", "d")
	s.later(2 * time.Second)
	assert.Is(t, s.Load(someone, d), fs.ErrStale)
	assert.Slice(t, s.names(""), []string{"g"}, "names")
	says := error(providers.ErrNotDir)
	s = newScene(t, memory.Options{}, answering(&says))
	assert.Is(t, s.Load(someone, table.Root), massdelete.ErrHalted)
}

// A first listing that was interrupted goes on with what it left, and forgets what is gone
// since.
func TestInterruptedLoad(t *testing.T) {
	s := newScene(t, memory.Options{PageSize: batch}, nil)
	for i := range 2 * batch {
		s.tamper(fmt.Sprintf("%05d", i))
	}
	s.faults.Queue(providers.MethodList, providertest.Fault{}, providertest.Fault{Before: providers.ErrPermission})
	assert.Is(t, s.Load(someone, table.Root), providers.ErrPermission)
	assert.Equal(t, len(s.names("")), batch, "names after the interruption")
	s.gone("00000")
	s.tamper("00001=other")
	s.look("")
	assert.Equal(t, len(s.names("")), 2*batch-1, "names")
	v := s.o.Tree.Lock()
	defer s.o.Tree.Unlock()
	assert.Equal(t, v.Inode(s.knownTo(v, "00001")).Size, int64(len("xother")), "size of what has changed since")
}

// A first listing that is tried again knows nothing that was deleted between the tries.
func TestFirstListingTriedAgain(t *testing.T) {
	var gone func()
	s := newScene(t, memory.Options{PageSize: batch}, func(p providers.Provider) providers.Provider {
		return onSecondList{Provider: p, do: func() error { gone(); return providers.ErrUnavailable }, n: new(int)}
	})
	gone = func() { s.gone("00000") }
	for i := range 2 * batch {
		s.tamper(fmt.Sprintf("%05d", i))
	}
	s.look("")
	assert.Equal(t, len(s.names("")), 2*batch-1, "names")
}

// Where a later page is not there, what came before is not taken for all that there is.
func TestLaterPageIsNotThere(t *testing.T) {
	for _, implied := range []bool{false, true} { // of which a first look takes all below at once
		n := 0
		s := newScene(t, memory.Options{PageSize: 2, ImpliedDirs: implied}, func(p providers.Provider) providers.Provider {
			return onSecondList{Provider: p, do: func() error { return providers.ErrNotExist }, n: &n}
		})
		s.tamper("a", "b", "c", "d", "e")
		s.look("")
		assert.Equal(t, len(s.names("")), 5, "names after a look, implied directories:", implied)
		v := s.o.Tree.Lock()
		assert.False(t, v.IsObserved(), "a look is still under way, implied directories:", implied)
		s.o.Tree.Unlock()
		s.tamper("f")
		n = 0
		s.pull()
		assert.Equal(t, len(s.names("")), 6, "names after a pull, implied directories:", implied)
	}
}

// onSecondList does something instead of its second listing.
type onSecondList struct {
	providers.Provider
	do func() error
	n  *int
}

func (o onSecondList) List(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
	if *o.n++; *o.n == 2 {
		return providers.Page{}, o.do()
	}
	return o.Provider.List(ctx, l, opts)
}

// haunted is a provider whose listings show a directory that is not there.
type haunted struct {
	providers.Provider
	ghost *providers.Locator // the root: there is none
}

func (h haunted) List(ctx context.Context, l providers.Locator, o providers.ListOptions) (providers.Page, error) {
	page, err := h.Provider.List(ctx, l, o)
	if err == nil && !h.ghost.IsRoot() && l == h.ghost.Parent() && page.Next == "" {
		page.Entries = append(page.Entries, providers.Info{Locator: *h.ghost, Kind: providers.KindDir})
	}
	return page, err
}

// A file that is just being deleted or made may be listed as a directory, and does not become
// one; a new directory does.
func TestFilesListedAsDirectories(t *testing.T) {
	for _, path := range []string{"gone", "f"} {
		var ghost providers.Locator
		s := newScene(t, memory.Options{ImpliedDirs: true}, func(p providers.Provider) providers.Provider { return haunted{p, &ghost} })
		s.tamper("f", "g")
		s.look("")
		s.gone("f")
		ghost = at(path)
		s.pull()
		s.tamper("new/f")
		s.pull()
		assert.Equal(t, strings.Join(s.names(""), " "), "g new", path)
	}
}

// Where two revisions differ is taken over in directories that are known, and in no others.
func TestCompare(t *testing.T) {
	s := newScene(t, memory.Options{}, nil)
	s.tamper("d/gone", "d/f=one", "unknown/f")
	s.walk("d/f")
	s.look("")
	s.listed()
	w := s.o.Waits.For(nil, time.Minute)
	defer w.Close()
	info := func(path string) *providers.Info {
		s.tamper(path + "=another")
		i := assert.Of(s.store.Stat(t.Context(), at(path))).OK(t)
		return &i
	}
	var diffs []providers.Difference
	for path, is := range map[string]*providers.Info{"d/gone": nil, "d/never": nil, "d/f": info("d/f"), "d/new": info("d/new"), "unknown/new": info("unknown/new"), "nowhere/f": info("nowhere/f")} {
		diffs = append(diffs, providers.Difference{Locator: at(path), Is: is})
	}
	c := assert.Of(s.Compare(w, s.o.Provider, diffs)).OK(t)
	defer c.End()
	assert.OK(t, c.Check(revision.NoHead(), revision.Gone))
	assert.Slice(t, s.names("d"), []string{"f", "gone"}, "a check changes")
	r := assert.Of(c.Apply(revision.NoHead(), "r2", revision.Gone)).OK(t)
	assert.True(t, r.Changed == 2 && r.Deleted == 1, "report", r)
	assert.Slice(t, s.names("d"), []string{"f", "new"}, "names")
	assert.Slice(t, s.names("unknown"), nil, "names of what is not known")
	assert.Slice(t, s.listed(), nil, "the store was asked")
}

// Directories that no one has looked into are not listed, and one recursive listing is used
// where it is the cheaper way.
func TestWhatAPullAsks(t *testing.T) {
	for deep, most := range map[int]int{1: 3, 500: 12} { // entries in a directory that is not known
		s := newScene(t, memory.Options{PageSize: 3}, nil)
		s.tamper("a/f", "b/f", "c/f")
		for i := range deep {
			s.tamper(fmt.Sprint("0/", i))
		}
		for _, dir := range []string{"", "a", "b", "c"} {
			s.look(dir)
		}
		s.listed()
		s.tamper("c/f=changed")
		assert.Equal(t, s.pull().Changed, 1, "report")
		assert.AtMost(t, s.asked(), most, deep, "pages were asked for")
		assert.Slice(t, s.names("0"), nil, "of a directory that no one looked into is known")
	}
}

// A comparison that fails half way is none.
func TestCompareFailsWhole(t *testing.T) {
	s := newScene(t, memory.Options{Without: providers.Capabilities{RecursiveList: true}}, nil)
	s.tamper("a/f", "b/f")
	s.walk("a/f")
	s.walk("b/f")
	s.faults.Queue(providers.MethodList, providertest.Fault{}, providertest.Fault{}, providertest.Fault{Before: providers.ErrPermission})
	w := s.o.Waits.For(nil, time.Minute)
	defer w.Close()
	assert.Is(t, assert.ErrOf(s.CompareAll(w, s.o.Provider)), providers.ErrPermission)
	v := s.o.Tree.Lock()
	defer s.o.Tree.Unlock()
	assert.False(t, v.IsObserved(), "the store is still looked at")
}

// A directory that was renamed while it was listed is listed where it is.
func TestListingFollowsARename(t *testing.T) {
	s := newScene(t, memory.Options{}, nil)
	s.tamper("d/f", "e/f")
	s.look("")
	gate, reached := s.answerLate(providers.MethodList)
	d, loaded := s.known("d"), make(chan error)
	go func() { loaded <- s.Load(someone, d) }()
	<-reached
	s.update(func(tx *tree.Tx) {
		from, to := table.Link{Dir: table.Root, Name: "d"}, table.Link{Dir: table.Root, Name: "e"}
		remote := *tx.Record(from).Remote
		for l, x := range map[table.Link]table.Ino{from: 0, to: d} {
			tx.SetLocal(l, x, false, false)
		}
		tx.SetRemote(from, nil)
		tx.SetRemote(to, &remote)
		tx.ChangedByUs(from)
		tx.ChangedByUs(to)
	})
	s.tamper("e/own", "d/x")
	s.gone("e/f")
	close(gate)
	assert.OK(t, <-loaded)
	assert.Slice(t, s.names("e"), []string{"own"}, "names")
	assert.Slice(t, s.listed(), []string{"", "d", "e"}, "listings")
}

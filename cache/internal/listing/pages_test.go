package listing

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// forest is a scene of a flat store, in a bubble, where time passes when nothing else happens.
type forest struct {
	*scene
	count int // files and directories
}

// inForest runs a test on a store with pages of so many names, and so many files in each
// directory that is named.
func inForest(t *testing.T, page, files int, dirs []string, test func(*forest)) {
	inForestOf(t, page, files, dirs, nil, test)
}

// inForestOf is inForest with something before the store.
func inForestOf(t *testing.T, page, files int, dirs []string, wrap func(providers.Provider) providers.Provider, test func(*forest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &forest{scene: newScene(t, memory.Options{PageSize: page, ImpliedDirs: true}, wrap)}
		seen := map[string]bool{".": true}
		for _, dir := range dirs {
			for i := range files {
				f.tamper(fmt.Sprintf("%s/f%03d", dir, i))
			}
			for ; !seen[dir]; dir = path.Dir(dir) {
				seen[dir] = true
			}
		}
		f.count = len(seen) - 1 + files*len(dirs)
		test(f)
	})
}

// asked is how often the store was asked for a listing since the last time.
func (f *forest) asked() int {
	synctest.Wait()
	return f.scene.asked()
}

// read reads the names of a directory, as ls does.
func (f *forest) read(path string) []string {
	f.Helper()
	f.SawRead(f.known(path))
	f.look(path)
	return f.names(path)
}

// walkAll reads a directory, and each below it, as find(1) does, and does something after
// each. It gives how many names it found.
func (f *forest) walkAll(dir string, then func()) (found int) {
	f.Helper()
	var dirs []string
	for _, name := range f.read(dir) {
		found++
		child := path.Join(dir, name)
		v := f.o.Tree.Lock()
		n := v.Inode(f.knownTo(v, child))
		f.o.Tree.Unlock()
		if n.IsDir() {
			dirs = append(dirs, child)
		}
	}
	then()
	for _, child := range dirs {
		found += f.walkAll(child, then)
	}
	return found
}

// flat are directories in the root, nested are some in some others.
func flat(n int) (dirs []string) {
	for i := range n {
		dirs = append(dirs, fmt.Sprintf("d%04d", i))
	}
	return dirs
}

func nested(above, below int) (dirs []string) {
	for i := range above {
		for j := range below {
			dirs = append(dirs, fmt.Sprintf("d%02d/s%02d", i, j))
		}
	}
	return dirs
}

func nothing() {}

// walking reports whether a walk is believed to be under way, for which room is kept.
func (f *forest) walking() bool {
	synctest.Wait()
	v := f.o.Tree.Lock()
	defer f.o.Tree.Unlock()
	return f.room.Usage().Used > 0 || v.IsObserved()
}

// listExpired has all directories but the root known and expired, and the root read.
func (f *forest) listExpired() {
	f.Helper()
	f.read("")
	f.later(2 * time.Second)
	f.read("")
	f.asked()
}

// A walk through N pages of names takes N+3 requests, the first time and each time after the TTL.
func TestWalkIsListedInPages(t *testing.T) {
	const page = 100
	for name, x := range map[string]struct {
		files int
		dirs  []string
	}{
		"100 directories":            {10, flat(100)},
		"a few directories":          {5, flat(6)},
		"directories in directories": {10, nested(10, 5)},
		"a page does not hold one":   {40, nested(10, 4)},
		"more files than a page":     {250, flat(3)},
		"in one long way":            {20, []string{"a/b/c/d/e/f", "a/b/c/d/e", "a/b/c/d", "a/b/c"}},
	} {
		inForest(t, page, x.files, x.dirs, func(f *forest) {
			for round := range 3 {
				assert.Equal(t, f.walkAll("", nothing), f.count, name, "walk", round, "found names")
				assert.AtMost(t, f.asked(), (f.count+page-1)/page+3, name, "requests for walk", round, "of", f.count, "names")
				f.later(2 * time.Second)
			}
		})
	}
}

// A look at a directory is one listing, of it alone.
func TestOneLookIsOneListing(t *testing.T) {
	inForest(t, 1000, 10, flat(30), func(f *forest) {
		f.read("")
		for _, name := range []string{"d0020", "d0003", "d0020", "d0004"} {
			f.later(WalkPause + time.Second)
			f.asked()
			f.look(name)
			f.look(name)
			assert.Equal(t, f.asked(), 1, "requests for a look at", name)
			assert.False(t, f.walking(), "a walk goes on after", name)
		}
	})
}

// A small tree is one listing, the first time. Then a name far below is looked up with a
// listing of each directory above it, each alone.
func TestLookupIsNoWalk(t *testing.T) {
	inForest(t, 1000, 10, []string{"a/b/c"}, func(f *forest) {
		for _, want := range []int{1, 4, 4} {
			f.walk("a/b/c/f000")
			assert.Equal(t, f.asked(), want, "requests")
			assert.False(t, f.walking(), "a walk goes on")
			f.later(2 * time.Second)
		}
	})
}

// A walker that comes to a directory while the page that covers it is under way waits for
// the page.
func TestWalkerWaitsForThePage(t *testing.T) {
	inForest(t, 1000, 10, flat(30), func(f *forest) {
		f.listExpired()
		gate, reached := f.answerLate(providers.MethodList)
		var looks sync.WaitGroup
		looks.Go(func() { f.look("d0000") })
		<-reached
		looks.Go(func() { f.look("d0007") })
		synctest.Wait()
		close(gate)
		looks.Wait()
		assert.Equal(t, f.asked(), 1, "requests")
	})
}

// What others do during a walk is seen when it is older than the TTL, however slow the
// walker is.
func TestSlowWalkSeesOthers(t *testing.T) {
	inForest(t, 1000, 10, flat(60), func(f *forest) {
		f.walkAll("", nothing)
		f.later(2 * time.Second)
		f.asked()
		const ahead = 5
		step := 0
		found := f.walkAll("", func() {
			if dir := fmt.Sprintf("d%04d", step+ahead); step+ahead < 60 {
				f.tamper(dir + "/new")
				f.gone(dir + "/f003")
			}
			f.later(250 * time.Millisecond)
			step++
		})
		assert.Equal(t, found, f.count, "names found, where as many came as went")
		for i := ahead; i < 60; i++ {
			names := f.names(fmt.Sprintf("d%04d", i))
			assert.True(t, slices.Contains(names, "new") && !slices.Contains(names, "f003"), "in", i, "the walker has seen", names)
		}
		assert.AtMost(t, f.asked(), 36, "requests for 61 directories") // in 15 s, in each the root and a page
	})
}

// What was changed locally, and sent, since a page was asked for stays as it is.
func TestPageUndoesNothing(t *testing.T) {
	inForest(t, 1000, 10, flat(8), func(f *forest) {
		f.walkAll("", nothing)
		f.later(2 * time.Second)
		f.read("")
		gate, reached := f.answerLate(providers.MethodList)
		f.asked()
		var looked sync.WaitGroup
		looked.Go(func() { f.look("d0000") })
		<-reached // the page has all as it was
		f.update(func(tx *tree.Tx) {
			sent := func(l table.Link, ino table.Ino, remote *table.Remote) {
				tx.SetLocal(l, ino, false, false)
				tx.SetRemote(l, remote)
				tx.ChangedByUs(l)
			}
			inDir := func(dir, name string) table.Link { return table.Link{Dir: f.knownTo(tx.View, dir), Name: name} }
			sent(inDir("d0001", "f000"), 0, nil)
			own := tx.Alloc()
			tx.Put(own, &table.Inode{Mode: syscall.S_IFREG, ContentVersion: 1, AttrGen: 1})
			sent(inDir("d0003", "own"), own, &table.Remote{Ino: own, Kind: providers.KindFile, ContentVersion: 1, AttrGen: 1})
			moved := f.knownTo(tx.View, "d0004")
			sent(inDir("", "d0004"), 0, nil)
			sent(inDir("", "d0005"), moved, &table.Remote{Ino: moved, Kind: providers.KindDir, AttrGen: 1})
		})
		f.tamper("d0003/own")
		close(gate)
		looked.Wait()
		f.asked()
		for dir, want := range map[string]int{"d0001": 9, "d0003": 11, "d0006": 10} {
			f.look(dir)
			assert.Equal(t, len(f.names(dir)), want, dir)
		}
		assert.Equal(t, f.asked(), 0, "requests for what the page says, but for what was changed")
		f.tamper("d0005/new")
		f.look("d0005")
		assert.Equal(t, len(f.names("d0005")), 11, "where another directory is by now")
		assert.Equal(t, f.asked(), 1, "requests for it")
	})
}

// A page that fails costs one request: each directory is listed by itself, and another
// page is tried later.
func TestPageFails(t *testing.T) {
	inForest(t, 1000, 10, flat(30), func(f *forest) {
		f.walkAll("", nothing)
		f.later(2 * time.Second)
		f.asked()
		f.faults.Queue(providers.MethodList, providertest.Fault{}, providertest.Fault{Before: providers.ErrUnavailable})
		assert.Equal(t, f.walkAll("", nothing), f.count, "names")
		assert.AtMost(t, f.asked(), 6, "requests")
		assert.False(t, f.o.Belief.IsFailing(), "what is shown counts as stale")
	})
}

// Looks here and there are no walks, though they are near to each other: soon each is one
// listing again.
func TestScatteredLooksAreNoWalk(t *testing.T) {
	const looks = 20
	inForest(t, 100, 120, nested(looks, 1), func(f *forest) {
		f.walkAll("", nothing)
		f.listExpired()
		for i := range looks {
			f.look(fmt.Sprintf("d%02d", looks-1-i))
			f.later(WalkPause / 4)
		}
		assert.AtMost(t, f.asked(), looks+5, "requests") // after 1, 2, 4, 8 and 16 looks
	})
}

// A directory of many files costs a listing of it, and no more; so does one that has a
// directory behind many files, but for one that looks for it.
func TestFlatDirectoryIsListedOnce(t *testing.T) {
	for _, dirs := range [][]string{{"d"}, {"d", "d/z"}} {
		inForest(t, 20, 95, dirs, func(f *forest) {
			f.read("")
			f.asked()
			assert.Equal(t, len(f.read("d")), 95+len(dirs)-1, "names")
			assert.AtMost(t, f.asked(), 5*len(dirs), dirs, "listings")
		})
	}
}

// unordered is a store that turns out to have no order in which a recursive listing
// could go on.
type unordered struct{ providers.Provider }

func (p unordered) List(ctx context.Context, l providers.Locator, o providers.ListOptions) (providers.Page, error) {
	if o.Recursive {
		return providers.Page{}, providers.ErrUnsupported
	}
	return p.Provider.List(ctx, l, o)
}

// Where recursive listings do not work each directory is listed by itself, for walks and
// for pulls.
func TestStoreWithoutOrder(t *testing.T) {
	inForestOf(t, 100, 10, flat(8), func(p providers.Provider) providers.Provider { return unordered{p} }, func(f *forest) {
		for range 2 {
			assert.Equal(t, f.walkAll("", nothing), f.count, "names")
			f.later(2 * time.Second)
		}
		f.tamper("d0003/new")
		r := f.pull()
		assert.Equal(t, r.Changed, 1, "names of a pull")
	})
}

// A listing of a directory that is no small tree has brought the first page of a walk. One
// that is not used makes no walk harder to begin.
func TestFirstPageServesTwice(t *testing.T) {
	inForest(t, 100, 10, flat(30), func(f *forest) {
		f.read("")
		assert.Equal(t, f.asked(), 2, "listings, of the tree and of the directory")
		f.look("d0000")
		assert.Equal(t, f.asked(), 0, "the first directory took requests more")
		time.Sleep(WalkPause + time.Second) // of the bubble
		assert.False(t, f.walking(), "a walk goes on")
		f.listExpired()
		f.look("d0001")
		assert.True(t, f.walking(), "one look begins no walk")
	})
}

// Where a page had to be asked for twice, the second answer says where the next begins.
func TestFirstPageIsAskedForTwice(t *testing.T) {
	inForest(t, 10, 10, flat(6), func(f *forest) {
		gate, reached := make(chan struct{}), make(chan struct{})
		f.faults.Queue(providers.MethodList, providertest.Fault{After: providers.ErrUnavailable}, providertest.Fault{Gate: gate, Reached: reached})
		var listed sync.WaitGroup
		listed.Go(func() { f.read("") })
		<-reached
		f.tamper("d0000/a0", "d0000/a1", "d0000/a2") // the page ends earlier now
		close(gate)
		listed.Wait()
		assert.Equal(t, f.walkAll("", nothing), f.count+3, "names")
	})
}

// The next page is asked for as soon as it is known where it begins, though the one
// before has not come: two ahead of the walker.
func TestPagesAreAskedForAhead(t *testing.T) {
	inForest(t, 100, 10, flat(100), func(f *forest) {
		f.listExpired()
		f.look("d0000")
		f.asked()
		gate, reached := f.answerLate(providers.MethodList)
		f.look("d0001")
		<-reached
		assert.Equal(t, f.asked(), 2, "requests")
		close(gate)
		for i := 2; i < 12; i++ {
			f.look(fmt.Sprintf("d%04d", i))
		}
		assert.Equal(t, f.asked(), 1, "requests")
	})
}

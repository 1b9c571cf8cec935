package cache

import (
	"context"
	"fmt"
	"path"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// forest is a working copy of a flat store, with a clock, that counts its requests.
// Everything goes on in a bubble, where time passes when nothing else happens.
type forest struct {
	*scene
	asks  calls
	clock ticking
	names int // files and directories
}

// inForest runs a test on a store with pages of so many names, and so many files in each
// directory that is named.
func inForest(t *testing.T, page, files int, dirs []string, test func(*forest)) {
	synctest.Test(t, func(t *testing.T) {
		f := &forest{}
		seen := map[string]bool{".": true}
		f.scene = newScene(t, func(w *world, _ *Options) {
			w.p = memory.New(memory.Options{PageSize: page, ImpliedDirs: true, Hook: f.asks.hook})
			for _, dir := range dirs {
				for i := range files {
					w.tamper(fmt.Sprintf("%s/f%03d", dir, i), "x")
				}
				for ; !seen[dir]; dir = path.Dir(dir) {
					seen[dir] = true
				}
			}
		}, clocked(&f.clock, time.Second))
		f.names = len(seen) - 1 + files*len(dirs)
		f.asked()
		test(f)
	})
}

// asked is how often the store was asked for a listing since the last time.
func (f *forest) asked() int {
	f.Helper()
	synctest.Wait()
	return f.asks.of(providers.MethodList)
}

// walkAll reads a directory, and each below it, as find(1) does. It gives what it found.
func (f *forest) walkAll(dir fs.Ino) (names int) {
	f.Helper()
	return f.walkEach(dir, func() {})
}

// walkEach is walkAll that does something after each directory.
func (f *forest) walkEach(dir fs.Ino, then func()) (names int) {
	f.Helper()
	d := assert.Of(f.v.OpenDir(me, dir)).OK(f)
	var dirs []fs.Ino
	for {
		e, more, err := d.Next(me)
		if f.ok(err); !more {
			break
		}
		if e.Name == "." || e.Name == ".." {
			continue
		}
		names++
		if child, err := f.v.Lookup(me, dir, e.Name); err != nil {
			f.Fatal(err)
		} else if f.inode(child.Ino).Mode&syscall.S_IFMT == syscall.S_IFDIR {
			dirs = append(dirs, child.Ino)
		}
	}
	d.Release()
	then()
	for _, child := range dirs {
		names += f.walkEach(child, then)
	}
	return names
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
		t.Run(name, func(t *testing.T) {
			inForest(t, page, x.files, x.dirs, func(f *forest) {
				for round := range 3 {
					assert.Equal(t, f.walkAll(fs.RootIno), f.names, "walk", round, "found names")
					assert.AtMost(t, f.asked(), (f.names+page-1)/page+3, "requests for walk", round, "of", f.names, "names")
					f.clock.add(2 * time.Second)
				}
			})
		})
	}
}

// child is the inode of a name in the root that is known.
func (f *forest) child(name string) fs.Ino {
	f.Helper()
	locked := f.v.lock()
	defer locked.unlock()
	rec, _ := locked.table.Name(table.Root, name)
	assert.Must(f, rec.Ino != 0, name, "is not known")
	return fs.Ino(rec.Ino)
}

// look is a look at a directory in the root that is known, and at nothing else.
func (f *forest) look(name string) {
	f.Helper()
	f.ok(f.v.listings.Load(me, table.Ino(f.child(name))))
}

// walking reports whether a walk is believed to be under way, for which room is kept.
func (f *forest) walking() bool {
	synctest.Wait()
	locked := f.v.lock()
	defer locked.unlock()
	return f.v.o.Fetches.Usage().Used > 0 || locked.IsObserved()
}

// listExpired has all directories but the root known and expired, and the root read.
func (f *forest) listExpired() {
	f.Helper()
	f.list("")
	f.clock.add(2 * time.Second)
	f.list("")
	f.asked()
}

// A look at a directory is one listing, of it alone.
func TestOneLookIsOneListing(t *testing.T) {
	inForest(t, 1000, 10, flat(30), func(f *forest) {
		f.list("")
		for _, name := range []string{"d0020", "d0003", "d0020", "d0004"} {
			f.clock.add(listing.WalkPause + time.Second)
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
			f.clock.add(2 * time.Second)
		}
	})
}

// A walker that comes to a directory while the page that covers it is under way waits for
// the page.
func TestWalkerWaitsForThePage(t *testing.T) {
	inForest(t, 1000, 10, flat(30), func(f *forest) {
		f.listExpired()
		reached, open := f.gate(providers.MethodList)
		f.asked()
		first := async(func() { f.look("d0000") })
		<-reached
		second := async(func() { f.look("d0007") })
		synctest.Wait()
		open()
		<-first
		<-second
		assert.Equal(t, f.asked(), 1, "requests")
	})
}

// What others do during a walk is seen when it is older than the TTL, however slow the
// walker is.
func TestSlowWalkSeesOthers(t *testing.T) {
	inForest(t, 1000, 10, flat(60), func(f *forest) {
		f.walkAll(fs.RootIno)
		f.clock.add(2 * time.Second)
		f.asked()
		const ahead = 5
		came, gone, step := 0, 0, 0
		found := f.walkEach(fs.RootIno, func() {
			if dir := fmt.Sprintf("d%04d", step+ahead); step+ahead < 60 {
				f.tamper(dir+"/new", "theirs")
				f.gonePath(dir + "/f003")
				came, gone = came+1, gone+1
			}
			f.clock.add(250 * time.Millisecond)
			step++
		})
		assert.Equal(t, found, f.names+came-gone, "names found, where so many came:", came)
		for i := ahead; i < 60; i++ {
			dir := fmt.Sprintf("d%04d", i)
			names := f.known(dir)
			assert.True(t, slices.Contains(names, "new") && !slices.Contains(names, "f003"), "in", dir, "the walker has seen", names)
		}
		assert.AtMost(t, f.asked(), 36, "requests for 61 directories") // in 15 s, in each the root and a page
	})
}

// known are the names of a directory in the root, without a look.
func (f *forest) known(dir string) (names []string) {
	ino := f.child(dir)
	locked := f.v.lock()
	defer locked.unlock()
	locked.table.Names(table.Ino(ino), "", func(name string, rec table.Name) bool {
		if rec.Ino != 0 {
			names = append(names, name)
		}
		return true
	})
	return names
}

// What was changed locally since a page was asked for stays as it is.
func TestPageUndoesNothing(t *testing.T) {
	inForest(t, 1000, 10, flat(8), func(f *forest) {
		f.tamper("d0005/only there", "x")
		f.walkAll(fs.RootIno)
		mine := f.open("d0002/f000", syscall.O_RDWR) // an open would wait for the page
		f.clock.add(2 * time.Second)
		f.list("")
		gate, reached := f.answerLate(providers.MethodList)
		f.asked()
		looked := async(func() { f.look("d0000") })
		<-reached // the page has all as it was
		f.ok(f.v.Unlink(me, f.child("d0001"), "f000"))
		f.write(mine, "mine", 0)
		f.ok(f.shut(mine))
		_, o, err := f.v.Create(me, f.child("d0003"), "own", syscall.O_RDWR, 0o666)
		f.ok(err)
		f.ok(f.shut(o))
		for _, name := range f.known("d0005") {
			f.ok(f.v.Unlink(me, f.child("d0005"), name))
		}
		f.ok(f.v.Rmdir(me, fs.RootIno, "d0005"))
		f.ok(f.v.Rename(me, fs.RootIno, "d0004", fs.RootIno, "d0005", 0))
		f.settle()
		close(gate)
		<-looked
		for _, name := range []string{"d0001", "d0002", "d0003", "d0005", "d0006"} {
			f.look(name)
		}
		assert.AtMost(t, f.asked(), 3, "requests") // the page, and what was moved
		for dir, want := range map[string]int{"d0001": 9, "d0002": 10, "d0003": 11, "d0005": 10, "d0006": 10} {
			assert.Equal(t, len(f.known(dir)), want, dir)
		}
		assert.Equal(t, f.get("d0002/f000"), "mine", "a changed file")
		f.noProblems()
	})
}

// A page that fails costs one request: each directory is listed by itself, and another
// page is tried later.
func TestPageFails(t *testing.T) {
	inForest(t, 1000, 10, flat(30), func(f *forest) {
		f.walkAll(fs.RootIno)
		f.clock.add(2 * time.Second)
		f.asked()
		f.faults.Queue(providers.MethodList, providertest.Fault{}, providertest.Fault{Before: providers.ErrUnavailable})
		assert.Equal(t, f.walkAll(fs.RootIno), f.names, "names")
		assert.AtMost(t, f.asked(), 6, "requests")
		f.noProblems()
		assert.Equal(t, f.stale(), time.Time{}, "what is shown counts as stale")
	})
}

// Looks here and there are no walks, though they are near to each other: soon each is one
// listing again.
func TestScatteredLooksAreNoWalk(t *testing.T) {
	const looks = 20
	inForest(t, 100, 120, nested(looks, 1), func(f *forest) {
		f.walkAll(fs.RootIno)
		f.listExpired()
		for i := range looks {
			f.look(fmt.Sprintf("d%02d", looks-1-i))
			f.clock.add(listing.WalkPause / 4)
		}
		assert.AtMost(t, f.asked(), looks+5, "requests") // after 1, 2, 4, 8 and 16 looks
	})
}

// A directory of many files costs a listing of it, and no more; so does one that has a
// directory behind many files, but for one that looks for it.
func TestFlatDirectoryIsListedOnce(t *testing.T) {
	for _, dirs := range [][]string{{"d"}, {"d", "d/z"}} {
		inForest(t, 20, 95, dirs, func(f *forest) {
			f.list("")
			f.asked()
			assert.Equal(t, len(f.list("d")), 95+2+len(dirs)-1, "names")
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
	inForest(t, 100, 10, flat(8), func(f *forest) {
		f.wrap = func(p providers.Provider) providers.Provider { return unordered{p} }
		f.again()
		for range 2 {
			assert.Equal(t, f.walkAll(fs.RootIno), f.names, "names")
			f.clock.add(2 * time.Second)
		}
		f.tamper("d0003/new", "theirs")
		r, err := f.v.Pull(f.Context(), PullOptions{})
		assert.True(t, err == nil && r.Changed == 1, "pull", r, err)
		f.noProblems()
	})
}

// A listing of a directory that is no small tree has brought the first page of a walk. One
// that is not used makes no walk harder to begin.
func TestFirstPageServesTwice(t *testing.T) {
	inForest(t, 100, 10, flat(30), func(f *forest) {
		f.list("")
		assert.Equal(t, f.asked(), 2, "listings, of the tree and of the directory")
		f.look("d0000")
		assert.Equal(t, f.asked(), 0, "the first directory took requests more")
		time.Sleep(listing.WalkPause + time.Second)
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
		listed := async(func() { f.list("") })
		<-reached
		for i := range 3 {
			f.tamper(fmt.Sprintf("d0000/a%d", i), "theirs") // the page ends earlier now
		}
		close(gate)
		<-listed
		assert.Equal(t, f.walkAll(fs.RootIno), f.names+3, "names")
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

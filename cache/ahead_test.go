package cache

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// listed is a store of dirs directories of files each, that counts its listings.
func listed(count *atomic.Int64, page, dirs, files int) func(*world, *Options) {
	return func(w *world, _ *Options) {
		p := memory.New(memory.Options{PageSize: page, ImpliedDirs: true, Hook: func(_ context.Context, m providers.Method, _ providers.Locator) error {
			if m == providers.MethodList {
				count.Add(1)
			}
			return nil
		}})
		for d := range dirs {
			for f := range files {
				p.Tamper(at(fmt.Sprintf("d%02d/in/f%02d", d, f)), []byte("x"))
			}
		}
		w.p = p
	}
}

// walkAll lists the whole tree and counts its files.
func (w *world) walkAll(dirs int) (files int) {
	w.Helper()
	w.list("")
	for d := range dirs {
		w.list(fmt.Sprintf("d%02d", d))
		files += len(w.list(fmt.Sprintf("d%02d/in", d))) - 2 // . and ..
	}
	return files
}

// One listing tells of a small tree, and of what is not there.
func TestSmallTreeIsListedOnce(t *testing.T) {
	var count atomic.Int64
	w := newWorld(t, listed(&count, 1000, 20, 5))
	count.Store(0)
	if got := w.walkAll(20); got != 100 {
		t.Errorf("%d files", got)
	}
	if x := w.walk("d03/in/none"); x != 0 {
		t.Error("there is a file that is not there")
	}
	if got := count.Load(); got != 1 {
		t.Errorf("%d listings", got)
	}
}

// A tree of a few pages comes by itself behind the first; one of many is listed
// as somebody looks into it, for little more than that takes.
func TestLargeTreeIsListedInParts(t *testing.T) {
	for _, x := range []struct{ dirs, files, most int }{{20, 5, aheadPages + 2}, {60, 18, aheadPages + 1 + 3*120}} {
		var count atomic.Int64
		w := newWorld(t, listed(&count, 20, x.dirs, x.files))
		count.Store(0)
		w.list("")
		w.until(func() bool { // nothing is on its way
			w.v.mu.Lock()
			defer w.v.mu.Unlock()
			return len(w.v.listings) == 0
		})
		if got := w.walkAll(x.dirs); got != x.dirs*x.files {
			t.Errorf("%d files of %d", got, x.dirs*x.files)
		}
		if got := count.Load(); got > int64(x.most) {
			t.Errorf("%d directories take %d listings", 2*x.dirs+1, got)
		}
	}
}

// What is changed here while a tree is being listed stays as it is.
func TestListingAheadOfChanges(t *testing.T) {
	var count atomic.Int64
	w := newWorld(t, unwaited, listed(&count, 20, 6, 10))
	w.list("")
	w.do("rm d00/in/f00", "mv d01 e", "put d02/in/f00 mine", "mkdir d03/new")
	w.until(func() bool {
		w.v.mu.Lock()
		defer w.v.mu.Unlock()
		return len(w.v.listings) == 0
	})
	if x := w.walk("d00/in/f00"); x != 0 {
		t.Error("a removed file is back")
	}
	if got := w.get("d02/in/f00"); got != "mine" {
		t.Errorf("a changed file has %q", got)
	}
	if got := len(w.list("e/in")); got != 12 {
		t.Errorf("a renamed directory has %d names", got)
	}
	w.upload()
	w.same()
}

// A directory of many names costs a listing of it, and no more; one that has a
// directory behind many names is listed all the same.
func TestFlatDirectoryIsListedOnce(t *testing.T) {
	for _, deep := range []bool{false, true} {
		var count atomic.Int64
		w := newWorld(t, func(w *world, o *Options) {
			listed(&count, 20, 0, 0)(w, o)
			for i := range 95 {
				w.p.Tamper(at(fmt.Sprintf("f%02d", i)), []byte("x"))
			}
			if deep {
				w.p.Tamper(at("z/in/f"), []byte("x"))
			}
		})
		count.Store(0)
		names, most := 97, int64(5)
		if deep {
			names, most = 98, 10
		}
		if got := len(w.list("")); got != names {
			t.Errorf("%d names of %d", got, names)
		}
		if got := count.Load(); got > most {
			t.Errorf("it takes %d listings", got)
		}
		if deep && w.walk("z/in/f") == 0 {
			t.Error("what lies deeper is missing")
		}
	}
}

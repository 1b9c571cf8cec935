package inotify

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
)

// A tree is a user that looks at nothing but names.
type tree struct {
	w       *Watcher
	batches chan Batch         // what was reported, without empty ones
	again   chan time.Duration // what the next calls of Handle return; without, never
	handled chan struct{}      // has room for one: Handle was called

	mu      sync.Mutex // guards what follows
	paths   map[wsfs.Ino]string
	visits  map[string]int
	found   map[string]uint32 // masks of a walk
	kept    int
	walked  int
	visit   func() // is called by each visit; may be nil
	failure []error
}

const root wsfs.Ino = 1

// watchTree watches a new directory with what prepare makes of it, and waits for the
// first walk.
func watchTree(t *testing.T, o Options, prepare ...func(dir string)) (*Watcher, *tree) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range prepare {
		f(dir)
	}
	u := &tree{batches: make(chan Batch, 100), again: make(chan time.Duration, 10), handled: make(chan struct{}, 1),
		paths: map[wsfs.Ino]string{root: dir}, visits: map[string]int{}, found: map[string]uint32{}}
	f, err := os.Open(dir)
	assert.OK(t, err)
	defer f.Close()
	o.Root, o.RootDir = int(f.Fd()), root
	if o.Now == nil {
		o.Now = time.Now
	}
	u.w = New(u, o)
	if s := u.w.Status(); o.Refuse == nil && s.State == "exhausted" {
		t.Fatalf("user %d of this machine, with whatever else runs as him, has no inotify left for the test: %s", os.Getuid(), s.Why)
	}
	u.w.Start()
	t.Cleanup(func() {
		u.w.Close()
		assert.Equal(t, u.kept, 0, "directories are kept")
	})
	waitFor(t, "end of the walk", func() bool { return !u.w.walks.busy() })
	return u.w, u
}

// waitFor waits for something that another goroutine will do.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	assert.Eventually(t, what, ok)
}

func (u *tree) path(k Key) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return filepath.Join(u.paths[k.Dir], k.Name)
}

// number gives a directory one, the same for as long as it has its path.
func (u *tree) number(path string) wsfs.Ino {
	u.mu.Lock()
	defer u.mu.Unlock()
	for dir, known := range u.paths {
		if known == path {
			return dir
		}
	}
	dir := root + wsfs.Ino(len(u.paths))
	u.paths[dir] = path
	return dir
}

func (u *tree) keep(by int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.kept += by
}

func (u *tree) Handle(b *Batch) time.Duration {
	if len(b.Reports)+len(b.Gone) > 0 || b.Overflow {
		u.batches <- *b
	}
	select {
	case u.handled <- struct{}{}:
	default:
	}
	select {
	case again := <-u.again:
		return again
	default:
		return -1
	}
}

func (u *tree) Enter(k Key) wsfs.Ino {
	path := u.path(k)
	if st, err := os.Lstat(path); err != nil || !st.IsDir() {
		return 0
	}
	u.keep(1)
	return u.number(path)
}

func (u *tree) Visit(dir wsfs.Ino, mask uint32) (sub []wsfs.Ino) {
	path := u.path(Key{Dir: dir})
	u.w.Add(dir, path)
	u.mu.Lock()
	u.visits[path]++
	visit := u.visit
	u.mu.Unlock()
	if visit != nil {
		visit()
	}
	all, _ := os.ReadDir(path)
	for _, e := range all {
		if mask != 0 {
			u.mu.Lock()
			u.found[e.Name()] |= mask
			u.mu.Unlock()
		}
		if e.IsDir() {
			u.keep(1)
			sub = append(sub, u.number(filepath.Join(path, e.Name())))
		}
	}
	return sub
}

func (u *tree) Leave(wsfs.Ino) { u.keep(-1) }

func (u *tree) Walked() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.walked++
}

func (u *tree) Requests() uint32 { return 0 }

func (u *tree) Failed(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.failure = append(u.failure, err)
}

// reported collects batches until a name was reported with all bits of a mask.
func (u *tree) reported(t *testing.T, dir wsfs.Ino, name string, mask uint32) {
	t.Helper()
	var got uint32
	for {
		select {
		case b := <-u.batches:
			for _, r := range b.Reports {
				if r.Key == (Key{dir, name}) {
					got |= r.Mask
				}
			}
		case <-time.After(assert.Hangs):
			t.Fatalf("%q: reported %#x, want %#x", name, got, mask)
		}
		if got&mask == mask {
			return
		}
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	assert.OK(t, err)
}

package refs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers/git/internal/refs"
	"github.com/wsmount/wsmount/providers/git/internal/space"
)

var (
	none = refs.ID{}
	one  = plumbing.NewHash("1111111111111111111111111111111111111111")
	two  = plumbing.NewHash("2222222222222222222222222222222222222222")
)

const main = "refs/heads/main"

func open(t *testing.T, dir string) *refs.Store {
	t.Helper()
	assert.OK(t, os.MkdirAll(filepath.Join(dir, "refs/heads"), 0o755))
	return assert.Of(refs.Open(dir, filepath.Join(dir, "wsmount"), space.Disk{})).OK(t)
}

func at(t *testing.T, s *refs.Store, name string, want refs.ID) {
	t.Helper()
	assert.Of(s.Get(name)).Equal(t, want, name, "is at")
}

func TestUpdate(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	at(t, s, main, none)
	assert.OK(t, s.Update(main, none, one))
	assert.OK(t, s.Update("refs/remotes/origin/a/b", none, two))
	at(t, s, main, one)
	assert.Is(t, s.Update(main, two, none), refs.ErrChanged, "update from elsewhere")
	assert.OK(t, s.Update(main, one, two))
	assert.OK(t, s.Update(main, two, two))
	at(t, open(t, dir), main, two)
	at(t, open(t, dir), "refs/remotes/origin/a/b", two)
	assert.OK(t, s.Update(main, two, none))
	at(t, s, main, none)
	clean(t, dir)
}

// The disk has where a reference is when it has moved, and which branch HEAD names.
func TestReferencesReachTheDisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	assert.OK(t, s.Update(main, none, one))
	tier.OnDisk(t, filepath.Join(dir, main))
	assert.OK(t, s.SetHead("main"))
	tier.OnDisk(t, filepath.Join(dir, "HEAD"))
}

// clean checks that no lock and no file of ours is left.
func clean(t *testing.T, dir string) {
	t.Helper()
	assert.OK(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		assert.False(t, err == nil && !d.IsDir() && (strings.HasSuffix(path, ".lock") || strings.Contains(d.Name(), "wsmount")), path, "is left")
		return err
	}))
}

// A lock of somebody else is honoured; one that a killed program left is not.
func TestLocks(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	assert.OK(t, s.Update(main, none, one))
	lock := filepath.Join(dir, main+".lock")
	assert.OK(t, os.WriteFile(lock, nil, 0o644))
	left := filepath.Join(dir, "wsmount/refs/left")
	assert.OK(t, os.WriteFile(left, []byte("half"), 0o644)) // of a kill before it was a lock
	assert.Is(t, open(t, dir).Update(main, one, two), refs.ErrLocked, "update of what git has locked")
	at(t, s, main, one)
	assert.OK(t, os.Remove(lock))

	assert.OK(t, os.WriteFile(left, []byte("half"), 0o644))
	assert.OK(t, os.Link(left, lock)) // as a kill leaves it
	assert.OK(t, open(t, dir).Update(main, one, two))
	at(t, s, main, two)
	clean(t, dir)
}

// What git has packed is found, moved and removed.
func TestPacked(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	packed := "# pack-refs with: peeled fully-peeled sorted \n" + one.String() + " " + main + "\n^" + two.String() + "\n" + two.String() + " refs/heads/other\n"
	assert.OK(t, os.WriteFile(filepath.Join(dir, "packed-refs"), []byte(packed), 0o644))
	at(t, s, main, one)
	at(t, s, "refs/heads/ain", none)
	assert.OK(t, s.Update(main, one, two))
	at(t, s, main, two)
	assert.OK(t, s.Update(main, two, none))
	at(t, s, main, none)
	at(t, s, "refs/heads/other", two)
	b, _ := os.ReadFile(filepath.Join(dir, "packed-refs"))
	assert.False(t, strings.Contains(string(b), "^"), "packed-refs is", b)
	clean(t, dir)
}

// A reference that is torn is an error, and not one that is not there.
func TestTorn(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	assert.OK(t, os.WriteFile(filepath.Join(dir, main), nil, 0o644))
	got, err := s.Get(main)
	assert.Is(t, err, refs.ErrDamaged, got, err)
	assert.Is(t, s.Update(main, none, one), refs.ErrDamaged, "update")
}

// Of many who move a reference from one place, one succeeds.
func TestRace(t *testing.T) {
	s := open(t, t.TempDir())
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			err := s.Update(main, none, one)
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, refs.ErrChanged):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	assert.Equal(t, won.Load(), 1, "succeeded")
}

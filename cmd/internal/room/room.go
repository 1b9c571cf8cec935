// Package room makes room on the disk of a state directory when that is full: clean
// content of working copies, which their backends have too, goes before anything
// fails.
//
//	r := room.New(root)
//	err := r.WhileFull(func() error { return write(root) })
//
// It promises that changed content and history stay, and all content of a working copy whose
// commits are lost to its clone, and that one that another process has open is left alone.
package room

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cache/pins"
	"github.com/wsmount/wsmount/cmd/internal/clone"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/state"
)

// atLeast is how much clean content of working copies that are not open is evicted together,
// or more if the caller needs more: opening a working copy takes some MiB, for its
// database and for the ballast.
const atLeast = 32 << 20

// Room is the content that can be evicted on the disk of a state directory. Its methods may be
// called concurrently.
type Room struct {
	root string

	mu     sync.Mutex // guards the fields below
	open   []Volume   // in this process
	opened bool       // the working copies of this process are open: others are left alone
}

// Volume is an open working copy. A cache.Volume is one.
type Volume interface {
	MakeRoom(n int64) bool
	ContentUsage() cache.ContentUsage
}

var _ state.Room = (*Room)(nil)

// New is the room of a state directory.
func New(root string) *Room { return &Room{root: root} }

// Add has clean content of an open working copy go first. The volume must answer after
// its end too.
func (r *Room) Add(v Volume) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = append(r.open, v)
}

// Opened says that this process opens no more working copies. From then on it leaves
// those of others alone, which would be refused as in use if they were mounted just
// while their content is being evicted.
func (r *Room) Opened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened = true
}

// volumes are the open working copies, and whether there are no more to come.
func (r *Room) volumes() ([]Volume, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.open), r.opened
}

// WhileFull runs do, which writes below the state directory, as [state.WhileFull] does.
func (r *Room) WhileFull(do func() error) error { return state.WhileFull(r.root, r, do) }

// MakeRoom implements state.Room: clean content of the working copies that are open
// goes before that of others, which are not mounted.
func (r *Room) MakeRoom(n int64) (made bool) {
	open, all := r.volumes()
	for _, v := range open {
		made = v.MakeRoom(n) || made
	}
	if made || all {
		return made
	}
	need := max(n, atLeast)
	for _, dir := range r.copies() {
		freed, err := cache.MakeRoomIn(copyOf(dir), need, clone.Lost(dir))
		if made = made || freed > 0; err == nil {
			need -= freed
		}
		if need <= 0 {
			break
		}
	}
	return made
}

// copies are the directories of the working copies below the root, mounted or not.
func (r *Room) copies() []string {
	dirs, err := state.Copies(r.root, "", "")
	if err != nil {
		return nil
	}
	return dirs
}

// copyOf is the directory of the files in that of a working copy.
func copyOf(dir string) string { return filepath.Join(dir, state.CopyName) }

// Usage implements state.Room.
func (r *Room) Usage() string {
	var sum cache.ContentUsage
	add := func(u cache.ContentUsage) {
		sum.Clean, sum.Unsaved, sum.History = sum.Clean+u.Clean, sum.Unsaved+u.Unsaved, sum.History+u.History
	}
	open, all := r.volumes()
	for _, v := range open {
		add(v.ContentUsage())
	}
	whose := "this mount's content"
	if !all {
		whose = "content of working copies"
		for _, dir := range r.copies() {
			if u, _, err := cache.ContentOf(copyOf(dir), false, clone.Lost(dir)); err == nil {
				add(u)
			}
		}
	}
	return fmt.Sprintf("%s takes %d KiB that are clean, %d KiB that are unsaved and %d KiB of history",
		whose, sum.Clean>>10, sum.Unsaved>>10, sum.History>>10)
}

// CacheOf is the disk usage of the content of the working copy in a directory, which is not
// mounted, after its clean content was evicted if clear says so. The error is
// cache.ErrInUse when it is mounted, and io/fs.ErrNotExist when there is none.
func CacheOf(dir string, clear bool) (c control.CacheCopy, err error) {
	c.Workspace, c.Directory = state.WorkspaceOf(dir), dir
	err = state.WhileFull(state.RootOf(dir), nil, func() (err error) {
		c.ContentUsage, c.Freed, err = cache.ContentOf(copyOf(dir), clear, clone.Lost(dir))
		return err
	})
	if err != nil {
		return c, err
	}
	kept, err := pins.Load(copyOf(dir))
	c.Pins = kept.List()
	return c, err
}

package cache

import (
	"errors"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/pins"
)

// ContentUsage is what a working copy takes of its disk, in bytes. What is open is not counted.
type ContentUsage struct {
	Clean   int64 `json:"cleanBytes"`   // copies of what the backend has
	Unsaved int64 `json:"unsavedBytes"` // content that it lacks, or that stays here
	History int64 `json:"historyBytes"` // content of versions that were
}

// ContentUsage says what content takes.
func (v *Volume) ContentUsage() ContentUsage {
	u := v.store.Usage()
	return ContentUsage{Clean: u.Clean, Unsaved: u.Dirty, History: u.Kept}
}

// MakeRoom gives up clean content for n bytes that others could not write, or as much
// as the disk lacks, because they found it full, and reports whether trying again may
// help. It must not be called from a callback of the volume.
func (v *Volume) MakeRoom(n int64) bool { return v.store.MakeRoom(n) }

// ClearContent gives up all clean content that is neither in use nor pinned, and says how many
// bytes the disk got back. It is fetched again when it is read.
func (v *Volume) ClearContent() (freed int64) { return v.room.Clear() }

// ContentOf is [Volume.ContentUsage] of a working copy that is not mounted, after all
// clean content was given up if clear says so. ErrInUse when it is mounted,
// io/fs.ErrNotExist when there is none.
//
// After an unclean end the table is left as it is: what that end asks for belongs into
// its next commit. So it is where its disk has no room to open it but to be read. Then the
// content is gone as after an eviction whose record a loss of power took.
func ContentOf(stateDir string, clear bool) (u ContentUsage, freed int64, err error) {
	if !clear {
		return giveUpIn(stateDir, table.Options{ReadOnly: true}, 0)
	}
	u, freed, err = giveUpIn(stateDir, table.Options{}, files.Everything)
	if content.IsFull(err) {
		before := freed
		u, freed, err = giveUpIn(stateDir, table.Options{ReadOnly: true}, files.Everything)
		freed += before
	}
	return u, freed, err
}

// MakeRoomIn gives up n bytes of clean content of a working copy that is not mounted,
// or all if there is less, for others who found the disk full. It writes nothing. The
// errors are those of [ContentOf].
func MakeRoomIn(stateDir string, n int64) (freed int64, err error) {
	_, freed, err = giveUpIn(stateDir, table.Options{ReadOnly: true}, n)
	return freed, err
}

// giveUpIn is ContentOf with so many bytes given up.
func giveUpIn(stateDir string, to table.Options, n int64) (u ContentUsage, freed int64, err error) {
	v, err := openAlone(stateDir, true, to)
	if err != nil {
		return u, 0, err
	}
	defer func() { err = errors.Join(err, v.state.close()) }()
	if v.eviction.Pins, err = pins.Load(stateDir); err != nil {
		return u, 0, err
	}
	v.weighAll()
	if n > 0 {
		may := v.eviction.MayEvict
		if to.ReadOnly || !v.state.table.Session().Clean {
			may = v.eviction.IsReplaceable
		}
		freed = v.store.EvictFor(n, may)
	}
	return v.ContentUsage(), freed, v.view(func(*View) error { return nil })
}

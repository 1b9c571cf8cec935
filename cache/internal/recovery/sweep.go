package recovery

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// IsToSweep reports whether there may be content without an inode: then Sweep is to be called,
// in the background.
func (r *Recovery) IsToSweep() bool { return !r.session.Clean }

// Sweep removes or rescues content files of earlier runs that belong to no inode. After a kill
// they are of removed files, or of files whose creation had not returned yet. After a loss of
// power the table may have lost the names of files whose content reached the disk. Sweep also
// notes the path beside unsent content, which a killed run may not have done.
func (r *Recovery) Sweep() {
	saved := 0
	err := r.o.Store.Each(func(ino uint64, at string, size int64, partial bool) {
		if ino >= r.first.ino || r.o.Context.Err() != nil {
			return
		}
		if !r.isStray(ino) {
			r.placeUnsent(ino, at)
			return
		}
		if r.power && size > 0 {
			if err := r.rescue(ino, at, partial); err != nil {
				r.o.Volume.Report("recover", at, fmt.Errorf("content %d was left where it is: %w", ino, err))
				return
			}
			saved++
		}
		r.o.Store.Remove(ino)
	})
	if err == nil {
		err = r.sweepHistory()
	}
	if err != nil {
		r.o.Log.Warn("recover: what belongs to nothing was not removed", "err", err)
	}
	if saved > 0 {
		r.o.Volume.Report("recover", "", fmt.Errorf("the names of %d files did not reach the disk before the power was lost; their content is in %s",
			saved, filepath.Join(r.o.Dir, Dir)))
	}
}

// isStray reports whether content belongs to no inode. Content of an inode that is recorded as
// having none, since an eviction was cut short, is removed by this call; content in the
// history's queue is left to the history.
func (r *Recovery) isStray(ino table.Ino) bool {
	v := r.o.Tree.Lock()
	defer r.o.Tree.Unlock()
	n := v.Inode(ino)
	switch {
	case v.Get(history.QueueKey(ino)) != nil:
		return false
	case n == nil:
		return !r.o.Open.IsOpen(v, ino) && v.Err() == nil
	}
	if n.State == table.None && !r.o.Open.IsOpen(v, ino) {
		r.o.Store.Remove(ino) // under the lock: no handle can be opened now
	}
	return false
}

// placeUnsent notes its path beside unsent content, if another or none is noted.
func (r *Recovery) placeUnsent(ino table.Ino, noted string) {
	v := r.o.Tree.Lock()
	defer r.o.Tree.Unlock()
	n := v.Inode(ino)
	if n == nil || n.State == table.None || !slices.ContainsFunc(n.Links, v.IsDirty) {
		return
	}
	if at, ok := v.LocalPathOf(ino); ok && at.String() != noted {
		r.o.Store.SetPath(ino, at.String())
	}
}

// rescue copies content into Dir, where a person finds it.
func (r *Recovery) rescue(ino table.Ino, at string, partial bool) error {
	f, err := r.o.Store.Open(ino)
	if err != nil {
		return err
	}
	defer f.Release()
	name := SafePath(at) + "." + strconv.FormatUint(ino, 10)
	if partial {
		name += ".partial"
	}
	return WriteOut(filepath.Join(r.o.Dir, Dir), name, Raw(f))
}

// sweepHistory removes kept content of runs before of which the table does not know.
func (r *Recovery) sweepHistory() error {
	var gone []string
	err := r.o.Store.EachKept(func(id string) {
		n, perr := strconv.ParseUint(id, 16, 64)
		v := r.o.Tree.Lock()
		defer r.o.Tree.Unlock()
		known := strings.HasPrefix(id, "survivor-") && v.Get(insteadPrefix+strings.TrimPrefix(id, "survivor-")) != nil ||
			perr == nil && (v.Get(history.KeptKey(n)) != nil || n >= r.first.id)
		if !known {
			gone = append(gone, id)
		}
	})
	for _, id := range gone {
		err = errors.Join(err, r.o.Store.DropKept(id))
	}
	return err
}

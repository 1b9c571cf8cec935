package cache

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// recoveredDir, in the state directory, has content of which the table does not
// know any more whose it is: after a loss of power it may be older than the
// content. Nothing in it is ever removed.
const recoveredDir = "recovered"

// numbers are where those of this run begin.
type numbers struct {
	ino table.Ino
	id  uint64 // of the history
}

func (v *Volume) firstOfRun() numbers {
	locked := v.lock()
	defer locked.unlock()
	return numbers{locked.table.Alloc(), locked.table.NextSeq()}
}

// sweep deals with content files of runs before first that belong to no inode. After a
// kill they are of files that were removed, or whose creation nobody was told
// of. After a loss of power the table may have lost the names of files whose
// content came to the disk. What is to be sent is told its path, which a run that
// was killed may not have come to.
func (v *Volume) sweep(first numbers, power bool) {
	defer close(v.history.swept)
	saved := 0
	err := v.store.Each(func(ino uint64, at string, size int64, partial bool) {
		if ino >= first.ino || v.ctx.Err() != nil {
			return
		}
		if !v.stray(ino) {
			v.placeUnsent(ino, at)
			return
		}
		if power && size > 0 {
			if err := v.rescue(ino, at, partial); err != nil {
				v.report("recover", at, fmt.Errorf("content %d was left where it is: %w", ino, err))
				return
			}
			saved++
		}
		v.store.Remove(ino)
	})
	if err == nil {
		err = v.sweepHistory(first.id)
	}
	if err != nil {
		v.o.Log.Warn("recover: what belongs to nothing was not removed", "err", err)
	}
	if saved > 0 {
		v.report("recover", "", fmt.Errorf("the names of %d files did not reach the disk before the power was lost; their content is in %s",
			saved, filepath.Join(v.state.dir, recoveredDir)))
	}
}

// stray reports whether content belongs to nothing. What has a record but ought
// to have no content, since an eviction was cut short, is removed here; what
// goes by itself is not.
func (v *Volume) stray(ino table.Ino) bool {
	locked := v.lock()
	defer locked.unlock()
	n := locked.table.Inode(ino)
	switch {
	case locked.table.Get(history.QueueKey(ino)) != nil:
		return false
	case n == nil:
		return !locked.open.IsOpen(locked.View, ino) && locked.table.Err() == nil
	}
	if n.State == table.None && !locked.open.IsOpen(locked.View, ino) {
		v.store.Remove(ino) // under the lock: nobody can begin to open it now
	}
	return false
}

// placeUnsent is place of what is to be sent and carries another path, or none.
func (v *Volume) placeUnsent(ino table.Ino, noted string) {
	locked := v.lock()
	defer locked.unlock()
	n := locked.table.Inode(ino)
	if n == nil || !slices.ContainsFunc(n.Links, locked.IsDirty) {
		return
	}
	if at, ok := locked.LocalPathOf(ino); ok && at.String() != noted {
		locked.place(ino)
	}
}

// rescue copies content to where a person finds it.
func (v *Volume) rescue(ino table.Ino, at string, partial bool) error {
	f, err := v.store.Open(ino)
	if err != nil {
		return err
	}
	defer f.Release()
	suffix := "." + itoa(ino)
	if partial {
		suffix += ".partial"
	}
	return writeOut(filepath.Join(v.state.dir, recoveredDir), safePath(at)+suffix,
		io.NewSectionReader(fdReader(f.Fd()), 0, f.Size()))
}

// safePath is a path below some directory, whatever was noted beside content.
func safePath(at string) string {
	l, err := providers.ParseLocator(at)
	if err != nil || l.String() == "" {
		return "unknown"
	}
	return l.String()
}

// writeOut makes a new file below a directory, synced. It overwrites nothing,
// and follows no link.
func writeOut(dir, name string, r io.Reader) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Sync(), f.Close())
}

// sweepHistory removes kept content from before first of which the table does
// not know.
func (v *Volume) sweepHistory(first uint64) error {
	var gone []string
	err := v.store.EachKept(func(id string) {
		n, perr := strconv.ParseUint(id, 16, 64)
		locked := v.lock()
		defer locked.unlock()
		known := strings.HasPrefix(id, "survivor-") && locked.table.Get(insteadPrefix+strings.TrimPrefix(id, "survivor-")) != nil ||
			perr == nil && (locked.table.Get(history.KeptKey(n)) != nil || n >= first)
		if !known {
			gone = append(gone, id)
		}
	})
	for _, id := range gone {
		err = errors.Join(err, v.store.DropKept(id))
	}
	return err
}

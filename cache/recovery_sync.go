package cache

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/table"
)

// syncFor is how long an end waits for the disk to have the content that the
// backend has too.
const syncFor = 5 * time.Second

// syncState brings unsaved content to the disk, so that it is not suspect
// whatever becomes of the machine; and if that takes not long everything else,
// so that it need not be fetched again. For Close, when nothing changes any
// more.
func (v *Volume) syncState() error {
	synced, err := v.syncUnsaved()
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- syncDisk(v.state.dir) }()
	t := time.NewTimer(syncFor)
	defer t.Stop()
	all := false
	select {
	case err := <-done:
		all = err == nil
	case <-t.C:
	}
	return v.update(func(v *Tx) error {
		if all {
			v.table.Set(diskKey, []byte{1})
		}
		for ino, gen := range synced {
			if n := v.table.Inode(ino); n != nil && n.ContentVersion == gen && !n.Suspect {
				v.table.Edit(ino).Synced = gen
			}
		}
		return nil
	})
}

// syncUnsaved syncs the content that the backend does not have, and gives the
// states that are on the disk then.
func (v *Volume) syncUnsaved() (map[table.Ino]uint64, error) {
	unsaved := map[table.Ino]uint64{}
	err := v.view(func(v *View) error {
		v.table.Dirty(0, func(_ uint64, l table.Link) bool {
			rec, _ := v.table.Name(l.Dir, l.Name)
			n := v.table.Inode(rec.Ino)
			if n != nil && n.IsRegular() && n.Synced != n.ContentVersion && n.State != table.None {
				unsaved[rec.Ino] = n.ContentVersion
			}
			return true
		})
		return nil
	})
	for ino := range unsaved {
		f, oerr := v.store.Open(ino)
		if oerr == nil {
			oerr = f.Sync()
			f.Release()
		}
		err = errors.Join(err, oerr)
	}
	return unsaved, err
}

func syncDisk(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Syncfs(fd)
}

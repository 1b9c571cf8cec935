package recovery

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// syncFor bounds the time that the end of a run waits for content to reach the disk that the
// remote has too.
const syncFor = 5 * time.Second

// Sync brings unsaved content of a working copy, whose state is in dir, to the disk, so that it
// is not suspect after a crash of the machine; and within syncFor everything else, so that it
// need not be fetched again. It is for the end of a run, when the tree changes only by update,
// a transaction.
func Sync(t *tree.Tree, store *content.Store, dir string, update func(do func(*tree.Tx) error) error) error {
	synced, err := syncUnsaved(t, store)
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- syncDisk(dir) }()
	timer := time.NewTimer(syncFor)
	defer timer.Stop()
	all := false
	select {
	case err := <-done:
		all = err == nil
	case <-timer.C:
	}
	return update(func(tx *tree.Tx) error {
		if all {
			tx.Set(diskKey, []byte{1})
		}
		for ino, version := range synced {
			if n := tx.Inode(ino); n != nil && n.ContentVersion == version && !n.Suspect {
				tx.Edit(ino).Synced = version
			}
		}
		return nil
	})
}

// syncUnsaved syncs the content that the remote does not have, and gives the versions that are
// on the disk then.
func syncUnsaved(t *tree.Tree, store *content.Store) (map[table.Ino]uint64, error) {
	unsaved := map[table.Ino]uint64{}
	err := t.View(func(v *tree.View) error {
		v.Dirty(0, func(_ uint64, l table.Link) bool {
			ino := v.Record(l).Ino
			n := v.Inode(ino)
			if n != nil && n.IsRegular() && n.Synced != n.ContentVersion && n.State != table.None {
				unsaved[ino] = n.ContentVersion
			}
			return true
		})
		return nil
	})
	for ino := range unsaved {
		f, oerr := store.Open(ino)
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

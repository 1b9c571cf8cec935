package cache

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

// copyState copies the state of a working copy as a SIGKILL at one moment leaves
// it. The database tidies up in the background, and content comes and goes: of a
// copy that takes a while, one file may say what is in another only later. So it
// is made anew until nothing has changed meanwhile. The ballast is left out: every
// start makes it.
func copyState(t *testing.T, v *Volume) string {
	t.Helper()
	locked := v.lock() // not in the middle of a commit: that is the table's own test
	defer locked.unlock()
	return copyStill(t, v.o.StateDir)
}

// copyStill is copyState of a directory whose volume commits nothing meanwhile.
func copyStill(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	for end := time.Now().Add(guard); ; {
		before, err := entries(from)
		if err == nil {
			err = copyEntries(to, from, before)
		}
		if err == nil {
			var after []entry
			if after, err = entries(from); err == nil && slices.Equal(before, after) {
				return to
			}
		}
		assert.Must(t, (err == nil || errors.Is(err, iofs.ErrNotExist)) && !time.Now().After(end), "the state does not keep still:", err)
		assert.OK(t, errors.Join(os.RemoveAll(to), os.Mkdir(to, 0o700)))
	}
}

// entry is a file or directory of a state, and what changes when it does.
type entry struct{ path, state string }

func entries(dir string) (all []entry, err error) {
	err = filepath.WalkDir(dir, func(path string, e iofs.DirEntry, err error) error {
		if err != nil || e.Name() == "ballast" {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		st, rel := info.Sys().(*syscall.Stat_t), path[len(dir):]
		all = append(all, entry{rel, fmt.Sprint(st.Mode, st.Ino, st.Size, st.Ctim)})
		return nil
	})
	return all, err
}

func copyEntries(to, from string, all []entry) error {
	for _, e := range all {
		info, err := os.Lstat(from + e.path)
		if err != nil {
			return err
		}
		if info.IsDir() {
			if err := os.MkdirAll(to+e.path, 0o700); err != nil {
				return err
			}
			continue
		}
		data, err := os.ReadFile(from + e.path)
		if err == nil {
			err = os.WriteFile(to+e.path, data, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

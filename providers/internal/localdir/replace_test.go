package localdir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// Whatever a program does with a name while it is replaced, what it put there last is what is
// there, and nothing of ours in its place.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	d := assert.Of(os.Open(dir)).OK(t)
	defer d.Close()
	put := func(content string) func(path string) error {
		return func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte(content), 0o600), os.Rename(path+".new", path))
		}
	}
	nothing := func(string) error { return nil }
	appended := func(path string) error { // to what has the name, in its place
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = f.WriteString("+more")
			err = errors.Join(err, f.Close())
		}
		return err
	}
	overwritten := func(path string) error { // with as many bytes
		return errors.Join(os.WriteFile(path, []byte("OURS"), 0o600), os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)))
	}
	opened := func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		t.Cleanup(func() { f.Close() })
		return err
	}
	for name, x := range map[string]struct {
		before, meanwhile func(path string) error // what it does before they are exchanged, and after
		want              error
		left              string // "": nothing
		beside            string // in the *LeftError's file; "": there is none
	}{
		"as it was":                    {nothing, nothing, nil, "ours", ""},
		"changed before":               {put("theirs"), nothing, providers.ErrConflict, "theirs", ""},
		"changed before and after":     {put("theirs"), put("newer"), providers.ErrConflict, "newer", "theirs"},
		"changed, then ours is":        {put("theirs"), appended, providers.ErrConflict, "theirs", "ours+more"},
		"changed, ours overwritten":    {put("theirs"), overwritten, providers.ErrConflict, "theirs", "OURS"},
		"changed, then ours is open":   {put("theirs"), opened, providers.ErrConflict, "theirs", "ours"},
		"changed before, then removed": {put("theirs"), os.Remove, providers.ErrConflict, "theirs", ""},
		"changed before, then moved":   {put("theirs"), func(path string) error { return os.Rename(path, path+".moved") }, providers.ErrConflict, "theirs", ""},
		"removed before":               {os.Remove, nothing, unix.ENOENT, "", ""},
		"a directory":                  {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, nothing, providers.ErrConflict, "directory", ""},
	} {
		path := filepath.Join(dir, name)
		assert.OK(t, os.WriteFile(path, []byte("old"), 0o600))
		assert.OK(t, os.WriteFile(path+".tmp", []byte("ours"), 0o600))
		assert.OK(t, x.before(path))
		err := Replace(int(d.Fd()), name+".tmp", int(d.Fd()), name, false, func(_ int, out string) error {
			content, err := os.ReadFile(filepath.Join(dir, out))
			assert.OK(t, x.meanwhile(path))
			if err != nil || string(content) != "old" {
				return providers.ErrConflict
			}
			return nil
		})
		var kept *LeftError
		if x.beside != "" {
			assert.True(t, errors.As(err, &kept) && kept.Name == name, name, err)
			assert.Equal(t, string(assert.Of(os.ReadFile(filepath.Join(dir, kept.Left))).OK(t)), x.beside, name)
			assert.Contains(t, err.Error(), x.want.Error(), name)
		} else {
			assert.True(t, errors.Is(err, x.want) && !errors.As(err, &kept), name, err)
		}
		content, failed := os.ReadFile(path)
		if errors.Is(failed, unix.EISDIR) {
			content = []byte("directory")
		}
		assert.Equal(t, string(content), x.left, name)
		_, there := os.Lstat(path + ".tmp")
		assert.True(t, x.want != nil || os.IsNotExist(there), name, "left a file")
	}
}

// What cannot be given its name back is told of, and its content stays.
func TestReplaceLeaves(t *testing.T) {
	dir := t.TempDir()
	d := assert.Of(os.Open(dir)).OK(t)
	defer d.Close()
	for name, content := range map[string]string{"f": "theirs", "temp": "ours"} {
		assert.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	err := Replace(int(d.Fd()), "temp", int(d.Fd()), "f", false, func(int, string) error {
		assert.OK(t, os.Rename(filepath.Join(dir, "temp"), filepath.Join(dir, "taken")))
		return providers.ErrConflict
	})
	var left *LeftError
	assert.True(t, errors.As(err, &left) && left.Name == "f" && left.Left == "temp", "got", err)
	assert.Is(t, err, providers.ErrUnavailable)
	assert.Contains(t, err.Error(), "a program has changed f meanwhile, and what it put there is left in temp beside it")
	assert.Of(os.ReadFile(filepath.Join(dir, "taken"))).Equal(t, []byte("theirs"))
}

package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
)

// A directory is made for its owner alone, held while it is open, and has the same table when it
// is opened again.
func TestOpen(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "a/copy")
	assert.False(t, IsOne(dir), "it is one before it is made")
	assert.Is(t, HasTable(dir), fs.ErrNotExist)
	o := Options{Total: 1 << 20, TotalFile: filepath.Join(parent, "total")}
	d := assert.Of(Open(dir, o)).OK(t)
	assert.Equal(t, assert.Of(os.Stat(dir)).OK(t).Mode().Perm(), 0o700)
	assert.True(t, IsOne(dir) && d.Share != nil && d.Table.Session().First, "opened", d)
	assert.OK(t, HasTable(dir))
	assert.Is(t, assert.ErrOf(Open(dir, o)), ErrInUse)
	d.Table.Set("key", []byte("value"))
	assert.OK(t, d.Table.Commit())
	assert.OK(t, d.CloseTable())
	assert.OK(t, d.CloseTable(), "what is closed")
	assert.OK(t, d.OpenTable(table.Options{}))
	assert.Equal(t, string(d.Table.Get("key")), "value")
	assert.OK(t, d.Close())

	assert.OK(t, os.Chmod(dir, 0o755))
	d = assert.Of(Open(dir, Options{})).OK(t)
	assert.Equal(t, assert.Of(os.Stat(dir)).OK(t).Mode().Perm(), 0o700)
	assert.True(t, d.Share == nil && !d.Table.Session().First && string(d.Table.Get("key")) == "value", "opened again", d)
	assert.OK(t, d.Close())
}

// Content without a table that says whose it is counts as damage, and what fails leaves the
// directory to others.
func TestContentAlone(t *testing.T) {
	dir := t.TempDir()
	assert.OK(t, os.MkdirAll(filepath.Join(dir, "data/00"), 0o700))
	assert.OK(t, os.WriteFile(filepath.Join(dir, "data/00/note"), nil, 0o600))
	assert.Is(t, HasTable(dir), fs.ErrNotExist) // no content: its name is no number
	assert.OK(t, os.WriteFile(filepath.Join(dir, "data/00/7"), []byte("x"), 0o600))
	assert.Is(t, HasTable(dir), table.ErrDamaged)
	for range 2 {
		assert.OK(t, os.RemoveAll(Names(dir)))
		assert.Is(t, assert.ErrOf(Open(dir, Options{})), table.ErrDamaged)
	}
	assert.OK(t, assert.Of(Lock(dir)).OK(t).Close())
}

// A place where no directory can be is said to be the state directory's.
func TestNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	assert.OK(t, os.WriteFile(file, nil, 0o600))
	err := assert.ErrOf(Open(filepath.Join(file, "copy"), Options{}))
	assert.Contains(t, err.Error(), "state directory")
	assert.False(t, errors.Is(err, ErrInUse), "in use", err)
}

// The ballast goes for a table that has no room, until content is open, which then gives it up.
func TestRoomForTheTable(t *testing.T) {
	for _, ballast := range []string{"", filepath.Join(t.TempDir(), "elsewhere")} {
		d := &Dir{Path: t.TempDir()}
		name := ballast
		if name == "" {
			name = filepath.Join(d.Path, content.BallastName)
		}
		for _, opened := range []bool{true, false} {
			assert.OK(t, os.WriteFile(name, []byte("x"), 0o600))
			d.opened.Store(opened)
			d.makeRoom(ballast)()
			_, err := os.Stat(name)
			assert.Equal(t, err == nil, opened, "the ballast is there")
		}
	}
}

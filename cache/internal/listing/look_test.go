package listing

import (
	"context"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// A look asks the remote only for directories that it may have and that are not fresh, and
// what is local is found without it.
func TestLook(t *testing.T) {
	asked := 0
	p := providers.Wrap(memory.New(memory.Options{}), providers.WrapOptions{Around: func(context.Context, *providers.Call, func(context.Context) error) error {
		asked++
		return providers.ErrUnavailable
	}})
	tab := assert.Of(table.Open("/look", table.Options{FS: vfs.NewMem(), Strict: true})).OK(t)
	t.Cleanup(func() { tab.Close() })
	tr := tree.New(tab, tree.Options{Now: time.Now})
	log := slog.New(slog.DiscardHandler)
	ls := New(Options{Tree: tr, Update: func(do func(*tree.Tx) error) error { return tr.Update(do, nil) }, Provider: p, Capabilities: p.Capabilities(),
		Head: revision.NewHeadLock(), Belief: &Belief{Now: time.Now, TTL: time.Minute, Patience: time.Minute, Log: log}, SentBack: &files.SentBack{},
		Waits:    &waiting.Waits{Context: t.Context(), Pause: func(context.Context, time.Duration) error { return context.Canceled }, Log: log},
		Patience: time.Minute, Wait: func(d time.Duration) time.Duration { return d }, Room: noRoom{}, Go: func(f func()) { go f() },
		IsClosing: func(*tree.View) bool { return false }, Back: func(*tree.View) {}})
	const dir, file, remote = table.Ino(10), table.Ino(11), table.Ino(12)
	assert.OK(t, tr.Update(func(tx *tree.Tx) error {
		tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true, Listed: time.Now().UnixNano()})
		tx.Put(dir, &table.Inode{Mode: syscall.S_IFDIR})
		tx.Put(file, &table.Inode{Mode: syscall.S_IFREG})
		tx.Put(remote, &table.Inode{Mode: syscall.S_IFDIR})
		tx.SetLocal(table.Link{Dir: table.Root, Name: "d"}, dir, false, false)
		tx.SetLocal(table.Link{Dir: dir, Name: "f"}, file, false, false)
		r := table.Link{Dir: table.Root, Name: "r"}
		tx.SetLocal(r, remote, false, false)
		tx.SetRemote(r, &table.Remote{Ino: remote, Kind: providers.KindDir})
		return nil
	}, nil))
	for _, c := range []struct {
		dir   table.Ino
		want  error
		asked int
	}{
		{table.Root, nil, 0}, {dir, nil, 0}, {file, syscall.ENOTDIR, 0}, {99, fs.ErrStale, 0}, {remote, fs.ErrUnavailable, 1},
	} {
		asked = 0
		assert.Is(t, ls.Load(nil, c.dir), c.want, c.dir)
		assert.Equal(t, asked > 0, c.asked > 0, c.dir, "the remote is asked")
	}
	for path, want := range map[string]table.Ino{"": table.Root, "d": dir, "/d/f": file, "d/g": 0, "x": 0, "x/y": 0} {
		_, ino, err := ls.Find(t.Context(), path)
		assert.True(t, err == nil && ino == want, path, "leads to", ino, err)
	}
}

package tree

import (
	"fmt"
	"log/slog"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// What a loss of power left is whole when it was synced and is as long as it was then; else
// it is suspect, and of another length a state of its own.
func TestSurvived(t *testing.T) {
	const file, version, size = 10, 2, 5
	for what, c := range map[string]struct {
		synced  uint64
		size    int64
		suspect bool
		version uint64
	}{
		"synced":                      {version, size, false, version},
		"synced, and longer":          {version, size + 2, true, version + 1},
		"synced before, and changed":  {version - 1, size, true, version},
		"synced before, and is short": {version - 1, size - 1, true, version + 1},
	} {
		newTree(t, Options{}).do(t, func(tx *Tx) {
			tx.Put(file, &table.Inode{Mode: syscall.S_IFREG, ContentVersion: version, Synced: c.synced, Size: size})
			assert.Equal(t, tx.Survived(file, c.size), c.suspect, what, "is suspect")
			n := tx.Inode(file)
			assert.True(t, n.Suspect == c.suspect && n.ContentVersion == c.version && n.Size == c.size, what, *n)
		})
	}
}

// What is suspect is fetched again once the remote has that state whole, as long as it is
// there; what is open, or another state, stays as it is.
func TestSettleSuspects(t *testing.T) {
	const file, version = 10, 2
	l := link(table.Root, "f")
	for what, c := range map[string]struct {
		open     bool
		n        table.Inode
		remote   table.Remote
		attempt  *table.Attempt
		nameless bool
		want     string
	}{
		"arrived":               {n: table.Inode{State: table.Whole}, want: "none v2 8 bytes, freed"},
		"arrived, of no length": {n: table.Inode{State: table.Whole}, remote: table.Remote{Version: providers.Version{Size: -1}}, want: "none v2 3 bytes, freed"},
		"of a part":             {n: table.Inode{State: table.Partial}, want: "none v2 8 bytes, freed"},
		"gone":                  {n: table.Inode{State: table.None}, want: "none v2 8 bytes"},
		"open":                  {n: table.Inode{State: table.Whole}, open: true, want: "whole v3 3 bytes suspect"},
		"being written":         {n: table.Inode{State: table.Whole, Writing: true}, want: "whole v3 3 bytes suspect"},
		"newer":                 {n: table.Inode{State: table.Whole, ContentVersion: 1}, want: "whole v3 3 bytes suspect"},
		"not known yet":         {n: table.Inode{State: table.Whole}, attempt: &table.Attempt{}, want: "whole v2 3 bytes suspect"},
		"of another kind":       {n: table.Inode{State: table.Whole}, remote: table.Remote{Kind: providers.KindDir}, want: "whole v2 3 bytes suspect"},
		"without a name":        {n: table.Inode{State: table.Whole}, nameless: true, want: "whole v2 3 bytes suspect"},
	} {
		o := &keeper{keeps: true}
		tr := newTree(t, Options{Pins: pinned{file: c.open}, Log: slog.New(slog.DiscardHandler)})
		assert.OK(t, tr.Update(func(tx *Tx) error {
			c.n.Mode, c.n.ContentVersion, c.n.Size, c.n.Suspect = syscall.S_IFREG, c.n.ContentVersion+version, 3, true
			tx.Put(file, &c.n)
			c.remote.Ino, c.remote.ContentVersion = file, version
			if c.remote.Kind == providers.KindUnknown {
				c.remote.Kind = providers.KindFile
			}
			if c.remote.Version.Size == 0 {
				c.remote.Version.Size = 8
			}
			rec := table.Name{Ino: file, Remote: &c.remote, Attempt: c.attempt}
			if c.nameless {
				rec.Ino = 0
			}
			tx.SetName(l, rec)
			tx.Touch(l)
			return nil
		}, o), what)
		n := tr.Lock().Inode(file)
		got := fmt.Sprintf("%v v%d %d bytes", n.State, n.ContentVersion, n.Size)
		tr.Unlock()
		if n.Suspect {
			got += " suspect"
		}
		if len(o.freed) > 0 {
			got += ", freed"
		}
		assert.Equal(t, got, c.want, what)
	}
}

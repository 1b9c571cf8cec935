package files

import (
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
)

// An open is sent back once for each state of its inode, with all who waited for the same
// fetch.
func TestSentBackOnce(t *testing.T) {
	tab := assert.Of(table.Open(t.TempDir(), table.Options{})).OK(t)
	t.Cleanup(func() { tab.Close() })
	at := tree.New(tab, tree.Options{})
	const x, name = 5, "f"
	change := func(do func(tx *tree.Tx)) {
		assert.OK(t, at.Update(func(tx *tree.Tx) error {
			do(tx)
			return nil
		}, nil))
	}
	change(func(tx *tree.Tx) {
		tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR})
		tx.Put(x, &table.Inode{Mode: syscall.S_IFREG, ContentVersion: 1})
		tx.SetName(table.Link{Dir: table.Root, Name: name}, table.Name{Ino: x})
	})
	var s SentBack
	once := func(gone *GoneError) bool {
		defer at.Unlock()
		return s.Once(at.Lock(), x, gone)
	}
	assert.True(t, once(nil), "the first is not sent back")
	assert.False(t, once(nil), "it is sent back twice")
	change(func(tx *tree.Tx) { tx.SetName(table.Link{Dir: table.Root, Name: name}, table.Name{}) })
	fetch, other := &GoneError{Ino: x}, &GoneError{Ino: x}
	assert.True(t, once(fetch), "not sent back although the name is gone")
	assert.True(t, once(fetch), "one who waited for the same fetch is not sent back")
	assert.False(t, once(other), "a later fetch is sent back as well")
}
